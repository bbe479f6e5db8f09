"""Application data: named spaces of timestamped rows with columns of the user's own.

A space is in memory, gone with the process, or on disk. A row has a key and a time; putting a row
with the same key and time again replaces it.
"""

from __future__ import annotations

import json
import math
import re
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from fogline.storage.database import Database
from fogline.storage.errors import BadQuery, BadValue
from fogline.storage.values import END_TIME, FIRST_TIME, NAME_BYTES, TEXT_BYTES

TYPES: dict[str, type] = {"number": float, "integer": int, "text": str, "boolean": bool}
_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}", re.ASCII)
_SQL = {"number": "REAL", "integer": "INTEGER", "text": "TEXT", "boolean": "INTEGER"}
_MAX_COLUMNS = 100
_MAX_ROWS = 100_000
Field = float | int | str | bool | None


@dataclass(frozen=True, slots=True)
class Space:
    """What a space looks like. `age_us` and `rows` limit what it keeps; nothing: no limit."""

    name: str
    columns: Mapping[str, str]
    persistent: bool = False
    age_us: int | None = None
    rows: int | None = None

    def __post_init__(self) -> None:
        for name in (self.name, *self.columns):
            if not _NAME.fullmatch(name):
                raise BadValue(f"{name!r:.80} is no name for a space or column", "a-z, 0-9 and _")
        unknown = set(self.columns.values()) - set(TYPES)
        if unknown or not 0 < len(self.columns) <= _MAX_COLUMNS:
            raise BadValue(f"a space has 1 to {_MAX_COLUMNS} columns of {', '.join(TYPES)}")
        if {"key", "time"} & set(self.columns):
            raise BadValue("key and time are columns of every space")


@dataclass(frozen=True, slots=True)
class Row:
    """One row; `time` is microseconds since 1970."""

    key: str
    time: int
    fields: Mapping[str, Field] = field(default_factory=dict)


class Spaces:
    """All spaces of a site; for any thread, as long as both databases are open."""

    def __init__(self, disk: Database, memory: Database) -> None:
        self._databases = {True: disk, False: memory}
        self._guard = threading.Lock()
        disk.run("CREATE TABLE IF NOT EXISTS spaces (name TEXT PRIMARY KEY, body TEXT)")
        rows = disk.ask("SELECT body FROM spaces")
        self._spaces = {space.name: space for space in (Space(**json.loads(r[0])) for r in rows)}

    def create(self, space: Space) -> None:
        """Does nothing for one that is there with the same columns. Raises `BadValue`."""
        with self._guard:
            known = self._spaces.get(space.name)
            if known is not None and (known.persistent, dict(known.columns)) != (
                space.persistent,
                dict(space.columns),
            ):
                raise BadValue(f"the space {space.name} has other columns", "drop it first")
            columns = "".join(f', "{name}" {_SQL[t]}' for name, t in space.columns.items())
            table = (
                f'"space_{space.name}" (key TEXT, time INTEGER{columns}, PRIMARY KEY (key, time))'
            )
            self._database(space).run(f"CREATE TABLE IF NOT EXISTS {table} WITHOUT ROWID")
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

    def all(self) -> tuple[Space, ...]:
        return tuple(self._spaces[name] for name in sorted(self._spaces))

    def put(self, name: str, rows: Iterable[Row]) -> None:
        """All rows or none. Raises `BadValue` for one that does not fit the columns."""
        space = self._space(name)
        marks = ", ".join("?" * (len(space.columns) + 2))
        prepared = [_prepared(space, row) for row in rows]
        self._database(space).run_all(f'REPLACE INTO "space_{name}" VALUES ({marks})', prepared)

    def get(self, name: str, key: str) -> Row | None:
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
    ) -> list[Row]:
        """Rows of one key or of all, from `start` up to, not including, `end`, by time and key."""
        if not 0 < limit <= _MAX_ROWS:
            raise BadQuery(f"an answer has 1 to {_MAX_ROWS} rows, not {limit}")
        space = self._space(name)
        where, values = _where(key, start, end)
        way = "DESC" if descending else "ASC"
        query = f'SELECT * FROM "space_{name}" {where} ORDER BY time {way}, key {way} LIMIT ?'
        return [_row(space, row) for row in self._database(space).ask(query, (*values, limit))]

    def delete(
        self, name: str, key: str | None = None, start: int = FIRST_TIME, end: int = END_TIME
    ) -> int:
        """Removes rows of one key or of all; returns how many."""
        space = self._space(name)
        where, values = _where(key, start, end)
        return self._database(space).run(f'DELETE FROM "space_{name}" {where}', values)

    def evict(self, now: int) -> int:
        """Enforces the limits of all spaces; returns how many rows went."""
        return sum(self._evict(space, now) for space in self.all())

    def _evict(self, space: Space, now: int) -> int:
        gone = 0
        if space.age_us is not None:
            gone += self.delete(space.name, end=now - space.age_us)
        if space.rows is not None:
            table = f'"space_{space.name}"'
            oldest = f"SELECT key, time FROM {table} ORDER BY time DESC, key DESC LIMIT -1 OFFSET ?"
            statement = f"DELETE FROM {table} WHERE (key, time) IN ({oldest})"
            gone += self._database(space).run(statement, (space.rows,))
        return gone

    def _space(self, name: str) -> Space:
        if name not in self._spaces:
            raise BadQuery(f"there is no space {name!r:.80}")
        return self._spaces[name]

    def _database(self, space: Space) -> Database:
        return self._databases[space.persistent]


