"""Addresses of values: the latest, ranges, aggregates, names, changes, SQL, and putting some in."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from starlette.responses import Response

from fogline.common.http.bodies import json_object
from fogline.common.http.parameters import QueryParameter, between, one_of
from fogline.common.http.replies import Json
from fogline.fabric.api.address import (
    ALL,
    CURSOR,
    EACH,
    ENTITY,
    FROM,
    HERE,
    KEYS,
    METRIC,
    MOST_ROWS,
    NODE,
    OF,
    ORDER,
    SCOPE,
    SHARE,
    STALE,
    TO,
    Address,
    ApiRequest,
    limit,
)
from fogline.fabric.api.node import FabricNode
from fogline.fabric.api.replies import arrow_reply, list_reply
from fogline.fabric.api.values_body import from_arrow_body, from_json_body
from fogline.fabric.errors import NotThere
from fogline.fabric.http.arrow import ARROW_TYPE
from fogline.fabric.query import times
from fogline.fabric.query.json_tables import rows_json, values_json
from fogline.fabric.query.metadata_fields import metadata_payload as write_metadata
from fogline.fabric.query.paging import PageStart
from fogline.fabric.query.query_types import (
    AggregateQuery,
    ChangeOffset,
    Everywhere,
    NodeAnswer,
    NodeBackend,
    Range,
    Selected,
)
from fogline.model.question import Question
from fogline.storage.errors import BadQuery
from fogline.storage.query.changes import MAX_SEQ
from fogline.storage.query.queries import AGGREGATES
from fogline.storage.values import NAME, micros

JSON_TYPE = "application/json"
DEFAULT_ROWS = 1_000
DEFAULT_CHANGES = 100_000


def get_latest(node: FabricNode, ask: ApiRequest) -> Response:
    return _latest(node, ask, _names(ask))


def post_latest(node: FabricNode, ask: ApiRequest) -> Response:
    body = json_object(ask.body, frozenset({"metrics", "entities", "nodes"}))
    names = Selected(*(name_list(body.get(key)) for key in ("metrics", "entities", "nodes")))
    return _latest(node, ask, names)


def get_range(node: FabricNode, ask: ApiRequest) -> Response:
    begin = _page_start(ask)
    rows: int = ask.values["limit"]
    descending = ask.values["order"] == "desc"
    share: float = ask.values["share"]
    query = Range(_names(ask), begin.start, begin.end, rows, descending, share)
    if ask.values["scope"] == ALL:
        _no_copy(ask)
        whole = _everywhere(node, ask).range(query, begin.places, ask.values["stale"])
        table, places, nodes = whole.table, whole.places, whole.nodes
    else:
        name, answers = one_node(node, ask)
        table, place = _page(answers, query, begin.places.get(name))
        places, nodes = ({name: place} if place else None), ()
        table = with_node(table, name)
    extra = nodes_payload(nodes) if ask.values["scope"] == ALL else {}
    if places is not None:
        extra["next"] = PageStart(places, begin.start, begin.end).encode(ask.question)
    return _values(ask, table, extra)


def get_aggregate(node: FabricNode, ask: ApiRequest) -> Response:
    query = AggregateQuery(
        ask.values["bucket"],
        _names(ask),
        ask.values["from"],
        ask.values["to"],
        tuple(dict.fromkeys(ask.values["function"] or AGGREGATES)),
        ask.values["order"] == "desc",
    )
    if ask.values["scope"] == ALL:
        _no_copy(ask)
        whole = _everywhere(node, ask).aggregate(query, ask.values["stale"])
        return _rows(ask, whole.table, nodes_payload(whole.nodes))
    name, answers = one_node(node, ask)
    return _rows(ask, with_node(answers.aggregate(query), name), {})


def post_values(node: FabricNode, ask: ApiRequest) -> Response:
    """The answer comes when they are on disk."""
    now = time.time_ns() // 1000
    read = from_arrow_body if ask.type == ARROW_TYPE else from_json_body
    table = read(ask.body, now)
    if len(table):
        node.store.ingest(table)
        node.store.flush()
    return Json({"stored": len(table)})


def post_sql(node: FabricNode, ask: ApiRequest) -> Response:
    text = json_object(ask.body, frozenset({"sql"})).get("sql")
    if not isinstance(text, str):
        raise BadQuery('the body must have a text "sql"')
    scope = ask.values["scope"]
    names = ("metric", "entity", "node", "from", "to")
    given = [name for name in names if ask.values[name] is not None]
    if scope != ALL and given:
        raise BadQuery(f"{given[0]} is for scope=all", "say it in the statement")
    if scope == HERE:
        return _rows(ask, one_node(node, ask)[1].sql(text), {})
    _no_copy(ask)
    if scope == ALL:
        values = Range(_names(ask), ask.values["from"], ask.values["to"])
        whole = _everywhere(node, ask).sql_together(text, values)
    else:
        whole = _everywhere(node, ask).sql(text)
    return _rows(ask, whole.table, nodes_payload(whole.nodes))


def get_changes(node: FabricNode, ask: ApiRequest) -> Response:
    """Of this node, or those that its copy of another holds."""
    after, rows, of = (ask.values[key] for key in ("after", "limit", "of"))
    question = Question(_names(ask).metrics, share=ask.values["share"])
    if of is None or of == node.site:
        hidden = node.store.metadata.signed.hidden(node.site, ask.keys)
        found = node.store.changes(after, question.metrics, rows, question.share, hidden)
        store = node.store.id
    else:
        one_node(node, ask)
        whole = ask.values["whole"] == "true"
        hidden = node.store.metadata.signed.hidden(of, ask.keys)
        found, store = node.fabric.copy_changes(of, after, question, rows, whole, hidden)
    metadata_payload = {"store": store, "last": found.last, "end": found.end}
    return arrow_reply(found.table, metadata_payload | _signatures(node, ask))


def _signatures(node: FabricNode, ask: ApiRequest) -> dict[str, Any]:
    """With the values goes what their node has signed: who gets both never passes on only one."""
    if ask.keys is not None:
        return {}
    found = node.store.metadata.signatures(ask.values["of"] or node.site)
    return {"signed": [write_metadata(item) for item in found]} if found else {}


def one_node(node: FabricNode, ask: ApiRequest) -> tuple[str, NodeBackend]:
    """Whose values are asked for, and who answers: this node's store, or its copy of another."""
    of = ask.values["of"]
    if of is None or of == node.site:
        return node.site, node.own.seen_by(ask.keys)
    copy = node.fabric.copy_of(of)
    if copy is None:
        raise NotThere(f"there is no copy of {of!r:.80} here", "GET /v1/nodes lists copies")
    return of, copy.seen_by(ask.keys)


