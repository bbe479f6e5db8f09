"""Application data: named spaces of timestamped rows with columns of the user's own.

A space is in memory, lost with the process, or on disk. A row has a key and a time; putting a row
with the same key and time again replaces it.
"""

from __future__ import annotations

import json
import math
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from fogline.storage.catalog.database import Database
from fogline.storage.errors import BadQuery, BadValue, StoreError
from fogline.storage.limits import StoreLimits
from fogline.storage.values import END_TIME, FIRST_TIME, NAME_BYTES, TEXT_BYTES

TYPES: dict[str, type] = {"number": float, "integer": int, "text": str, "boolean": bool}
_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}", re.ASCII)
_SQL = {"number": "REAL", "integer": "INTEGER", "text": "TEXT", "boolean": "INTEGER"}
_MAX_COLUMNS = 100
_MAX_ROWS = 100_000
_PIECE = 1_000
_PAUSE_SECONDS = 0.002
SpaceField = float | int | str | bool | None


def is_name(text: str) -> bool:
    """Whether this is a valid name of a space or a column."""
    return bool(_NAME.fullmatch(text))


@dataclass(frozen=True, slots=True)
class Space:
    """What a space looks like. `age_us` (of a row's time) and `rows` limit what it keeps; without
    them the limits of the store hold."""

    name: str
    columns: Mapping[str, str]
    persistent: bool = False
    age_us: int | None = None
    rows: int | None = None

    def __post_init__(self) -> None:
        for name in (self.name, *self.columns):
            if not is_name(name):
                raise BadValue(f"invalid name of a space or column {name!r:.80}", "a-z, 0-9 and _")
        unknown = set(self.columns.values()) - set(TYPES)
        if unknown or not 0 < len(self.columns) <= _MAX_COLUMNS:
            raise BadValue(f"a space has 1 to {_MAX_COLUMNS} columns of {', '.join(TYPES)}")
        if {"key", "time"} & set(self.columns):
            raise BadValue("key and time are columns of every space")


@dataclass(frozen=True, slots=True)
class SpaceRow:
    """One row; `time` is microseconds since 1970. `arrived` is set for rows that are read."""

    key: str
    time: int
    fields: Mapping[str, SpaceField] = field(default_factory=dict)
    arrived: int = field(default=0, compare=False)


