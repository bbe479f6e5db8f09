"""The newest value of every metric and entity, in memory.

Newest is by event time; of equal times the one that came later. Names are kept once; everything
else lies in flat arrays sorted by metric and entity: some ten bytes a value beside its names.
"""

from __future__ import annotations

import threading
from itertools import repeat
from typing import Any

import numpy as np
import pyarrow as pa

from fogline.storage.names import Patterns
from fogline.storage.values import (
    BATCH,
    NAME,
    TIME,
    Integers,
    as_one_array,
    codes,
    join_tables,
    micros,
)

_SHIFT = 32
_MASK = (1 << _SHIFT) - 1
_ROW_BYTES = 8 * 6
_NAME_BYTES = 150
_NOBODY = -1
"""The number of no name."""


class NameNumbers:
    """Numbers for names, given out in order."""

    def __init__(self) -> None:
        self.ids: dict[str, int] = {}
        self.bytes = 0
        self._texts = pa.array([], pa.string())
        self._new: list[str] = []
        """Those that came since `texts` was asked for."""

    def learn(self, names: list[str]) -> Integers:
        return np.fromiter((self._id(name) for name in names), np.int64, len(names))

    def _id(self, name: str) -> int:
        found = self.ids.get(name)
        if found is None:
            found = self.ids[name] = len(self.ids)
            self._new.append(name)
            self.bytes += _NAME_BYTES + len(name)
        return found

    def matching(self, patterns: Patterns) -> Integers:
        """The numbers of the names that match, in order."""
        known = map(self.ids.get, patterns.exact, repeat(_NOBODY))
        found = np.fromiter(known, np.int64, len(patterns.exact))
        if patterns.prefixes:
            begin = [i for name, i in self.ids.items() if name.startswith(patterns.prefixes)]
            found = np.append(found, np.array(begin, np.int64))
        return np.unique(found[found != _NOBODY])

    def column(self, ids: Integers) -> Any:
        """The names of these numbers; their dictionary holds no others."""
        used, places = np.unique(ids, return_inverse=True)
        if len(used) and used[0] == _NOBODY:
            if len(used) == 1:
                return pa.nulls(len(ids), NAME)
            used, places = used[1:], places - 1
        indices = pa.array(places.astype(np.int32), mask=ids == _NOBODY)
        return pa.DictionaryArray.from_arrays(indices, self.texts.take(pa.array(used)))

    @property
    def texts(self) -> Any:
        """All names, each at its number."""
        if self._new:
            new, self._new = pa.array(self._new, pa.string()), []
            self._texts = pa.concat_arrays([self._texts, new])
        return self._texts


