"""A store's own values as answers."""

from __future__ import annotations

import pyarrow as pa

from fogline.fabric.asking import Aggregate, Names, Place, Range
from fogline.storage.store import SiteStore


class StoreAnswers:
    """`Answers` of a store of this process: the site's own, or a copy of another's."""

    def __init__(self, store: SiteStore) -> None:
        self._store = store

    def latest(self, names: Names) -> pa.Table:
        return self._store.latest(names.metrics, names.entities)

    def range(self, question: Range, after: Place | None = None) -> pa.Table:
        return self._store.rows(
            *(question.names.metrics, question.names.entities, question.start, question.end),
            limit=question.limit,
            after=after,
            descending=question.descending,
            share=question.share,
        )

    def aggregate(self, question: Aggregate) -> pa.Table:
        found = self._store.aggregate(
            *(question.bucket, question.names.metrics, question.names.entities),
            *(question.start, question.end),
            functions=question.functions,
            descending=question.descending,
        )
        names = ["bucket" if name == "time" else name for name in found.column_names]
        return found.rename_columns(names)

    def metrics(self, prefix: str) -> pa.Table:
        return self._store.metrics(prefix)

    def sql(self, text: str) -> pa.Table:
        return self._store.sql(text)
