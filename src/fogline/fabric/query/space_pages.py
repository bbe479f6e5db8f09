"""Rows of application data as tables, and the rows of several nodes as one. No I/O.

Rows are identified by key and time. Where several nodes have the same one, the row that came last
counts, as it does at one node, which replaces the older one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fogline.common.errors import ConflictError
from fogline.fabric.query import tables
from fogline.storage.catalog.spaces import Space, SpaceRow
from fogline.storage.errors import BadValue
from fogline.storage.values import TIME, micros

KEY, ARRIVED = "_key", "_arrived"
"""Columns that no space can have: a row's key as one text, and when the row came."""
HOUR_US = 3_600_000_000
_TYPES = {
    "number": pa.float64(),
    "integer": pa.int64(),
    "text": pa.string(),
    "boolean": pa.bool_(),
}

RowPlace = tuple[int, str]
"""Time and key of a row: its place in a space."""


@dataclass(frozen=True, slots=True)
class SpaceInfo:
    """What a space at a node looks like. An empty `key` means that rows have one of their own."""

    space: Space
    key: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        space = self.space
        return {
            "space": space.name,
            "columns": dict(space.columns),
            "key": list(self.key) or ["key"],
            "memory": not space.persistent,
            "hours": None if space.age_us is None else space.age_us // HOUR_US,
            "rows": space.rows,
        }

    @classmethod
    def from_json(cls, payload: object) -> SpaceInfo:
        """Raises `BadValue` for what is none."""
        try:
            found: dict[str, Any] = dict(payload)  # type: ignore[call-overload]
            columns = {str(name): str(kind) for name, kind in found["columns"].items()}
            hours, rows = (None if found[n] is None else int(found[n]) for n in ("hours", "rows"))
            key = tuple(map(str, found["key"]))
            age = None if hours is None else hours * HOUR_US
            space = Space(str(found["space"]), columns, not found["memory"], age, rows)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise BadValue("a space that cannot be understood") from error
        return cls(space, () if key == ("key",) else key)


@dataclass(frozen=True, slots=True)
class SpacePage:
    """Rows of a space with the columns of `schema`, in the order that was asked for."""

    info: SpaceInfo
    table: pa.Table
    more: bool
    """Whether there are rows behind these."""

    @property
    def last(self) -> RowPlace:
        """The place of the last row."""
        end = self.table.slice(len(self.table) - 1)
        return int(micros(end["time"])[0]), str(end[KEY][0].as_py())


def schema(columns: Mapping[str, str]) -> pa.Schema:
    own = [(name, _TYPES[kind]) for name, kind in columns.items()]
    return pa.schema([(KEY, pa.string()), ("time", TIME), *own, (ARRIVED, TIME)])


def to_table(columns: Mapping[str, str], rows: Sequence[SpaceRow]) -> pa.Table:
    target = schema(columns)
    found: list[Any] = [
        [row.key for row in rows],
        pa.array([row.time for row in rows], pa.int64()).cast(TIME),
        *([row.fields.get(name) for row in rows] for name in columns),
        pa.array([row.arrived for row in rows], pa.int64()).cast(TIME),
    ]
    arrays = [pa.array(column, field.type) for column, field in zip(found, target, strict=True)]
    return pa.table(arrays, schema=target)


def check_rows(table: pa.Table, info: SpaceInfo) -> pa.Table:
    """The columns that the space has. Raises `BadValue` when they are others."""
    found = tables.select_columns(table, schema(info.space.columns))
    if found[KEY].null_count or found[ARRIVED].null_count:
        raise BadValue("rows without a key")
    return found


def behind(table: pa.Table, place: RowPlace, descending: bool) -> bool:
    """Whether all rows lie behind a time and key."""
    last = place[0], place[1].encode("utf-8", "replace")
    places = zip(micros(table["time"]).tolist(), table[KEY].to_pylist(), strict=True)
    found = [(time, key.encode()) for time, key in places]
    return all(at < last if descending else at > last for at in found)


def merge_pages(pages: Mapping[str, SpacePage], limit: int, descending: bool) -> SpacePage:
    """The first `limit` rows of all nodes, each once. Raises `ConflictError` when their columns do
    not go together.

    Right as long as every node gave its own first `limit` rows, or all it has.
    """
    nodes = sorted(pages)
    info = _common(pages)
    target = schema(info.space.columns)
    parts = [_widen_table(pages[node].table, target) for node in nodes]
    whole = _newest(pa.concat_tables(parts), [len(part) for part in parts])
    if descending:
        whole = whole.take(pa.array(np.arange(len(whole))[::-1].copy()))
    more = len(whole) > limit or any(page.more for page in pages.values())
    return SpacePage(info, whole.slice(0, limit), more)


def _common(pages: Mapping[str, SpacePage]) -> SpaceInfo:
    """All columns that any node has; the space itself as the first node has it."""
    nodes = sorted(pages)
    first = pages[nodes[0]].info
    columns: dict[str, str] = {}
    for node in nodes:
        info = pages[node].info
        other = [n for n, kind in info.space.columns.items() if columns.setdefault(n, kind) != kind]
        if other or info.key != first.key:
            what = f"the column {other[0]}" if other else "the key"
            raise ConflictError(
                f"{what} of the space {info.space.name} is another at {node} than at {nodes[0]}",
                "ask one node with scope=node, or make the spaces equal",
            )
    space = first.space
    whole = Space(space.name, columns, space.persistent, space.age_us, space.rows)
    return SpaceInfo(whole, first.key)


def _widen_table(table: pa.Table, target: pa.Schema) -> pa.Table:
    missing = [field for field in target if field.name not in table.column_names]
    for field in missing:
        table = table.append_column(field, pa.nulls(len(table), field.type))
    return table.select(target.names)


def _newest(table: pa.Table, sizes: Sequence[int]) -> pa.Table:
    """By time and key; of equal ones the last that came, at the last node where that is equal."""
    numbers = pa.array(np.repeat(np.arange(len(sizes)), sizes))
    sorting = ("time", KEY, ARRIVED, "node")
    counted = table.select([KEY, "time", ARRIVED]).append_column("node", numbers)
    order = pc.sort_indices(counted, sort_keys=[(name, "ascending") for name in sorting])
    found = table.take(order).combine_chunks()
    if len(found) < 2:
        return found
    times, keys = micros(found["time"]), found[KEY]
    other_key = pc.not_equal(keys.slice(1), keys.slice(0, len(keys) - 1))
    differs = (times[1:] != times[:-1]) | np.asarray(other_key.to_numpy())
    return found.filter(pa.array(np.append(differs, True)))


def visible_rows(page: SpacePage) -> pa.Table:
    """As whoever asks sees it: the key as the space's columns say, no arrivals."""
    found = page.table.drop_columns([ARRIVED])
    if page.info.key:
        return found.drop_columns([KEY])
    return found.rename_columns(["key" if name == KEY else name for name in found.column_names])
