"""Addresses of names: which metrics there are, of which entities and nodes, and what they mean."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from starlette.responses import Response

from fogline.common.http.bodies import json_object
from fogline.common.http.parameters import QueryParameter, between
from fogline.common.http.replies import Json
from fogline.fabric.api.address import (
    ALL,
    CURSOR,
    ENTITY,
    KEYS,
    OF,
    SCOPE,
    Address,
    ApiRequest,
    limit,
)
from fogline.fabric.api.node import FabricNode
from fogline.fabric.api.replies import arrow_reply
from fogline.fabric.api.routes_values import JSON_TYPE, one_node, with_node
from fogline.fabric.errors import NotThere
from fogline.fabric.query.metadata_fields import DESCRIPTION, metadata_payload, read_description
from fogline.fabric.query.paging import no_cursor, seal, unseal
from fogline.storage.catalog.metadata import Metadata
from fogline.storage.catalog.signed import signer
from fogline.storage.errors import BadQuery

DEFAULT_METRICS = 1_000


def get_metrics(node: FabricNode, ask: ApiRequest) -> Response:
    """A page has so many metrics, each with all its entities; Arrow without a limit has all."""
    extra: dict[str, Any] = {}
    if ask.values["scope"] == ALL:
        if ask.values["of"] is not None:
            raise BadQuery("of is for scope=node", "add scope=node")
        whole = node.fabric.seen_by(ask.keys).metrics(ask.values["prefix"])
        table = whole.table
        extra["nodes"] = [answer.as_json() for answer in whole.nodes]
    else:
        name, answers = one_node(node, ask)
        table = with_node(answers.metrics(ask.values["prefix"]), name)
    rows = ask.values["limit"] or (None if ask.arrow else DEFAULT_METRICS)
    table, names, last = _page(table, rows, _after(ask))
    if last is not None:
        extra["next"] = seal(last, ask.question)
    if ask.arrow:
        return arrow_reply(table, extra)
    return Json({"metrics": _describe_metrics(node, table, names), **extra})


def get_metadata(node: FabricNode, ask: ApiRequest) -> Response:
    """Of a metric; `changes?since=` is what changed, for other nodes."""
    if ask.path["metric"] == "changes" and ask.values["since"] is not None:
        return _changes(node, ask)
    found = _find_visible(node, ask)
    if found is None:
        raise NotThere(f"nothing is known about {ask.path['metric']!r:.80}")
    return Json(metadata_payload(found))


def put_metadata(node: FabricNode, ask: ApiRequest) -> Response:
    description = read_description(json_object(ask.body, frozenset(DESCRIPTION)))
    return Json(
        metadata_payload(node.store.metadata.put(ask.path["metric"], description, _entity(ask)))
    )


def delete_metadata(node: FabricNode, ask: ApiRequest) -> Response:
    metric, entity = ask.path["metric"], _entity(ask)
    found = _find_visible(node, ask)
    if found is None or found.entity != entity:
        raise NotThere(f"nothing is known about {metric!r:.80}")
    node.store.metadata.remove(metric, entity)
    return Json({"removed": True})


def _find_visible(node: FabricNode, ask: ApiRequest) -> Metadata | None:
    """What may be shown of a metric: of one that is signed only who holds the key gets any."""
    metric, entity = ask.path["metric"], _entity(ask)
    hidden = node.store.metadata.signed.hidden_anywhere(ask.keys)
    return None if metric in hidden else node.store.metadata.get(metric, entity)


def _changes(node: FabricNode, ask: ApiRequest) -> Response:
    """Other nodes get to know what is signed, too."""
    found, last = node.store.metadata.changes(ask.values["since"])
    if ask.keys is not None:
        hidden = node.store.metadata.signed.hidden_anywhere(ask.keys)
        found = [i for i in found if i.metric not in hidden and signer(i.entity) is None]
    return Json({"metadata": [metadata_payload(item) for item in found], "next": last})


def _entity(ask: ApiRequest) -> str:
    given: list[str] = ask.values["entity"] or [""]
    if len(given) > 1:
        raise BadQuery("entity is given twice")
    if signer(given[0]) is not None:
        raise BadQuery("this name of an entity is reserved", "queries declare what is signed")
    return given[0]


def _after(ask: ApiRequest) -> str | None:
    if ask.values["cursor"] is None:
        return None
    found = unseal(ask.values["cursor"], ask.question)
    if not isinstance(found, str):
        raise no_cursor()
    return found


def _page(
    table: pa.Table, rows: int | None, after: str | None
) -> tuple[pa.Table, list[str], str | None]:
    """The rows of so many metrics behind one, their names, and the last if there are more."""
    column = table["metric"].cast(pa.string())
    names = sorted(name for name in pc.unique(column).to_pylist() if after is None or name > after)
    taken = names if rows is None else names[:rows]
    page = table.filter(pc.is_in(column, pa.array(taken, pa.string())))
    return page, taken, taken[-1] if len(taken) < len(names) else None


def _describe_metrics(node: FabricNode, table: pa.Table, names: list[str]) -> list[dict[str, Any]]:
    found: dict[str, tuple[set[str], set[str]]] = {name: (set(), set()) for name in names}
    columns = (table[name].cast(pa.string()).to_pylist() for name in ("metric", "entity", "node"))
    for metric, entity, where in zip(*columns, strict=True):
        found[metric][0].add(entity)
        found[metric][1].add(where)
    known = _by_metric(node.store.metadata.find())
    return [
        {
            "metric": metric,
            "entities": sorted(entities),
            "nodes": sorted(nodes),
            "metadata": known.get(metric, []),
        }
        for metric, (entities, nodes) in found.items()
    ]


def _by_metric(items: Iterable[Metadata]) -> Mapping[str, list[dict[str, Any]]]:
    """Those of every entity come first."""
    found: dict[str, list[dict[str, Any]]] = {}
    for item in items:
        found.setdefault(item.metric, []).append(metadata_payload(item))
    return found


_PREFIX = QueryParameter("prefix", "Only names that begin so", default="")
_SINCE = QueryParameter(
    *("since", "Of the metric named changes: what changed after", between("since", 0, 1 << 62)),
    type="integer",
)

ROUTES = (
    Address(
        *("GET", "/v1/metrics", get_metrics, "Which metrics there are", "read:values"),
        (_PREFIX, limit(None), CURSOR, SCOPE, OF, KEYS),
    ),
    Address(
        *("GET", "/v1/metadata/{metric:path}", get_metadata, "What is known about a metric"),
        *("read:metadata", (ENTITY, _SINCE)),
    ),
    Address(
        *("PUT", "/v1/metadata/{metric:path}", put_metadata, "Describe a metric, for all nodes"),
        *("write:metadata", (ENTITY,), (JSON_TYPE,)),
    ),
    Address(
        *("DELETE", "/v1/metadata/{metric:path}", delete_metadata, "Forget what was said of it"),
        *("write:metadata", (ENTITY,)),
    ),
)
