"""What an insight is made of, to compare two versions of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from fogline.deploy.query.insight_text import reachable_insights
from fogline.language.ast import Statement, Stream
from fogline.plan.analysis.query_file import LoadedQuery
from fogline.plan.operators import Scan, walk

_TOPIC = "topic"


@dataclass(frozen=True, slots=True)
class Definition:
    """Equal where the same is computed from records of the same kind, however it was written."""

    statements: Mapping[str, Statement]
    """Its own, and those of all it is made from; streams without their topics."""
    topics: Mapping[str, str]
    """Of its streams, as the text has them: topics of records that travel contain the job."""


def definition(loaded: LoadedQuery, insight: str) -> Definition:
    operators = walk(loaded.plan.emit(insight))
    scanned = {operator.stream.name for operator in operators if isinstance(operator, Scan)}
    needed = reachable_insights(loaded.query, [insight])
    statements: dict[str, Statement] = {}
    topics: dict[str, str] = {}
    for statement in loaded.query.statements:
        if isinstance(statement, Stream) and statement.name in scanned:
            statements[statement.name] = _without_topic(statement)
            topics[statement.name] = str(statement.provider.get(_TOPIC))
        elif not isinstance(statement, Stream) and statement.name in needed:
            statements[statement.name] = statement
    return Definition(statements, topics)


def _without_topic(stream: Stream) -> Stream:
    others = (p for p in stream.provider.parameters if p.key != _TOPIC)
    parameters = tuple(sorted(others, key=lambda parameter: parameter.key))
    return replace(stream, provider=replace(stream.provider, parameters=parameters))
