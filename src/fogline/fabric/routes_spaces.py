"""Addresses of application data at this node: spaces and their rows."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from fogline.fabric import times
from fogline.fabric.address import CURSOR, FROM, ORDER, TO, Address, Ask, Parameter, limit
from fogline.fabric.bodies import json_object
from fogline.fabric.node import Node
from fogline.fabric.paging import no_cursor, seal, unseal, whole
from fogline.fabric.replies import ConflictError, NotThereError, json_reply
from fogline.fabric.routes_values import JSON_TYPE
from fogline.fabric.space_keys import key_text
from fogline.storage.errors import BadQuery, BadValue, QueryLimit
from fogline.storage.spaces import Row, Space
from fogline.storage.values import END_TIME, FIRST_TIME

DEFAULT_ROWS = 1_000
MOST_ROWS = 10_000
_MOST_AT_ONCE = 100_000
_HOUR_US = 3_600_000_000


def get_spaces(node: Node, ask: Ask) -> Response:
    """Only those that the caller may read."""
    mine = [s for s in node.store.spaces.all() if ask.caller.may(f"read:space:{s.name}")]
    return json_reply({"spaces": [_told(node, space) for space in mine]})


def put_space(node: Node, ask: Ask) -> Response:
    body = json_object(ask.body, frozenset({"columns", "key", "memory", "hours", "rows"}))
    key = _key_columns(body)
    space = Space(
        ask.path["space"],
        _columns(body.get("columns")),
        persistent=not _flag(body.get("memory", False)),
        age_us=_whole(body.get("hours"), "hours", _HOUR_US),
        rows=_whole(body.get("rows"), "rows", 1),
    )
    if not set(key) <= set(space.columns):
        raise BadValue(
            f"the key is made of columns, and {min(set(key) - set(space.columns))} is none"
        )
    known = {item.name: item for item in node.store.spaces.all()}.get(space.name)
    if known is not None and _differs(node, known, space, key):
        raise ConflictError(f"the space {space.name} has other columns", "delete it first")
    node.keys.set(space.name, key)
    node.store.spaces.create(space)
    return json_reply(_told(node, space), 201 if known is None else 200)


def delete_space(node: Node, ask: Ask) -> Response:
    space = _space(node, ask)
    node.store.spaces.drop(space.name)
    node.keys.forget(space.name)
    return json_reply({"deleted": space.name})


def post_rows(node: Node, ask: Ask) -> Response:
    """All or none; a row with the key and time of one that is there replaces it."""
    space, now = _space(node, ask), time.time_ns() // 1000
    rows = json_object(ask.body, frozenset({"rows"})).get("rows")
    if not isinstance(rows, list) or len(rows) > _MOST_AT_ONCE:
        raise BadValue(f'the body has a list "rows", of at most {_MOST_AT_ONCE}')
    key = node.keys.of(space.name)
    node.store.spaces.put(space.name, [_row(item, key, now) for item in rows])
    return json_reply({"stored": len(rows)})


def get_rows(node: Node, ask: Ask) -> Response:
    space = _space(node, ask)
    start, end, after = _page_start(ask)
    rows, more = _page(node, ask, space.name, (start, end), after)
    key = node.keys.of(space.name)
    extra: dict[str, Any] = {}
    if more:
        extra["next"] = seal([start, end, rows[-1].time, rows[-1].key], ask.question)
    return json_reply({"rows": [_shown(row, key) for row in rows], **extra})


def delete_rows(node: Node, ask: Ask) -> Response:
    space = _space(node, ask)
    start, end = _stretch(ask)
    return json_reply(
        {"deleted": node.store.spaces.delete(space.name, _key(node, ask), start, end)}
    )


def _space(node: Node, ask: Ask) -> Space:
    name = ask.path["space"]
    for space in node.store.spaces.all():
        if space.name == name:
            return space
    raise NotThereError(f"there is no space {name!r:.80}")


def _told(node: Node, space: Space) -> dict[str, Any]:
    return {
        "space": space.name,
        "columns": dict(space.columns),
        "key": list(node.keys.of(space.name)) or ["key"],
        "memory": not space.persistent,
        "hours": None if space.age_us is None else space.age_us // _HOUR_US,
        "rows": space.rows,
    }


def _differs(node: Node, known: Space, wanted: Space, key: tuple[str, ...]) -> bool:
    before = known.persistent, dict(known.columns), node.keys.of(known.name)
    return before != (wanted.persistent, dict(wanted.columns), key)


def _columns(found: Any) -> dict[str, str]:
    if not isinstance(found, dict) or not all(isinstance(kind, str) for kind in found.values()):
        raise BadValue('a space needs "columns", names and their types')
    return found


def _key_columns(body: Mapping[str, Any]) -> tuple[str, ...]:
    found = body.get("key")
    if found is None or found == ["key"]:
        return ()
    texts = isinstance(found, list) and all(isinstance(name, str) for name in found)
    if not texts or not found or len(set(found)) < len(found):
        raise BadValue('the "key" of a space is a list of columns')
    return tuple(found)


def _flag(found: Any) -> bool:
    if not isinstance(found, bool):
        raise BadValue('"memory" is true or false')
    return found


def _whole(found: Any, name: str, unit: int) -> int | None:
    if found is None:
        return None
    if type(found) is not int or not 0 < found < 1 << 40:
        raise BadValue(f'"{name}" is a whole number above 0')
    return min(found * unit, 1 << 60)


def _row(item: Any, key: tuple[str, ...], now: int) -> Row:
    if not isinstance(item, dict):
        raise BadValue("a row is an object")
    fields = dict(item)
    moment = fields.pop("time", None)
    if moment is not None and type(moment) not in (int, str):
        raise BadValue("the time of a row is a text or a whole number of microseconds")
    when = now if moment is None else times.moment(str(moment), now)
    own = fields.pop("key", None) if not key else key_text([item.get(name) for name in key])
    if not isinstance(own, str):
        raise BadValue('a row needs a "key", a text')
    try:
        "".join([own, *map(str, fields), *(v for v in fields.values() if type(v) is str)]).encode()
    except UnicodeEncodeError as error:
        raise BadValue("a row holds half a character") from error
    return Row(own, when, fields)


def _shown(row: Row, key: tuple[str, ...]) -> dict[str, Any]:
    whose = {} if key else {"key": row.key}
    return {**whose, "time": times.text(row.time), **row.fields}


def _key(node: Node, ask: Ask) -> str | None:
    given = ask.values["key"]
    columns = node.keys.of(ask.path["space"])
    if given is None:
        return None
    if len(given) != max(len(columns), 1):
        raise BadQuery(f"the key of this space is {' and '.join(columns) or 'one text'}")
    return key_text(given)


def _stretch(ask: Ask) -> tuple[int, int]:
    start, end = ask.values["from"], ask.values["to"]
    return FIRST_TIME if start is None else start, END_TIME if end is None else end


def _page_start(ask: Ask) -> tuple[int, int, tuple[int, str] | None]:
    if ask.values["cursor"] is None:
        return *_stretch(ask), None
    try:
        start, end, last, key = unseal(ask.values["cursor"], ask.question)
        return whole(start), whole(end), (whole(last), str(key))
    except (ValueError, TypeError) as error:
        raise no_cursor() from error


def _page(
    node: Node, ask: Ask, space: str, stretch: tuple[int, int], after: tuple[int, str] | None
) -> tuple[list[Row], bool]:
    """A page behind a row, and whether there are more.

    The store orders by time and key; rows of the last time that were told already are left out, and
    as many more are asked for as it takes.
    """
    start, end = stretch
    wanted, descending = ask.values["limit"], ask.values["order"] == "desc"
    if after is not None:
        start, end = (start, after[0] + 1) if descending else (after[0], end)
    take = wanted + 1
    while True:
        rows = node.store.spaces.range(space, _key(node, ask), start, end, take, descending)
        left = [row for row in rows if after is None or _behind(row, after, descending)]
        if len(left) > wanted or len(rows) < take:
            return left[:wanted], len(left) > wanted
        if take >= _MOST_AT_ONCE:
            raise QueryLimit("too many rows have the same time", "ask for one key")
        take = min(2 * take, _MOST_AT_ONCE)


def _behind(row: Row, after: tuple[int, str], descending: bool) -> bool:
    place = row.time, row.key.encode()
    last = after[0], after[1].encode("utf-8", "replace")
    return place < last if descending else place > last


_KEY = Parameter("key", "Only rows of this key; once for each column of it", many=True)
_ROWS = "/v1/spaces/{space}/rows"

ROUTES = (
    Address("GET", "/v1/spaces", get_spaces, "The spaces of this node that you may read", ""),
    Address(
        *("PUT", "/v1/spaces/{space}", put_space, "Make a space", "write:space:{space}"),
        *((), (JSON_TYPE,)),
    ),
    Address(
        *("DELETE", "/v1/spaces/{space}", delete_space, "Remove a space and its rows"),
        "write:space:{space}",
    ),
    Address(
        *("GET", _ROWS, get_rows, "Rows by key and time, in pages", "read:space:{space}"),
        (_KEY, FROM, TO, limit(DEFAULT_ROWS, MOST_ROWS), CURSOR, ORDER),
    ),
    Address(
        *("POST", _ROWS, post_rows, "Put rows in, or replace them", "write:space:{space}"),
        *((), (JSON_TYPE,)),
    ),
    Address(
        *("DELETE", _ROWS, delete_rows, "Remove rows by key and time", "write:space:{space}"),
        (_KEY, FROM, TO),
    ),
)