class Spaces:
    """All spaces of a site; for any thread, as long as both databases are open."""

    def __init__(
        self, disk: Database, memory: Database, limits: StoreLimits, clock: Callable[[], int]
    ) -> None:
        self._databases = {True: disk, False: memory}
        self._limits = limits
        self._clock = clock
        self._at_most: dict[str, int] = {}
        """Of spaces whose rows were counted: there are no more than these."""
        self._guard = threading.Lock()
        disk.run("CREATE TABLE IF NOT EXISTS spaces (name TEXT PRIMARY KEY, body TEXT)")
        rows = disk.ask("SELECT body FROM spaces")
        self._spaces = {space.name: space for space in (Space(**json.loads(r[0])) for r in rows)}
        for space in self._spaces.values():
            self._make(space)

    def create(self, space: Space) -> None:
        """Does nothing for one that is there with the same columns. Raises `BadValue`."""
        with self._guard:
            known = self._spaces.get(space.name)
            if known is not None and (known.persistent, dict(known.columns)) != (
                space.persistent,
                dict(space.columns),
            ):
                raise BadValue(f"the space {space.name} has other columns", "drop it first")
            self._make(space)
            if space.persistent:
                body = json.dumps(_as_json(space))
                self._database(space).run("REPLACE INTO spaces VALUES (?, ?)", (space.name, body))
            self._spaces[space.name] = space

    def drop(self, name: str) -> None:
        with self._guard:
            space = self._space(name)
            if space.persistent:
                self._database(space).run("DELETE FROM spaces WHERE name = ?", (name,))
            self._database(space).run(f'DROP TABLE IF EXISTS "space_{name}"')
            del self._spaces[name]
            self._at_most.pop(name, None)

    def all(self) -> tuple[Space, ...]:
        return tuple(self._spaces[name] for name in sorted(self._spaces))

    def put(self, name: str, rows: Iterable[SpaceRow]) -> None:
        """All rows or none. Raises `BadValue` for one that does not fit the columns."""
        space = self._space(name)
        marks = ", ".join("?" * (len(space.columns) + 3))
        now = self._clock()
        prepared = [(*_prepare_row(space, row), now) for row in rows]
        if name in self._at_most:
            self._at_most[name] += len(prepared)
        self._database(space).run_all(f'REPLACE INTO "space_{name}" VALUES ({marks})', prepared)

    def get(self, name: str, key: str) -> SpaceRow | None:
        """The newest row of a key."""
        found = self.range(name, key, limit=1, descending=True)
        return found[0] if found else None

    def range(
        self,
        name: str,
        key: str | None = None,
        start: int = FIRST_TIME,
        end: int = END_TIME,
        limit: int = 10_000,
        descending: bool = False,
        after: tuple[int, str] | None = None,
    ) -> list[SpaceRow]:
        """Rows of one key or of all, from `start` up to, not including, `end`, by time and key:
        those behind the time and key `after`."""
        if not 0 < limit <= _MAX_ROWS:
            raise BadQuery(f"an answer has 1 to {_MAX_ROWS} rows, not {limit}")
        space = self._space(name)
        where, values = _where(key, start, end)
        way = "DESC" if descending else "ASC"
        if after is not None:
            where += f" AND (time, key) {'<' if descending else '>'} (?, ?)"
            values = (*values, *after)
        own = (f'"{column}"' for column in space.columns)
        columns = ", ".join(["key", "time", "_arrived", *own])
        query = (
            f'SELECT {columns} FROM "space_{name}" {where} ORDER BY time {way}, key {way} LIMIT ?'
        )
        return [_row(space, row) for row in self._database(space).ask(query, (*values, limit))]

    def delete(
        self, name: str, key: str | None = None, start: int = FIRST_TIME, end: int = END_TIME
    ) -> int:
        """Removes rows of one key or of all; returns how many."""
        space = self._space(name)
        where, values = _where(key, start, end)
        return self._database(space).run(f'DELETE FROM "space_{name}" {where}', values)

    def bytes(self, persistent: bool) -> int:
        """What the spaces on disk, or those in memory, take there."""
        kind = [space for space in self.all() if space.persistent == persistent]
        return self._databases[persistent].bytes if kind else 0

    def evict(self, now: int) -> int:
        """Enforces all limits; returns how many rows went.

        Looks before it deletes, and deletes in small pieces, so that nobody waits for it long."""
        deleted = 0
        for space in self.all():
            try:
                deleted += self._evict(space, now)
            except StoreError:
                if space.name in self._spaces:  # else it was dropped meanwhile
                    raise
        for persistent in (True, False):
            deleted += self._shrink(persistent)
        return deleted

    def _evict(self, space: Space, now: int) -> int:
        """By the limits of its own; where it has none for their age, rows on disk go by that of the
        store, which counts from their arrival."""
        deleted = 0
        if space.age_us is not None:
            deleted += self._delete_oldest(space, "time", now - space.age_us)
        elif space.persistent:
            deleted += self._delete_oldest(space, "_arrived", now - self._limits.age_us)
        if space.rows is not None:
            deleted += self._keep_rows(space, space.rows)
        return deleted

    def _delete_oldest(self, space: Space, column: str, before: int) -> int:
        deleted = 0
        while piece := self._delete_piece(
            space, f"WHERE {column} < ? ORDER BY {column}", (before,)
        ):
            deleted += piece
        return deleted

    def _keep_rows(self, space: Space, most: int) -> int:
        """Rows are counted only when there may be too many."""
        known = self._at_most.get(space.name)
        if known is not None and known <= most:
            return 0
        self._at_most[space.name] = 0
        asked = self._database(space).ask(f'SELECT count(*) FROM "space_{space.name}"')
        counted = int(asked[0][0])
        left = counted - most
        while left > 0:
            left -= self._delete_piece(space, "ORDER BY time, key", (), min(left, _PIECE)) or left
        self._at_most[space.name] += min(counted, most)
        return max(counted - most, 0)

    def _shrink(self, persistent: bool) -> int:
        """Rows that came first go until the rest fits into half of the store's space."""
        limit = (self._limits.disk_bytes if persistent else self._limits.latest_bytes) // 2
        deleted = 0
        while self.bytes(persistent) > limit:
            oldest = self._oldest(persistent)
            if oldest is None:
                break
            deleted += self._delete_piece(oldest, "ORDER BY _arrived", ())
        return deleted

    def _oldest(self, persistent: bool) -> Space | None:
        """The space whose first row came first."""
        found = []
        for space in self.all():
            if space.persistent == persistent:
                query = f'SELECT min(_arrived) FROM "space_{space.name}"'
                found.append((self._database(space).ask(query)[0][0], space))
        full = [pair for pair in found if pair[0] is not None]
        return min(full, key=lambda pair: (pair[0], pair[1].name))[1] if full else None

    def _delete_piece(
        self, space: Space, which: str, values: tuple[object, ...], most: int | None = None
    ) -> int:
        table = f'"space_{space.name}"'
        chosen = f"SELECT key, time FROM {table} {which} LIMIT {most or _PIECE}"
        statement = f"DELETE FROM {table} WHERE (key, time) IN ({chosen})"
        deleted = self._database(space).run(statement, values)
        if deleted:
            time.sleep(_PAUSE_SECONDS)  # whoever waits for the database comes first
        return deleted

    def _make(self, space: Space) -> None:
        """Its table and what finds the oldest rows in it."""
        name, database = space.name, self._database(space)
        columns = "".join(f', "{column}" {_SQL[kind]}' for column, kind in space.columns.items())
        body = f"key TEXT, time INTEGER{columns}, _arrived INTEGER, PRIMARY KEY (key, time)"
        database.run(f'CREATE TABLE IF NOT EXISTS "space_{name}" ({body}) WITHOUT ROWID')
        known = database.ask(f'PRAGMA table_info("space_{name}")')
        if "_arrived" not in {row[1] for row in known}:  # of an older version
            database.run(f'ALTER TABLE "space_{name}" ADD COLUMN _arrived INTEGER')
            database.run(f'UPDATE "space_{name}" SET _arrived = ?', (self._clock(),))
        for index, on in (("time", "time, key"), ("arrived", "_arrived")):
            made = f'"{index}_of_{name}" ON "space_{name}" ({on})'
            database.run(f"CREATE INDEX IF NOT EXISTS {made}")

    def _space(self, name: str) -> Space:
        if name not in self._spaces:
            raise BadQuery(f"unknown space {name!r:.80}")
        return self._spaces[name]

    def _database(self, space: Space) -> Database:
        return self._databases[space.persistent]


