"""Addresses of the fabric itself: its nodes, the state of this one, the copies it holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from fogline.common.http.bodies import json_object
from fogline.common.http.parameters import QueryParameter, one_of
from fogline.common.http.replies import Json
from fogline.fabric.api.address import Address, ApiRequest
from fogline.fabric.api.node import FabricNode
from fogline.fabric.api.routes_values import JSON_TYPE, name_list
from fogline.fabric.errors import NotThere
from fogline.storage.errors import BadQuery
from fogline.storage.names import parse_all


def get_nodes(node: FabricNode, ask: ApiRequest) -> Response:
    hidden = _hidden(node, ask)
    return Json({"nodes": [_visible(item, hidden) for item in node.fabric.nodes()]})


def get_state(node: FabricNode, ask: ApiRequest) -> Response:
    report = node.fabric.state(ask.values["metrics"] == "true")
    return Json(_visible(report, _hidden(node, ask)))


def _hidden(node: FabricNode, ask: ApiRequest) -> frozenset[str]:
    return node.store.metadata.signed.hidden_anywhere(ask.keys)


def _visible(report: Mapping[str, Any], hidden: frozenset[str]) -> dict[str, Any]:
    """Without the names of metrics that the caller has no key for, of copies too."""
    shown = dict(report)
    for name in ("metrics", "wanted"):
        found = report.get(name)
        if isinstance(found, Mapping):
            shown[name] = {key: size for key, size in found.items() if key not in hidden}
        elif found is not None:
            shown[name] = [metrics for metrics in found if not _stands_for_any(metrics, hidden)]
    copies = report.get("copies")
    if copies:
        shown["copies"] = {origin: _visible(copy, hidden) for origin, copy in copies.items()}
    return shown


def _stands_for_any(metrics: str, hidden: frozenset[str]) -> bool:
    """Whether this name of a copy's list, or prefix, is that of a metric that must not be shown.
    `%` alone is that of every metric, and reveals none."""
    if not hidden or metrics == "%":
        return False
    try:
        names = parse_all(metrics)
    except BadQuery:  # another node sent it: nobody needs it, whatever it is
        return True
    if names is None or not hidden.isdisjoint(names.exact):
        return True
    return bool(names.prefixes) and any(metric.startswith(names.prefixes) for metric in hidden)


def put_copy(node: FabricNode, ask: ApiRequest) -> Response:
    origin = ask.path["origin"]
    metrics = name_list(json_object(ask.body, frozenset({"metrics"})).get("metrics"))
    parse_all(metrics)
    if origin == node.site:
        raise BadQuery("no node keeps a copy of itself")
    node.fabric.keep_copy(origin, metrics)
    return Json({"origin": origin, "metrics": metrics})


def delete_copy(node: FabricNode, ask: ApiRequest) -> Response:
    origin = ask.path["origin"]
    if origin not in node.fabric.copies():
        raise NotThere(f"there is no copy of {origin!r:.80} here")
    node.fabric.drop_copy(origin)
    return Json({"deleted": origin})


_METRICS = QueryParameter(
    "metrics", "true: sizes by metric too", one_of("metrics", "true", "false"), "false"
)

ROUTES = (
    Address("GET", "/v1/nodes", get_nodes, "All nodes and how they are", "read:values"),
    Address("GET", "/v1/state", get_state, "How this node is", "read:values", (_METRICS,)),
    Address(
        *("PUT", "/v1/copies/{origin}", put_copy, "Keep a copy of a node's values here"),
        *("write:copies", (), (JSON_TYPE,)),
    ),
    Address(
        *("DELETE", "/v1/copies/{origin}", delete_copy, "End a copy and remove it"),
        "write:copies",
    ),
)
