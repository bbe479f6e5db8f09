"""What can be asked of a node's values, and of all nodes' together.

Tables have the columns of `fogline.storage.values`; answers for all nodes have `node` before them.
Times are microseconds since 1970.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

import pyarrow as pa

from fogline.model.keys import Keys
from fogline.model.question import Question
from fogline.storage.query.changes import Changes
from fogline.storage.query.queries import AGGREGATES, DEFAULT_ROWS

ANSWERED, COPY, UNREACHABLE, REFUSED, LIMITED = "answered", "copy", "away", "refused", "limited"

ChangeOffset = tuple[int, int]
"""Time and `seq` of a value: its place in a range."""


@dataclass(frozen=True, slots=True)
class Selected:
    """Metrics and entities, exact or as prefixes (`cpu_%`); None means all.

    `nodes` says whose values are asked for where all nodes are asked; one node answers for itself.
    """

    metrics: tuple[str, ...] | None = None
    entities: tuple[str, ...] | None = None
    nodes: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Range:
    """Values from `start` up to, not including, `end`, ordered by time, then `seq`.

    `share` is a sample fraction: below 1, others are left out, by their content: always the same
    ones.
    """

    names: Selected = Selected()
    start: int | None = None
    end: int | None = None
    limit: int = DEFAULT_ROWS
    descending: bool = False
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class AggregateQuery:
    """Numbers by metric, entity and bucket of time."""

    bucket: int
    names: Selected = Selected()
    start: int | None = None
    end: int | None = None
    functions: tuple[str, ...] = tuple(AGGREGATES)
    descending: bool = False


class NodeBackend(Protocol):
    """Values that arose at one node: its own store, a copy of it, or the node by REST.

    Every method may be called from any thread, and raises `StoreError` for a wrong question or a
    limit, `NodeUnreachable` when there is no answer.
    """

    def seen_by(self, keys: Keys) -> NodeBackend:
        """The same for who holds these keys: what is signed with others is not there."""
        ...

    def latest(self, names: Selected) -> pa.Table: ...

    def range(self, question: Range, after: ChangeOffset | None = None) -> pa.Table:
        """At most `limit` values behind the place; fewer mean that there are no more now."""
        ...

    def aggregate(self, question: AggregateQuery) -> pa.Table:
        """Columns `metric`, `entity`, `bucket` (its start) and one for each function."""
        ...

    def metrics(self, prefix: str) -> pa.Table:
        """Columns `metric` and `entity`, each pair once."""
        ...

    def sql(self, text: str) -> pa.Table: ...


class ChangeSource(Protocol):
    """The values of one node in the order in which they came; see
    `fogline.fabric.federation.sources`.

    For any thread. Raises `StoreError`; when the node has another store than given,
    `NodeUnreachable`.
    """

    @property
    def store_id(self) -> str: ...

    @property
    def at(self) -> str:
        """The node that is asked: the one they are of, or one that has a copy."""
        ...

    def changes(self, after: int, question: Question, limit: int) -> Changes:
        """May leave the entities out of account; of no metrics, only where the changes end now."""
        ...


@dataclass(frozen=True, slots=True)
class NodeAnswer:
    """How one node took part in an answer for all."""

    node: str
    state: str
    """ANSWERED, COPY, UNREACHABLE, REFUSED, or LIMITED: the question is more than it may take."""
    at: str = ""
    """Of a copy: who holds it."""
    until: int | None = None
    """Of a copy: up to when it is complete."""
    partial: bool = False
    """Of a copy: it does not hold all that was asked for; `since`, or only some metrics."""
    why: str = ""
    since: int | None = None
    """Of a copy: before this time, which was asked for, values are missing."""

    def as_json(self) -> dict[str, Any]:
        fields = asdict(self)
        return {key: value for key, value in fields.items() if value not in ("", None, False)}


@dataclass(frozen=True, slots=True)
class Whole:
    """An answer for all nodes; `places` is where each node's next page begins, None at the end."""

    table: pa.Table
    nodes: tuple[NodeAnswer, ...] = ()
    places: Mapping[str, ChangeOffset] | None = field(default=None)


class Everywhere(Protocol):
    """All nodes as one. Raises `StoreError` for a wrong question, never for a missing node."""

    def seen_by(self, keys: Keys) -> Everywhere:
        """The same for who holds these keys."""
        ...

    def latest(self, names: Selected, stale: float = 0.0) -> Whole: ...

    def range(
        self, question: Range, places: Mapping[str, ChangeOffset], stale: float = 0.0
    ) -> Whole: ...

    def aggregate(self, question: AggregateQuery, stale: float = 0.0) -> Whole: ...

    def metrics(self, prefix: str) -> Whole:
        """Columns `node`, `metric`, `entity`."""
        ...

    def sql(self, text: str) -> Whole:
        """At each node for itself; the rows of all have the column `node`."""
        ...

    def sql_together(self, text: str, values: Range) -> Whole:
        """Once, over the values of all nodes that the range names: these are brought here. Its
        `limit` does not count. Raises `QueryLimit` when there are more than a query may have."""
        ...

    def nodes(self) -> Sequence[Mapping[str, Any]]:
        """The response of `GET /v1/nodes`."""
        ...
