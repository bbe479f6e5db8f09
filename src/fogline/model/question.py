"""Which values of the storage fabric are asked for: by metric, entity and node, and how many.

Names are written as in questions to a store: a trailing `%` makes a prefix of one, `\\%` at the end
stands for the sign itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

METRIC, ENTITY, NODE = "metricID", "entityID", "nodeID"
TIMESTAMP, VALUE = "timestamp", "value"
FIELDS = (METRIC, ENTITY, NODE, TIMESTAMP, VALUE)
"""What every record of the fabric has."""

PatternTexts = tuple[str, ...] | None
"""Names and prefixes; None means all."""


@dataclass(frozen=True, slots=True)
class Question:
    metrics: PatternTexts = None
    entities: PatternTexts = None
    nodes: PatternTexts = None
    share: float = 1.0
    """Nodes leave out the others before they send anything; which, the values' content decides."""

    def as_json(self) -> dict[str, Any]:
        return {key: list(v) if isinstance(v, tuple) else v for key, v in asdict(self).items()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Question:
        """The other way round; what else is in there is left alone."""
        names = (data.get(key) for key in ("metrics", "entities", "nodes"))
        metrics, entities, nodes = (None if found is None else tuple(found) for found in names)
        return cls(metrics, entities, nodes, float(data.get("share", 1.0)))


def exact(name: str) -> str:
    """A name that is meant as it stands."""
    return f"{name[:-1]}\\%" if name.endswith("%") else name


def prefix(text: str) -> str:
    """All names that begin so. What ends in backslashes cannot be written; a shorter one can."""
    return text.rstrip("\\") + "%"


def read_pattern(value: str) -> str:
    """The value of a parameter of a stream: a prefix with `%` at its end, else a name."""
    return prefix(value[:-1]) if value.endswith("%") else value
