"""A copy that this node holds, asked as its origin would be."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pyarrow as pa

from fogline.fabric.errors import NodeUnreachable
from fogline.fabric.query.local_backend import StoreAnswers
from fogline.fabric.query.query_types import AggregateQuery, ChangeOffset, Range, Selected
from fogline.fabric.replicas.copy import StoreCopy
from fogline.model.keys import Keys


class CopyAnswers:
    """For any thread. Raises `NodeUnreachable` once the copy is removed."""

    def __init__(
        self, origin: str, current: Callable[[str], StoreCopy | None], keys: Keys = None
    ) -> None:
        self._origin = origin
        self._current = current
        self._keys = keys

    def seen_by(self, keys: Keys) -> CopyAnswers:
        return CopyAnswers(self._origin, self._current, keys)

    def latest(self, names: Selected) -> pa.Table:
        with self._open() as answers:
            return answers.latest(names)

    def range(self, question: Range, after: ChangeOffset | None = None) -> pa.Table:
        with self._open() as answers:
            return answers.range(question, after)

    def aggregate(self, question: AggregateQuery) -> pa.Table:
        with self._open() as answers:
            return answers.aggregate(question)

    def metrics(self, prefix: str) -> pa.Table:
        with self._open() as answers:
            return answers.metrics(prefix)

    def sql(self, text: str) -> pa.Table:
        with self._open() as answers:
            return answers.sql(text)

    @contextmanager
    def _open(self) -> Iterator[StoreAnswers]:
        copy = self._current(self._origin)
        if copy is None:
            raise NodeUnreachable(f"there is no copy of {self._origin} here any more")
        with copy.using() as store:
            yield StoreAnswers(store, self._origin, self._keys)