def _everywhere(node: FabricNode, ask: ApiRequest) -> Everywhere:
    return node.fabric.seen_by(ask.keys)


def with_node(table: pa.Table, name: str) -> pa.Table:
    """The rows of one node, with the column that says so."""
    indices = pa.array(np.zeros(len(table), np.int32))
    column = pa.DictionaryArray.from_arrays(indices, pa.array([name], pa.string()))
    return table.add_column(0, pa.field("node", NAME, nullable=False), column)


def name_list(found: Any) -> tuple[str, ...] | None:
    """Names from a body; nothing stands for all."""
    if found is None:
        return None
    if not isinstance(found, list) or not set(map(type, found)) <= {str}:
        raise BadQuery("names are a list of texts, or null for all")
    return tuple(found)


def _latest(node: FabricNode, ask: ApiRequest, names: Selected) -> Response:
    if ask.values["scope"] == ALL:
        _no_copy(ask)
        whole = _everywhere(node, ask).latest(names, ask.values["stale"])
        return _values(ask, whole.table, nodes_payload(whole.nodes))
    name, answers = one_node(node, ask)
    return _values(ask, with_node(answers.latest(names), name), {})


def _names(ask: ApiRequest) -> Selected:
    found = [ask.values.get(name) for name in ("metric", "entity", "node")]
    return Selected(*(tuple(names) if names else None for names in found))


def _no_copy(ask: ApiRequest) -> None:
    if ask.values["of"] is not None:
        raise BadQuery("of is for scope=node", "add scope=node")


