"""Another node, asked over REST. Whatever it answers, callers get tables of the right shape."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from itertools import product
from typing import Any

import pyarrow as pa

from fogline.common.errors import FoglineError
from fogline.common.http.client import Patience, part
from fogline.fabric.api.address import question_of
from fogline.fabric.errors import NodeRefused, NodeUnreachable, TokenRefused
from fogline.fabric.http.secrets import Secrets, as_secrets
from fogline.fabric.http.store_client import StoreClient
from fogline.fabric.query import tables
from fogline.fabric.query.merge import in_order, without_doubles
from fogline.fabric.query.metadata_fields import read_metadata
from fogline.fabric.query.paging import PageStart, seal
from fogline.fabric.query.query_types import AggregateQuery, ChangeOffset, Range, Selected
from fogline.fabric.query.space_pages import SpaceInfo, SpacePage, behind, check_rows
from fogline.fabric.query.spaces import SpaceRange
from fogline.model.keys import Keys
from fogline.storage.catalog.metadata import Metadata
from fogline.storage.errors import BadValue, StoreError
from fogline.storage.files.identity import is_id
from fogline.storage.query.changes import MAX_SEQ, Changes

_ADDRESS_BYTES = 8_000
"""Of names in one address; more are asked for in several."""
_PAGE = 100_000
_OTHER_SECRET = (
    "it has another secret of the fabric: give all sites one coordinator, or the same file in"
    " store: {secret_file: fabric.secret}"
)

UrlParameters = list[tuple[str, str | int]]
"""The parameters of an address."""


class NodeClient:
    """For any thread, until `close`. `node` is who answers there.

    Raises `NodeUnreachable` when there is no answer or none of the right shape, `NodeRefused`, and
    `BadQuery` and `QueryLimit` as the node's own store does.
    """

    def __init__(
        self, address: str, token: str | Secrets, node: str = "", patience: Patience | None = None
    ) -> None:
        self._secrets = as_secrets(token)
        self._store = StoreClient(address, self._secrets, patience)
        self._node = node
        self._of = ""
        self._keys: Keys = None

    @property
    def address(self) -> str:
        return self._store.url

    def copy_of(self, origin: str) -> NodeClient:
        """The same node's copy of another's values; it shares the connections."""
        other = copy(self)
        other._of = origin
        return other

    def seen_by(self, keys: Keys) -> NodeClient:
        """The same node, which answers as it would somebody with these keys."""
        other = copy(self)
        other._keys = keys
        return other

    def close(self) -> None:
        self._store.close()

    def latest(self, names: Selected) -> pa.Table:
        if len(_split(names)) == 1:
            table, _ = self._arrow("GET", "/v1/latest", _names(names))
        else:
            requested = {"metrics": names.metrics, "entities": names.entities}
            body = {key: list(value) for key, value in requested.items() if value is not None}
            table, _ = self._arrow("POST", "/v1/latest", [], body)
        return self._check_columns(table, tables.LATEST)

    def range(self, question: Range, after: ChangeOffset | None = None) -> pa.Table:
        parts = [self._range(question, names, after) for names in _split(question.names)]
        if len(parts) == 1:
            return parts[0]
        whole = without_doubles(pa.concat_tables(parts), ["seq"])
        return in_order(whole, ["time", "seq"], question.descending).slice(0, question.limit)

    def aggregate(self, question: AggregateQuery) -> pa.Table:
        schema = tables.aggregate_schema(question.functions)
        parts = []
        for names in _split(question.names):
            parameters = [
                ("bucket", f"{question.bucket}us"),
                *_time_bounds(question),
                *_names(names),
            ]
            parameters += [("function", name) for name in question.functions]
            table, _ = self._arrow("GET", "/v1/aggregate", parameters)
            parts.append(self._check_columns(table, schema))
        return without_doubles(pa.concat_tables(parts), ["metric", "entity", "bucket"])

    def metrics(self, prefix: str) -> pa.Table:
        parts, cursor = [], ""
        while True:
            more = [("cursor", cursor)] if cursor else []
            parameters: UrlParameters = [("prefix", prefix), ("limit", _PAGE), *more]
            table, payload = self._arrow("GET", "/v1/metrics", parameters)
            parts.append(self._check_columns(table, tables.PAIRS))
            following = payload.get("next")
            if not following or following == cursor or not len(table):
                return without_doubles(pa.concat_tables(parts), tables.PAIRS.names)
            cursor = str(following)

    def sql(self, text: str) -> pa.Table:
        return self._arrow("POST", "/v1/sql", [], {"sql": text})[0]

    def spaces(self) -> list[SpaceInfo]:
        with self._translate_errors():
            payload = self._store.json("GET", "/v1/spaces", [("scope", "node")]).get("spaces")
        if not isinstance(payload, list):
            raise NodeUnreachable(f"{self.address} sends no valid list of spaces")
        return [self._space(item) for item in payload]

    def space_rows(self, question: SpaceRange) -> SpacePage:
        path = f"/v1/spaces/{part(question.space)}/rows"
        order = "desc" if question.descending else "asc"
        asked: UrlParameters = [("scope", "node"), ("arrived", "true"), ("order", order)]
        asked += [("from", question.start), ("to", question.end)]
        asked += [("key", one) for one in question.key or ()]
        page: UrlParameters = [("limit", question.limit)]
        if question.after is not None:
            texts = question_of(path, [(key, str(value)) for key, value in asked])
            page.append(("cursor", seal([question.start, question.end, *question.after], texts)))
        with self._translate_errors():
            table, payload = self._store.arrow("GET", path, [*asked, *page])
        info = self._space(payload.get("space"))
        try:
            found = check_rows(table, info)
        except BadValue as error:
            raise NodeUnreachable(f"{self.address} answers with {error.message}") from error
        beyond = question.after is None or behind(found, question.after, question.descending)
        if len(found) > question.limit or not beyond or info.space.name != question.space:
            raise NodeUnreachable(f"{self.address} answers with rows that were not asked for")
        return SpacePage(info, found, payload.get("next") is not None)

    def _space(self, payload: object) -> SpaceInfo:
        try:
            return SpaceInfo.from_json(payload)
        except BadValue as error:
            raise NodeUnreachable(f"{self.address} sent a wrong space: {error.message}") from error

    def state(self) -> dict[str, Any]:
        """The response of `GET /v1/state`; not checked further."""
        with self._translate_errors():
            return self._store.json("GET", "/v1/state")

    def changes(
        self,
        after: int,
        metrics: Sequence[str] | None,
        limit: int,
        share: float = 1.0,
        whole: bool = False,
    ) -> tuple[Changes, str]:
        """A page of changes, and the id of the store that they are of."""
        patterns = [("metric", name) for name in metrics or ()]
        of = [("of", self._of)] if self._of else []
        more = [*patterns, *_share(share), *([("whole", "true")] if whole else [])]
        with self._translate_errors():
            parameters: UrlParameters = [*of, ("after", after), ("limit", limit), *more]
            table, payload = self._store.arrow("GET", "/v1/changes", parameters)
        last, end, store = payload.get("last"), payload.get("end"), payload.get("store")
        if type(last) is not int or not after <= last <= MAX_SEQ or type(end) is not bool:
            raise NodeUnreachable(f"{self.address} does not send the end of its changes")
        if not is_id(store):
            raise NodeUnreachable(f"{self.address} does not send the id of its store")
        signed = self._metadata(payload.get("signed", []))
        rows = self._check_columns(table, tables.ROWS)
        seqs = rows["seq"].to_numpy()
        if len(rows) > limit or (len(rows) and not after < seqs.min() <= seqs.max() <= last):
            raise NodeUnreachable(f"{self.address} sent changes that were not asked for")
        return Changes(rows, last, end, signed), str(store)

    def metadata_changes(self, since: int) -> tuple[list[Metadata], int]:
        """What changed in its metadata after `since`, and the `since` for the next call."""
        with self._translate_errors():
            payload = self._store.json("GET", "/v1/metadata/changes", [("since", since)])
        following = payload.get("next")
        if type(following) is not int or following < since:
            raise NodeUnreachable(f"{self.address} sends no valid metadata")
        return list(self._metadata(payload.get("metadata"))), following

    def _metadata(self, payload: object) -> tuple[Metadata, ...]:
        if not isinstance(payload, list):
            raise NodeUnreachable(f"{self.address} sends no valid metadata")
        try:
            return tuple(read_metadata(item) for item in payload)
        except BadValue as error:
            raise NodeUnreachable(f"{self.address} sent wrong metadata: {error.message}") from error

    def _range(self, question: Range, names: Selected, after: ChangeOffset | None) -> pa.Table:
        order = "desc" if question.descending else "asc"
        asked: UrlParameters = [("order", order), *_time_bounds(question), *_names(names)]
        asked += _share(question.share)
        page: UrlParameters = [("limit", question.limit)]
        if after is not None:
            start = PageStart({self._of or self._node: after}, question.start, question.end)
            texts = [(key, str(value)) for key, value in [*self._scope, *asked]]
            page.append(("cursor", start.encode(question_of("/v1/range", texts))))
        table, _ = self._arrow("GET", "/v1/range", [*asked, *page])
        found = self._check_columns(table, tables.ROWS)
        beyond = after is None or tables.behind(found, after, question.descending)
        if len(found) > question.limit or not beyond:
            raise NodeUnreachable(f"{self.address} answers with values that were not asked for")
        return found

    def _arrow(
        self,
        method: str,
        path: str,
        parameters: UrlParameters,
        body: Mapping[str, Any] | None = None,
    ) -> tuple[pa.Table, dict[str, Any]]:
        with self._translate_errors():
            return self._store.arrow(method, path, [*self._scope, *parameters], body)

    @property
    def _scope(self) -> UrlParameters:
        keys = [] if self._keys is None else [("keys", ",".join(sorted(self._keys)))]
        return [("scope", "node"), *([("of", self._of)] if self._of else []), *keys]

    def _check_columns(self, table: pa.Table, schema: pa.Schema) -> pa.Table:
        try:
            return tables.select_columns(table, schema)
        except BadValue as error:
            raise NodeUnreachable(f"{self.address} answers with {error.message}") from error

    @contextlib.contextmanager
    def _translate_errors(self) -> Iterator[None]:
        if not self._secrets.accepted_secrets():
            raise NodeRefused(self._secrets.missing)
        try:
            yield
        except TokenRefused as error:
            raise NodeRefused(_OTHER_SECRET) from error
        except StoreError:
            raise
        except FoglineError as error:
            raise NodeUnreachable(error.message, error.hint) from error


def _time_bounds(question: Range | AggregateQuery) -> UrlParameters:
    bounds = (("from", question.start), ("to", question.end))
    return [(key, bound) for key, bound in bounds if bound is not None]


def _share(share: float) -> UrlParameters:
    return [("share", repr(share))] if share < 1 else []


def _names(names: Selected) -> UrlParameters:
    pairs = (("metric", names.metrics), ("entity", names.entities))
    return [(key, name) for key, found in pairs for name in found or ()]


def _split(names: Selected) -> list[Selected]:
    """The same names in questions that fit into an address."""
    pairs = product(portions(names.metrics), portions(names.entities))
    return [Selected(metrics, entities) for metrics, entities in pairs]


def portions(names: tuple[str, ...] | None) -> list[tuple[str, ...] | None]:
    """The same names in parts that fit into an address."""
    if names is None:
        return [None]
    found: list[list[str]] = [[]]
    size = 0
    for name in names:
        size += len(part(name)) + len("metric=&")
        if size > _ADDRESS_BYTES and found[-1]:
            found.append([])
            size = len(part(name))
        found[-1].append(name)
    return [tuple(portion) for portion in found]
