"""A store's own values as answers."""

from __future__ import annotations

import pyarrow as pa

from fogline.fabric.query.query_types import AggregateQuery, ChangeOffset, Range, Selected
from fogline.model.keys import Keys
from fogline.storage.store import SiteStore


class StoreAnswers:
    """`Answers` of a store of this process: the site's own, or a copy of another's.

    `node` is where the values arose, and so who signed them.
    """

    def __init__(self, store: SiteStore, node: str, keys: Keys = None) -> None:
        self._store = store
        self._node = node
        self._keys = keys

    def seen_by(self, keys: Keys) -> StoreAnswers:
        return StoreAnswers(self._store, self._node, keys)

    def latest(self, names: Selected) -> pa.Table:
        return self._store.latest(names.metrics, names.entities, self._hidden)

    def range(self, question: Range, after: ChangeOffset | None = None) -> pa.Table:
        return self._store.rows(
            *(question.names.metrics, question.names.entities, question.start, question.end),
            limit=question.limit,
            after=after,
            descending=question.descending,
            share=question.share,
            without=self._hidden,
        )

    def aggregate(self, question: AggregateQuery) -> pa.Table:
        found = self._store.aggregate(
            *(question.bucket, question.names.metrics, question.names.entities),
            *(question.start, question.end),
            functions=question.functions,
            descending=question.descending,
            without=self._hidden,
        )
        names = ["bucket" if name == "time" else name for name in found.column_names]
        return found.rename_columns(names)

    def metrics(self, prefix: str) -> pa.Table:
        return self._store.metrics(prefix, self._hidden)

    def sql(self, text: str) -> pa.Table:
        undescribed = self._store.metadata.signed.hidden_anywhere(self._keys)
        return self._store.sql(text, without=self._hidden, undescribed=undescribed)

    @property
    def _hidden(self) -> frozenset[str]:
        return self._store.metadata.signed.hidden(self._node, self._keys)
