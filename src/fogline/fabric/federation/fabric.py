"""All nodes as one: whichever node is asked, the answer is the same."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from copy import copy as shallow
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

import fogline
from fogline.fabric.errors import NodeUnreachable, NotThere
from fogline.fabric.federation.routing import ReplicaRoute, to_follow
from fogline.fabric.federation.scatter_gather import Gather
from fogline.fabric.federation.sources import CopyChanges, NodeChanges, OwnChanges
from fogline.fabric.http.secrets import Secrets
from fogline.fabric.membership.clients import Clients
from fogline.fabric.membership.directory import Directory
from fogline.fabric.membership.discovery import Discovery
from fogline.fabric.membership.exchange import Exchange
from fogline.fabric.membership.health import Health
from fogline.fabric.membership.options import FabricOptions
from fogline.fabric.membership.peers import CopyInfo, PeerReport, PeerView, loss_within
from fogline.fabric.query import merge, tables
from fogline.fabric.query.local_backend import StoreAnswers
from fogline.fabric.query.query_types import (
    ANSWERED,
    AggregateQuery,
    ChangeOffset,
    ChangeSource,
    NodeAnswer,
    NodeBackend,
    Range,
    Selected,
    Whole,
)
from fogline.fabric.query.space_pages import SpacePage
from fogline.fabric.query.spaces import (
    RowsWhole,
    SpaceAnswers,
    SpaceRange,
    SpacesWhole,
    list_spaces,
    merge_rows,
)
from fogline.fabric.replicas.copies import Copies
from fogline.fabric.replicas.restore import Restore
from fogline.model.keys import Keys
from fogline.model.question import Question
from fogline.storage.errors import QueryLimit, StoreError
from fogline.storage.query.changes import Changes
from fogline.storage.query.sql import needs
from fogline.storage.store import SiteStore, now_us

SECOND_US = 1_000_000
FRESH_US = 10 * SECOND_US
"""A copy here that is further behind does not keep up: its origin is followed instead."""
SQL_PAGE = 100_000
_BRING_LESS = "name metrics and a time (metric, from, to), or let each node count: scope=each"

_say = logging.getLogger(__name__)


class Fabric:
    """This node's part in the fabric: `start` once, then everything from any thread, then `close`.

    The store is the caller's: it is open before, and closed after.
    """

    def __init__(
        self,
        site: str,
        store: SiteStore,
        folder: Path,
        secret: str | Secrets,
        options: FabricOptions | None = None,
    ) -> None:
        """Raises `UsageError` when the control broker's address is none."""
        options = options or FabricOptions()
        folder.mkdir(parents=True, exist_ok=True)
        self.site = site
        self._store = store
        self._directory = Directory(site, folder)
        self._health = Health(self._directory.nodes)
        self._clients = Clients(secret, options)
        self._copies = Copies(site, store, folder, self._clients, self._health, options)
        self._restore = Restore(site, store, self._clients, options)
        self._exchange = Exchange(store, self._clients, self._health, options, self._restore.look)
        self._discovery = Discovery(self._directory, options) if options.control else None
        self._gather = Gather(site, StoreAnswers(store, site), self, options.threads)
        self._keys: Keys = None

    def start(self) -> None:
        self._copies.start()
        self._restore.start()
        self._exchange.start()
        if self._discovery is not None:
            self._discovery.start()

    def close(self) -> None:
        if self._discovery is not None:
            self._discovery.close()
        self._gather.close()
        self._exchange.stop()
        self._clients.close()
        self._exchange.close()
        self._restore.close()
        self._copies.close()

    def set_nodes(self, nodes: Mapping[str, str]) -> None:
        """The other nodes that the configuration names. One that it named before is forgotten."""
        for name in self._directory.configure(nodes):
            _say.warning("no node %r at %r: its name or address cannot be", name, nodes[name])

    # ── questions ────────────────────────────────────────────────────────────────────────────────

    def seen_by(self, keys: Keys) -> Fabric:
        """The same for who holds these keys: every node leaves out what is signed with others."""
        other = shallow(self)
        other._keys = keys
        return other

    def latest(self, names: Selected, stale: float = 0.0) -> Whole:
        found = self._gather.all(
            lambda _, answers: answers.seen_by(self._keys).latest(names), names, _since(stale)
        )
        nodes = self._with_losses(found.nodes)
        return Whole(merge.by_names(found.tables, tables.LATEST), nodes)

    def range(
        self, question: Range, places: Mapping[str, ChangeOffset], stale: float = 0.0
    ) -> Whole:
        found = self._gather.all(
            lambda node, answers: answers.seen_by(self._keys).range(question, places.get(node)),
            question.names,
            _since(stale),
            question.start,
        )
        rows = found.tables
        table, taken = merge.page(rows, tables.ROWS, question.limit, question.descending)
        more = any(len(part) >= question.limit for part in rows.values())
        more |= sum(map(len, rows.values())) > len(table)
        nodes = self._with_losses(found.nodes, question.start, question.end)
        return Whole(table, nodes, {**places, **taken} if more else None)

    def aggregate(self, question: AggregateQuery, stale: float = 0.0) -> Whole:
        found = self._gather.all(
            lambda _, answers: answers.seen_by(self._keys).aggregate(question),
            question.names,
            _since(stale),
            question.start,
        )
        schema = tables.aggregate_schema(question.functions)
        self._check_rows(found.tables)
        nodes = self._with_losses(found.nodes, question.start, question.end)
        return Whole(merge.buckets(found.tables, schema, question.descending), nodes)

    def metrics(self, prefix: str) -> Whole:
        found = self._gather.all(lambda _, answers: answers.seen_by(self._keys).metrics(prefix))
        return Whole(merge.by_names(found.tables, tables.PAIRS), found.nodes)

    def sql(self, text: str) -> Whole:
        found = self._gather.all(lambda _, answers: answers.seen_by(self._keys).sql(text))
        self._check_rows(found.tables)
        return Whole(merge.stack_answers(found.tables), self._with_losses(found.nodes))

    def sql_together(self, text: str, values: Range) -> Whole:
        past = self._fetch_all(values) if needs(text, "history") else None
        newest = None
        if past is None or needs(text, "latest"):
            newest = self.latest(values.names)
        history = merge.join_answers({}, tables.ROWS) if past is None else past.table
        latest = merge.join_answers({}, tables.LATEST) if newest is None else newest.table
        first = past or newest
        assert first is not None
        hidden = self._store.metadata.signed.hidden_anywhere(self._keys)
        return Whole(self._store.sql_over(text, history, latest, hidden), first.nodes)

    def _fetch_all(self, values: Range) -> Whole:
        """All values of a range, page by page."""
        most, found = self._store.limits.query.rows, 0
        pages, places = [], dict[str, ChangeOffset]()
        while True:
            question = replace(values, limit=min(SQL_PAGE, most), descending=False)
            page = self.range(question, places)
            pages.append(page.table)
            found += len(page.table)
            if found > most or (found == most and page.places is not None):
                raise QueryLimit(f"more than {most} values would have to come here", _BRING_LESS)
            if page.places is None:
                return replace(page, table=pa.concat_tables(pages))
            places = dict(page.places)

    def spaces(self, own: SpaceAnswers) -> SpacesWhole:
        found = self._gather.all(lambda node, _: self._spaces_of(node, own).spaces(), copies=False)
        return SpacesWhole(list_spaces(found.tables), found.nodes)

    def space_rows(self, question: SpaceRange, own: SpaceAnswers) -> RowsWhole:
        def ask(node: str, _: NodeBackend) -> SpacePage | NotThere:
            try:
                return self._spaces_of(node, own).space_rows(question)
            except NotThere as error:
                return error

        found = self._gather.all(ask, copies=False)
        pages = {n: p if isinstance(p, SpacePage) else None for n, p in found.tables.items()}
        return merge_rows(pages, found.nodes, question)

    def _spaces_of(self, node: str, own: SpaceAnswers) -> SpaceAnswers:
        return own if node == self.site else self._clients.to(node, self._address(node))

    def _with_losses(
        self, nodes: tuple[NodeAnswer, ...], start: int | None = None, end: int | None = None
    ) -> tuple[NodeAnswer, ...]:
        """A node that answered without what was in damaged files of that time says so."""
        seen = self.peer_views()
        own = tuple((file.first, file.last, file.rows) for file in self._store.lost)
        found = []
        for answer in nodes:
            report = seen[answer.node].report.lost if answer.node in seen else ()
            lost = own if answer.node == self.site else report
            if answer.state == ANSWERED and (why := loss_within(lost, start, end)):
                answer = replace(answer, partial=True, why=why)
            found.append(answer)
        return tuple(found)

    def _check_rows(self, answers: Mapping[str, pa.Table]) -> None:
        most = self._store.limits.query.rows
        if sum(map(len, answers.values())) > most:
            raise QueryLimit(f"the answer has more than {most} rows", "ask for less")

    # ── what is around this node ─────────────────────────────────────────────────────────────────

    def peer_views(self) -> Mapping[str, PeerView]:
        return self._health.all()

    def own_copies(self) -> Mapping[str, CopyInfo]:
        return self._copies.infos()

    def answers(self, node: str, route: ReplicaRoute) -> NodeBackend:
        if route.at == self.site:
            copy = self._copies.copy_of(node)
            if copy is None:
                raise NodeUnreachable(f"there is no copy of {node} here any more")
            return copy
        client = self._clients.to(route.at, self._address(route.at))
        return client if route.copy is None else client.copy_of(node)

    def note_failure(self, node: str, error: StoreError) -> None:
        self._health.note_failure(node, self._address(node), error)

    def change_sources(self, question: Question) -> dict[str, ChangeSource]:
        """The nodes whose values can be followed now, this one among them."""
        found: dict[str, ChangeSource] = {self.site: OwnChanges(self._store, self.site)}
        seen, copies = self.peer_views(), self.own_copies()
        fresh_since = now_us() - FRESH_US
        for node in seen:
            route = to_follow(node, self.site, seen, copies, question.metrics, fresh_since)
            if route is not None:
                found[node] = self._open_changes(node, route, seen)
        return found

    def _open_changes(
        self, node: str, route: ReplicaRoute, seen: Mapping[str, PeerView]
    ) -> ChangeSource:
        if route.copy is not None and route.at == self.site:
            return CopyChanges(node, route.copy.id, self._copies.changes, self.site)
        client = self._clients.to(route.at, seen[route.at].address)
        if route.copy is not None:
            return NodeChanges(client, route.copy.id, route.at, copy_of=node)
        return NodeChanges(client, seen[node].report.id, node)

    def _address(self, node: str) -> str:
        return self._directory.nodes().get(node, "")

    # ── copies ───────────────────────────────────────────────────────────────────────────────────

    def copy_of(self, origin: str) -> NodeBackend | None:
        """The copy of another node's values, if there is one here."""
        return self._copies.copy_of(origin)

    def copy_changes(
        self,
        origin: str,
        after: int,
        question: Question,
        limit: int,
        whole: bool = False,
        without: Collection[str] = (),
    ) -> tuple[Changes, str]:
        """What the copy of an origin holds, by number, and the id of the store it is of; with
        `whole` only up to where nothing is missing. Raises `NodeUnreachable` when there is none."""
        return self._copies.changes(origin, after, question, limit, whole, without)

    def keep_copy(self, origin: str, metrics: tuple[str, ...] | None) -> None:
        """From now on, old values included; None means all metrics. Raises `StoreError`."""
        self._copies.keep(origin, metrics)

    def drop_copy(self, origin: str) -> None:
        """Ends and removes it; one that is not there is no error."""
        self._copies.drop(origin)

    def copies(self) -> Mapping[str, Mapping[str, Any]]:
        """By origin: what of it, up to when, how much."""
        return self._copies.status()

    # ── what this node reports ────────────────────────────────────────────────────────────────────

    def state(self, with_metrics: bool = False) -> dict[str, Any]:
        """The response of `GET /v1/state`."""
        store = self._store.state()
        report = PeerReport(
            id=self._store.id,
            rows=store.rows + store.waiting,
            bytes=store.disk_bytes,
            last=self._store.last_seq,
            first=self._store.first_seq,
            metadata=self._store.metadata.version,
            restoring=self._restore.restoring,
            restored=self._restore.restored_blocks(),
            copies=self._copies.infos(),
            lost=tuple((file.first, file.last, file.rows) for file in store.lost),
        )
        found = {"node": self.site, "version": fogline.__version__, **report.as_json()}
        return found | ({"metrics": self._store.metric_sizes()} if with_metrics else {})

    def nodes(self) -> list[Mapping[str, Any]]:
        """The response of `GET /v1/nodes`: this node and every other, by name."""
        own = self.state()
        own |= {"state": "answered", "latency_ms": 0.0, "copies": _behind(self.own_copies())}
        others = [_node(name, seen) for name, seen in self.peer_views().items()]
        return sorted([own, *others], key=lambda node: str(node["node"]))

    def status(self) -> dict[str, Any]:
        """How the fabric is, for those who look after the process."""
        seen = self.peer_views()
        return {
            "id": self._store.id,
            "nodes": {name: other.state for name, other in seen.items()},
            "restoring": self._restore.restoring,
            "copies": self._copies.status(),
            "control": self._discovery.problem if self._discovery is not None else "",
        }


def _since(stale: float) -> int | None:
    return now_us() - int(stale * SECOND_US) if stale > 0 else None


def _node(name: str, seen: PeerView) -> dict[str, Any]:
    report = (
        seen.report.as_json() | {"copies": _behind(seen.report.copies)} if seen.report.id else {}
    )
    found = {"node": name, "address": seen.address, "state": seen.state, "why": seen.why, **report}
    return found | {"latency_ms": seen.latency_ms}


def _behind(copies: Mapping[str, CopyInfo]) -> dict[str, dict[str, Any]]:
    """Copies, with how many seconds each is behind its origin."""
    now = now_us()
    found = {}
    for origin, copy in copies.items():
        late = None if copy.until is None else round(max(now - copy.until, 0) / SECOND_US, 3)
        found[origin] = copy.as_json() | {"behind_seconds": late}
    return found
