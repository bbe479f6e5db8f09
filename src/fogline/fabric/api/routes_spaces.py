"""Addresses of application data: spaces and their rows, read everywhere and written here."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from fogline.common.errors import ConflictError
from fogline.common.http.bodies import json_object
from fogline.common.http.parameters import QueryParameter, one_of
from fogline.common.http.replies import Json
from fogline.fabric.api.address import (
    ALL,
    CURSOR,
    FROM,
    ORDER,
    SCOPE,
    TO,
    Address,
    ApiRequest,
    limit,
)
from fogline.fabric.api.node import FabricNode
from fogline.fabric.api.replies import arrow_reply, list_reply
from fogline.fabric.api.routes_values import JSON_TYPE, nodes_payload
from fogline.fabric.errors import NotThere
from fogline.fabric.query import times
from fogline.fabric.query.json_tables import rows_json
from fogline.fabric.query.paging import check_whole, no_cursor, seal, unseal
from fogline.fabric.query.space_keys import key_text
from fogline.fabric.query.space_pages import HOUR_US, SpaceInfo, visible_rows
from fogline.fabric.query.spaces import MOST_ROWS, SpaceRange, row_key
from fogline.storage.catalog.spaces import Space, SpaceRow, is_name
from fogline.storage.errors import BadQuery, BadValue
from fogline.storage.values import END_TIME, FIRST_TIME

DEFAULT_ROWS = 1_000
_MOST_AT_ONCE = 100_000


def get_spaces(node: FabricNode, ask: ApiRequest) -> Response:
    """Only those that the caller may read."""
    if ask.values["scope"] == ALL:
        whole = node.fabric.spaces(node.spaces)
        listed = [(i, {"at": list(at)}) for i, at in whole.spaces if _may(ask, i)]
        extra = nodes_payload(whole.nodes)
    else:
        listed, extra = [(info, {}) for info in node.spaces.spaces() if _may(ask, info)], {}
    return Json({"spaces": [info.as_json() | at for info, at in listed], **extra})


def put_space(node: FabricNode, ask: ApiRequest) -> Response:
    body = json_object(ask.body, frozenset({"columns", "key", "memory", "hours", "rows"}))
    key = _key_columns(body)
    space = Space(
        ask.path["space"],
        _columns(body.get("columns")),
        persistent=not _flag(body.get("memory", False)),
        age_us=_read_whole(body.get("hours"), "hours", HOUR_US),
        rows=_read_whole(body.get("rows"), "rows", 1),
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
    return Json(SpaceInfo(space, key).as_json(), 201 if known is None else 200)


def delete_space(node: FabricNode, ask: ApiRequest) -> Response:
    name = node.spaces.info(ask.path["space"]).space.name
    node.store.spaces.drop(name)
    node.keys.forget(name)
    return Json({"deleted": name})


def post_rows(node: FabricNode, ask: ApiRequest) -> Response:
    """All or none; a row with the key and time of one that is there replaces it."""
    info, now = node.spaces.info(ask.path["space"]), time.time_ns() // 1000
    rows = json_object(ask.body, frozenset({"rows"})).get("rows")
    if not isinstance(rows, list) or len(rows) > _MOST_AT_ONCE:
        raise BadValue(f'the body has a list "rows", of at most {_MOST_AT_ONCE}')
    node.store.spaces.put(info.space.name, [_row(item, info.key, now) for item in rows])
    return Json({"stored": len(rows)})


def get_rows(node: FabricNode, ask: ApiRequest) -> Response:
    """Of this node, or of all that have the space: which one holds a row makes no difference."""
    question = _question(ask)
    if ask.values["scope"] == ALL:
        _check_plain(ask)
        whole = node.fabric.space_rows(question, node.spaces)
        page, extra = whole.page, nodes_payload(whole.nodes)
    else:
        page, extra = node.spaces.space_rows(question), {}
    if page.more and len(page.table):
        extra["next"] = seal([question.start, question.end, *page.last], ask.question)
    if ask.values["arrived"] == "true":
        return arrow_reply(page.table, {**extra, "space": page.info.as_json()})
    table = visible_rows(page)
    if ask.arrow:
        return arrow_reply(table, extra)
    return list_reply("rows", rows_json(table), extra)


def delete_rows(node: FabricNode, ask: ApiRequest) -> Response:
    info = node.spaces.info(ask.path["space"])
    key = row_key(info, ask.values["key"])
    deleted = node.store.spaces.delete(info.space.name, key, *_time_bounds(ask))
    return Json({"deleted": deleted})


def _may(ask: ApiRequest, info: SpaceInfo) -> bool:
    return ask.caller.may(f"read:space:{info.space.name}")


def _differs(node: FabricNode, known: Space, requested: Space, key: tuple[str, ...]) -> bool:
    before = known.persistent, dict(known.columns), node.keys.of(known.name)
    return before != (requested.persistent, dict(requested.columns), key)


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
        raise BadValue('the "key" of a space must be a list of columns')
    return tuple(found)


def _flag(found: Any) -> bool:
    if not isinstance(found, bool):
        raise BadValue('"memory" is true or false')
    return found


def _read_whole(found: Any, name: str, unit: int) -> int | None:
    if found is None:
        return None
    if type(found) is not int or not 0 < found < 1 << 40:
        raise BadValue(f'"{name}" must be a whole number above 0')
    return min(found * unit, 1 << 60)


def _row(item: Any, key: tuple[str, ...], now: int) -> SpaceRow:
    if not isinstance(item, dict):
        raise BadValue("a row must be an object")
    fields = dict(item)
    moment = fields.pop("time", None)
    if moment is not None and type(moment) not in (int, str):
        raise BadValue("the time of a row must be a text or a whole number of microseconds")
    when = now if moment is None else times.moment(str(moment), now)
    own = fields.pop("key", None) if not key else key_text([item.get(name) for name in key])
    if not isinstance(own, str):
        raise BadValue('a row must have a "key", a text')
    try:
        "".join([own, *map(str, fields), *(v for v in fields.values() if type(v) is str)]).encode()
    except UnicodeEncodeError as error:
        raise BadValue("a row holds half a character") from error
    return SpaceRow(own, when, fields)


def _time_bounds(ask: ApiRequest) -> tuple[int, int]:
    start, end = ask.values["from"], ask.values["to"]
    return FIRST_TIME if start is None else start, END_TIME if end is None else end


def _question(ask: ApiRequest) -> SpaceRange:
    (start, end), after = _time_bounds(ask), None
    if ask.values["cursor"] is not None:
        try:
            start, end, last, key = unseal(ask.values["cursor"], ask.question)
            start, end, after = (
                check_whole(start),
                check_whole(end),
                (check_whole(last), _text(key)),
            )
        except (ValueError, TypeError) as error:
            raise no_cursor() from error
    given = ask.values["key"]
    return SpaceRange(
        ask.path["space"],
        None if given is None else tuple(given),
        *(start, end, ask.values["limit"], ask.values["order"] == "desc", after),
    )


def _text(found: object) -> str:
    return str(found).encode("utf-8", "replace").decode()


def _check_plain(ask: ApiRequest) -> None:
    """What nodes ask each other is not asked of all; names that cannot be are nowhere."""
    if ask.values["arrived"] == "true":
        raise BadQuery("arrived is for scope=node", "add scope=node")
    if not is_name(ask.path["space"]):
        raise NotThere(f"unknown space {ask.path['space']!r:.80}")


_KEY = QueryParameter("key", "Only rows of this key; once for each column of it", many=True)
_ARRIVED = QueryParameter(
    *("arrived", "With scope=node: Arrow with _key and _arrived, as nodes ask each other"),
    *(one_of("arrived", "true", "false"), "false"),
)
_ROWS = "/v1/spaces/{space}/rows"

ROUTES = (
    Address("GET", "/v1/spaces", get_spaces, "The spaces that you may read", "", (SCOPE,)),
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
        (_KEY, FROM, TO, limit(DEFAULT_ROWS, MOST_ROWS), CURSOR, ORDER, SCOPE, _ARRIVED),
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
