"""An address of the REST interface: what may be asked there, and how the question is read."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.responses import Response

from fogline.common.http.parameters import QueryParameter, between, one_of
from fogline.fabric.api.node import FabricNode
from fogline.fabric.api.rights import Caller
from fogline.fabric.query import times
from fogline.model.keys import Keys, is_key
from fogline.storage.errors import BadQuery

ALL, EACH, HERE = "all", "each", "node"
MOST_ROWS = 1_000_000
_NOT_THE_QUESTION = ("cursor", "limit", "stale")
"""What may differ from page to page."""
_LONGEST_STALE = 1e9


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """A request that may be answered: read, checked, and by whom."""

    values: Mapping[str, Any]
    path: Mapping[str, str]
    question: object
    """Equal for all pages of one question, and only for those."""
    caller: Caller
    arrow: bool = False
    """Whether Arrow is requested instead of JSON."""
    body: bytes = b""
    type: str = ""
    """The body's."""

    @property
    def keys(self) -> Keys:
        """Those of signed insights that may be in the answer."""
        held, requested = self.caller.keys, self.values.get("keys")
        if held is None or requested is None:
            return requested if held is None else held
        return held & frozenset(requested)


@dataclass(frozen=True, slots=True)
class Address:
    """One method of one path. `right` may name parts of the path; empty means any token will do."""

    method: str
    path: str
    handler: Callable[[FabricNode, ApiRequest], Response]
    summary: str
    right: str
    parameters: tuple[QueryParameter, ...] = ()
    body: tuple[str, ...] = field(default=())
    """The media types that a body may have."""


def question_of(path: str, given: Iterable[tuple[str, str]]) -> object:
    return path, sorted(pair for pair in given if pair[0] not in _NOT_THE_QUESTION)


def seconds(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0 <= found <= _LONGEST_STALE:
        raise BadQuery(f"`stale` must be a number of seconds, not {text!r:.80}")
    return found


def share(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0 < found <= 1:
        raise BadQuery(f"`share` must be above 0 and at most 1, not {text!r:.80}")
    return found


def keys(text: str) -> frozenset[str]:
    found = frozenset(text.split(",") if text else ())
    if not all(map(is_key, found)):
        raise BadQuery(f"keys are names with commas between, not {text!r:.80}")
    return found


METRIC = QueryParameter("metric", "A name, or a prefix with % behind it", many=True)
ENTITY = QueryParameter("entity", "A name, or a prefix with % behind it", many=True)
NODE = QueryParameter("node", "Only values that arose there; a name, or a prefix", many=True)
FROM = QueryParameter("from", "ISO 8601, microseconds since 1970, or -15m", times.moment)
TO = QueryParameter("to", "Up to, not including", times.moment)
SCOPE = QueryParameter("scope", "All nodes, or this one alone", one_of("scope", ALL, HERE), ALL)
OF = QueryParameter("of", "With scope=node: this node's copy of another's values")
STALE = QueryParameter("stale", "A copy may be so many seconds behind", seconds, 0.0, type="number")
ORDER = QueryParameter("order", "By time: asc or desc", one_of("order", "asc", "desc"), "asc")
SHARE = QueryParameter("share", "Only this share of the values", share, 1.0, type="number")
KEYS = QueryParameter("keys", "Only what these open, of the keys that the token has", keys)
CURSOR = QueryParameter("cursor", "The next of the page before")


def limit(default: int | None, highest: int = MOST_ROWS) -> QueryParameter:
    read = between("limit", 1, highest)
    return QueryParameter("limit", f"At most {highest} rows", read, default, type="integer")