class Latest:
    """Filled by one thread, read by any. No call waits for anything but short copies."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._guard = threading.Lock()
        self.incomplete = False
        """Whether values were given up because there was no space for them."""
        self._clear()

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def bytes(self) -> int:
        """An estimate, on the high side, of the memory in use."""
        names = self._metrics.bytes + self._entities.bytes + self._labels.bytes
        return len(self._keys) * _ROW_BYTES + names + self._text_bytes

    def apply(self, table: pa.Table, arrival: int) -> None:
        """Takes the newest values of a batch, whose rows are in the order of their arrival."""
        if not len(table):
            return
        with self._guard:
            self._apply(table, arrival)
            if self.bytes > self.max_bytes:
                self._shrink()

    def find(self, metrics: Patterns | None = None, entities: Patterns | None = None) -> pa.Table:
        """The values of these metrics and entities as a batch; of all where nothing is named."""
        with self._guard:
            return self._table(self._rows(metrics, entities))

    def forget_before(self, arrival: int) -> int:
        """Drops what arrived before; returns how many values that were."""
        with self._guard:
            keep = self._arrivals >= arrival
            dropped = int(len(keep) - np.count_nonzero(keep))
            if dropped:
                self._rebuild(np.flatnonzero(keep))
            return dropped

    def _clear(self) -> None:
        self._metrics, self._entities, self._labels = NameNumbers(), NameNumbers(), NameNumbers()
        self._keys = np.empty(0, np.int64)
        self._times = np.empty(0, np.int64)
        self._arrivals = np.empty(0, np.int64)
        self._numbers = np.empty(0, np.float64)
        self._texts = np.empty(0, object)
        self._label_ids = np.empty(0, np.int64)
        self._text_bytes = 0

    def _apply(self, table: pa.Table, arrival: int) -> None:
        keys = self._keys_of(table)
        times = micros(table["time"])
        order = np.lexsort((times, keys))
        ordered = keys[order]
        last = np.flatnonzero(np.append(ordered[1:] != ordered[:-1], True))
        rows, keys = order[last], ordered[last]
        self._insert(keys)
        places = np.searchsorted(self._keys, keys)
        newer = times[rows] >= self._times[places]
        self._put(places[newer], table.take(pa.array(rows[newer])), arrival)

    def _keys_of(self, table: pa.Table) -> Integers:
        metric, metrics = codes(table["metric"])
        entity, entities = codes(table["entity"])
        high, low = self._metrics.learn(metrics), self._entities.learn(entities)
        return np.asarray((high[metric] << _SHIFT) | low[entity])

    def _insert(self, keys: Integers) -> None:
        """There is a row for every key; new ones hold a time before all others."""
        places = np.searchsorted(self._keys, keys)
        known = places < len(self._keys)
        known[known] = self._keys[places[known]] == keys[known]
        new, at = keys[~known], places[~known]
        if len(new):
            self._keys = np.insert(self._keys, at, new)
            self._times = np.insert(self._times, at, np.iinfo(np.int64).min)
            self._arrivals = np.insert(self._arrivals, at, 0)
            self._numbers = np.insert(self._numbers, at, np.nan)
            self._texts = np.insert(self._texts, at, np.array(None, dtype=object))
            self._label_ids = np.insert(self._label_ids, at, _NOBODY)

    def _put(self, places: Integers, table: pa.Table, arrival: int) -> None:
        self._times[places] = micros(table["time"])
        self._arrivals[places] = arrival
        self._numbers[places] = as_one_array(table["value"]).to_numpy(zero_copy_only=False)
        self._put_texts(places, table["text"])
        self._put_labels(places, table["labels"])

    def _put_texts(self, places: Integers, texts: Any) -> None:
        if self._text_bytes or texts.null_count < len(texts):
            self._text_bytes -= _size(self._texts[places])
            self._texts[places] = np.array(texts.to_pylist(), dtype=object)
            self._text_bytes += _size(self._texts[places])

    def _put_labels(self, places: Integers, labels: Any) -> None:
        if labels.null_count == len(labels):
            self._label_ids[places] = _NOBODY
            return
        used = as_one_array(labels.cast(pa.string())).dictionary_encode()
        ids = np.append(self._labels.learn(used.dictionary.to_pylist()), _NOBODY)
        self._label_ids[places] = ids[used.indices.fill_null(-1).to_numpy(zero_copy_only=False)]

    def _rows(self, metrics: Patterns | None, entities: Patterns | None) -> Integers:
        if metrics is None:
            rows = np.arange(len(self._keys))
        else:
            matching = self._metrics.matching(metrics)
            first = np.searchsorted(self._keys, matching << _SHIFT)
            end = np.searchsorted(self._keys, (matching + 1) << _SHIFT)
            rows = _ranges(first, end)
        if entities is not None:
            matching = self._entities.matching(entities)
            rows = rows[np.isin(self._keys[rows] & _MASK, matching)]
        return rows

    def _table(self, rows: Integers) -> pa.Table:
        keys = self._keys[rows]
        columns = [
            self._metrics.column(keys >> _SHIFT),
            self._entities.column(keys & _MASK),
            pa.array(self._times[rows]).view(TIME),
            *self._numbers_and_texts(rows),
            self._labels.column(self._label_ids[rows]),
        ]
        return pa.Table.from_arrays(columns, schema=BATCH)

    def _numbers_and_texts(self, rows: Integers) -> tuple[Any, Any]:
        if not self._text_bytes:
            return pa.array(self._numbers[rows]), pa.nulls(len(rows), pa.string())
        texts = pa.array(self._texts[rows], pa.string())
        return pa.array(self._numbers[rows], mask=texts.is_valid().to_numpy(False)), texts

    def _shrink(self) -> None:
        """Gives up a quarter of the values, those that were not renewed for longest."""
        self.incomplete = True
        oldest = np.lexsort((self._times, self._arrivals))
        self._rebuild(np.sort(oldest[len(oldest) // 4 + 1 :]))

    def _rebuild(self, rows: Integers) -> None:
        """Keeps only these rows, and only their names."""
        arrivals, kept = self._arrivals[rows], join_tables([self._table(rows)])
        self._clear()
        kept = _compact_table(kept)
        keys = self._keys_of(kept)
        self._insert(np.sort(keys))
        places = np.searchsorted(self._keys, keys)
        self._put(places, kept, 0)
        self._arrivals[places] = arrivals


def _ranges(first: Integers, end: Integers) -> Integers:
    """The numbers from each `first` up to its `end`, one after the other."""
    sizes = end - first
    total = int(sizes.sum())
    shifts = np.repeat(first - np.append(0, np.cumsum(sizes)[:-1]), sizes)
    return np.asarray(np.arange(total) + shifts, dtype=np.int64)


def _compact_table(table: pa.Table) -> pa.Table:
    """The same rows; dictionaries hold only names in use."""
    columns = [
        as_one_array(c.cast(pa.string())).dictionary_encode()
        if pa.types.is_dictionary(c.type)
        else c
        for c in table.columns
    ]
    return pa.Table.from_arrays(columns, schema=table.schema)


def _size(texts: Any) -> int:
    return sum(len(text) + 60 for text in texts if text is not None)