def _as_json(space: Space) -> dict[str, object]:
    return {name: getattr(space, name) for name in Space.__dataclass_fields__} | {
        "columns": dict(space.columns)
    }


def _where(key: str | None, start: int, end: int) -> tuple[str, tuple[object, ...]]:
    start, end = (min(max(time, FIRST_TIME), END_TIME) for time in (start, end))
    if key is None:
        return "WHERE time >= ? AND time < ?", (start, end)
    return "WHERE time >= ? AND time < ? AND key = ?", (start, end, key)


def _prepared(space: Space, row: Row) -> tuple[object, ...]:
    if not isinstance(row.key, str) or len(row.key) > NAME_BYTES:
        raise BadValue(f"a key is a text of at most {NAME_BYTES} characters")
    if not isinstance(row.time, int) or not FIRST_TIME <= row.time < END_TIME:
        raise BadValue("a time is outside the years 1 to 9998")
    unknown = set(row.fields) - set(space.columns)
    if unknown:
        raise BadValue(f"the space {space.name} has no column {min(unknown)!r:.80}")
    values = (_field(row.fields.get(name), name, kind) for name, kind in space.columns.items())
    return (row.key, row.time, *values)


def _field(value: Field, name: str, kind: str) -> Field:
    if value is None:
        return None
    wanted = TYPES[kind]
    fits = type(value) is wanted or (kind == "number" and type(value) is int)
    if not fits or (isinstance(value, str) and len(value) > TEXT_BYTES):
        raise BadValue(f"column {name} holds a {kind}, not {value!r:.80}")
    if kind == "integer" and not -(1 << 63) <= int(value) < 1 << 63:
        raise BadValue(f"column {name} holds whole numbers of 64 bits")
    return _number(value, name) if kind == "number" else value


def _number(value: Field, name: str) -> float:
    """SQLite would keep NaN as nothing, so it is turned away."""
    assert isinstance(value, int | float)
    try:
        number = float(value)
    except OverflowError as error:
        raise BadValue(f"the number for column {name} is too large") from error
    if math.isnan(number):
        raise BadValue(f"column {name} holds a number, not NaN")
    return number


def _row(space: Space, row: tuple[object, ...]) -> Row:
    key, time, *rest = row
    found: dict[str, Field] = {}
    for (name, kind), value in zip(space.columns.items(), rest, strict=True):
        found[name] = TYPES[kind](value) if value is not None else None
    assert isinstance(key, str)
    assert isinstance(time, int)
    return Row(key, time, found)