def _page_start(ask: ApiRequest) -> PageStart:
    if ask.values["cursor"] is not None:
        return PageStart.decode(ask.values["cursor"], ask.question)
    return PageStart({}, ask.values["from"], ask.values["to"])


def _page(
    answers: NodeBackend, query: Range, after: ChangeOffset | None
) -> tuple[pa.Table, ChangeOffset | None]:
    """A page of one node, and the place of the next one: one row more is asked for to know."""
    more = replace(query, limit=min(query.limit + 1, MOST_ROWS))
    table = answers.range(more, after)
    page = table.slice(0, query.limit)
    if not len(page) or len(table) < more.limit:
        return page, None
    last = page.slice(len(page) - 1)
    return page, (int(micros(last["time"])[0]), int(last["seq"][0].as_py()))


def nodes_payload(nodes: tuple[NodeAnswer, ...]) -> dict[str, Any]:
    return {"nodes": [_answer_payload(answer.as_json()) for answer in nodes]}


def _answer_payload(answer: Mapping[str, Any]) -> dict[str, Any]:
    moments = {key: answer.get(key) for key in ("until", "since")}
    shown = {key: times.text(at) for key, at in moments.items() if isinstance(at, int)}
    return {**answer, **shown}


def _values(ask: ApiRequest, table: pa.Table, extra: Mapping[str, Any]) -> Response:
    if ask.arrow:
        return arrow_reply(table, extra)
    return list_reply("values", values_json(table), extra)


def _rows(ask: ApiRequest, table: pa.Table, extra: Mapping[str, Any]) -> Response:
    if ask.arrow:
        return arrow_reply(table, extra)
    return list_reply("rows", rows_json(table), {**extra, "columns": table.column_names})


_BUCKET = QueryParameter("bucket", "60s, 5m, 1h, …", times.duration, required=True)
_FUNCTION = QueryParameter("function", ", ".join(AGGREGATES), many=True)
_AFTER = QueryParameter(
    "after", "The last seq before", between("after", -1, MAX_SEQ), -1, type="integer"
)
_WHOLE = QueryParameter(
    "whole", "Of a copy: up to where nothing is missing", one_of("whole", "true", "false"), "false"
)
_SQL_SCOPE = QueryParameter(
    *("scope", "This node, the values of all of them together, or each of them for itself"),
    *(one_of("scope", ALL, EACH, HERE), HERE),
)
_WHERE = (SCOPE, OF, STALE, KEYS)

ROUTES = (
    Address(
        *("GET", "/v1/latest", get_latest, "The newest value of each metric and entity"),
        *("read:values", (METRIC, ENTITY, NODE, *_WHERE)),
    ),
    Address(
        *("POST", "/v1/latest", post_latest, "The same for any number of names", "read:values"),
        *(_WHERE, (JSON_TYPE,)),
    ),
    Address(
        *("GET", "/v1/range", get_range, "Values of a stretch of time, in pages", "read:values"),
        (METRIC, ENTITY, NODE, FROM, TO, limit(DEFAULT_ROWS), CURSOR, ORDER, SHARE, *_WHERE),
    ),
    Address(
        *("GET", "/v1/aggregate", get_aggregate, "Numbers over buckets of time", "read:values"),
        (METRIC, ENTITY, NODE, FROM, TO, _BUCKET, _FUNCTION, ORDER, *_WHERE),
    ),
    Address(
        *("POST", "/v1/values", post_values, "Put values into this node's store", "write:values"),
        *((), (JSON_TYPE, ARROW_TYPE)),
    ),
    Address(
        *("POST", "/v1/sql", post_sql, "One SELECT over history, latest, metadata", "read:sql"),
        *((_SQL_SCOPE, OF, METRIC, ENTITY, NODE, FROM, TO, KEYS), (JSON_TYPE,)),
    ),
    Address(
        *("GET", "/v1/changes", get_changes, "Own values as they came; Arrow only", "read:values"),
        (_AFTER, METRIC, limit(DEFAULT_CHANGES), SHARE, OF, _WHOLE),
    ),
)
