"""Which values of the storage fabric are asked for: by metric, entity and node.

Names are written as in questions to a store: a trailing `%` makes a prefix of one, `\\%` at the end
stands for the sign itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

METRIC, ENTITY, NODE = "metricID", "entityID", "nodeID"
TIMESTAMP, VALUE = "timestamp", "value"
FIELDS = (METRIC, ENTITY, NODE, TIMESTAMP, VALUE)
"""What every record of the fabric has."""

Patterns = tuple[str, ...] | None
"""Names and prefixes; None means all."""


@dataclass(frozen=True, slots=True)
class Question:
    metrics: Patterns = None
    entities: Patterns = None
    nodes: Patterns = None

    def as_json(self) -> dict[str, list[str] | None]:
        return {key: None if names is None else list(names) for key, names in asdict(self).items()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Question:
        """The other way round; what else is in there is left alone."""
        given = {field.name: data.get(field.name) for field in fields(cls)}
        return cls(**{key: None if names is None else tuple(names) for key, names in given.items()})


def exact(name: str) -> str:
    """A name that is meant as it stands."""
    return f"{name[:-1]}\\%" if name.endswith("%") else name


def prefix(text: str) -> str:
    """All names that begin so. What ends in backslashes cannot be written; a shorter one can."""
    return text.rstrip("\\") + "%"


def declared(value: str) -> str:
    """The value of a parameter of a stream: a prefix with `%` at its end, else a name."""
    return prefix(value[:-1]) if value.endswith("%") else value
