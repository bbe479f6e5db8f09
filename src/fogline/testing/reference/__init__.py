"""What a query file means, in plain Python: the oracle that every way of running is tested against.

It works straight on the syntax tree and shares nothing with plans or engines. For each insight,
each key and each moment of evaluation it filters the list of records and applies a formula of a
few lines. It is slow on purpose: nothing is kept from one moment to the next, so nothing can be
kept wrongly. Sampling is ignored: results are exact.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NotRequired, TypedDict

from fogline.language.ast import QueryFile
from fogline.testing.reference.engine import ReferenceEngine
from fogline.testing.reference.names import Row, ScopeNames
from fogline.testing.reference.values import as_json

__all__ = ["ReferenceRecord", "evaluate", "order"]


class ReferenceRecord(TypedDict):
    """A record of the stream it names, or of every stream."""

    time: int
    fields: Mapping[str, Any]
    stream: NotRequired[str | None]


def evaluate(query: QueryFile, records: Sequence[ReferenceRecord]) -> list[dict[str, Any]]:
    """Every result of every insight; times are milliseconds since the epoch."""
    rows = [Row(record["time"], record["fields"], record.get("stream")) for record in records]
    engine = ReferenceEngine(ScopeNames(query, rows))
    found = [
        {
            "insight": insight.name,
            "window": {"start": result.start, "end": result.end},
            "keys": result.keys,
            "value": result.value,
            "count": result.count,
        }
        for insight in query.insights
        for result in engine.results(insight)
    ]
    return sorted(found, key=order)


def order(result: Mapping[str, Any]) -> tuple[int, str, str, float, str]:
    """Sorts output records: by end, insight, keys and value."""
    value = result["value"]
    amount = value if isinstance(value, int | float) else 0.0
    end = result["window"]["end"]
    return end, result["insight"], as_json(result["keys"]), amount, json.dumps(value)