def _as_json(space: Space) -> dict[str, object]:
    return {name: getattr(space, name) for name in Space.__dataclass_fields__} | {
        "columns": dict(space.columns)
    }


def _where(key: str | None, start: int, end: int) -> tuple[str, tuple[object, ...]]:
    start, end = (min(max(at, FIRST_TIME), END_TIME) for at in (start, end))
    if key is None:
        return "WHERE time >= ? AND time < ?", (start, end)
    return "WHERE time >= ? AND time < ? AND key = ?", (start, end, key)


def _prepare_row(space: Space, row: SpaceRow) -> tuple[object, ...]:
    if not isinstance(row.key, str) or len(row.key) > NAME_BYTES:
        raise BadValue(f"a key must be a text of at most {NAME_BYTES} characters")
    if not isinstance(row.time, int) or not FIRST_TIME <= row.time < END_TIME:
        raise BadValue("a time is outside the years 1 to 9998")
    unknown = set(row.fields) - set(space.columns)
    if unknown:
        raise BadValue(f"the space {space.name} has no column {min(unknown)!r:.80}")
    values = (_field(row.fields.get(name), name, kind) for name, kind in space.columns.items())
    return (row.key, row.time, *values)


def _field(value: SpaceField, name: str, kind: str) -> SpaceField:
    if value is None:
        return None
    expected = TYPES[kind]
    fits = type(value) is expected or (kind == "number" and type(value) is int)
    if not fits or (isinstance(value, str) and len(value) > TEXT_BYTES):
        raise BadValue(f"column {name} holds a {kind}, not {value!r:.80}")
    if kind == "integer" and not -(1 << 63) <= int(value) < 1 << 63:
        raise BadValue(f"column {name} holds whole numbers of 64 bits")
    return _number(value, name) if kind == "number" else value


def _number(value: SpaceField, name: str) -> float:
    """SQLite would keep NaN as nothing, so it is rejected."""
    assert isinstance(value, int | float)
    try:
        number = float(value)
    except OverflowError as error:
        raise BadValue(f"the number for column {name} is too large") from error
    if math.isnan(number):
        raise BadValue(f"column {name} holds a number, not NaN")
    return number


def _row(space: Space, row: tuple[object, ...]) -> SpaceRow:
    key, at, arrived, *rest = row
    found: dict[str, SpaceField] = {}
    for (name, kind), value in zip(space.columns.items(), rest, strict=True):
        found[name] = TYPES[kind](value) if value is not None else None
    assert isinstance(key, str)
    assert isinstance(at, int)
    assert isinstance(arrived, int)
    return SpaceRow(key, at, found, arrived)
