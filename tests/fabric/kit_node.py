"""A node of the fabric for tests: its store, its REST interface, and a fabric of nobody else."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa

from fogline.common.http.server import Server
from fogline.fabric.api.node import FabricNode
from fogline.fabric.api.rest import make_app
from fogline.fabric.api.routes_values import with_node
from fogline.fabric.api.tokens_file import Callers, own_token
from fogline.fabric.query.local_backend import StoreAnswers
from fogline.fabric.query.query_types import (
    ANSWERED,
    UNREACHABLE,
    AggregateQuery,
    ChangeOffset,
    NodeAnswer,
    NodeBackend,
    Range,
    Selected,
    Whole,
)
from fogline.fabric.query.space_keys import SpaceKeys
from fogline.fabric.query.spaces import (
    RowsWhole,
    SpaceAnswers,
    SpaceRange,
    SpacesWhole,
    list_spaces,
)
from fogline.model.keys import Keys
from fogline.model.question import Question
from fogline.storage.limits import StoreLimits
from fogline.storage.query.changes import Changes
from fogline.storage.store import SiteStore
from fogline.storage.values import micros

SITE = "north"
SECRET = "what all sites of these tests share"
START = 1_767_225_600_000_000


class Alone:
    """A fabric of one node, another that is always away, and copies that are only noted."""

    def __init__(self, store: SiteStore) -> None:
        self._store = store
        self._own = StoreAnswers(store, SITE)
        self._keys: Keys = None
        self.kept: dict[str, tuple[str, ...] | None] = {}
        self.held: dict[str, NodeBackend] = {}
        self.stale: list[float] = []
        self._nodes = (
            NodeAnswer(SITE, ANSWERED),
            NodeAnswer("south", UNREACHABLE, why="no answer"),
        )

    def seen_by(self, keys: Keys) -> Alone:
        other = copy(self)
        other._own, other._keys = self._own.seen_by(keys), keys
        return other

    def latest(self, names: Selected, stale: float = 0.0) -> Whole:
        self.stale.append(stale)
        return self._whole(self._own.latest(names))

    def range(
        self, question: Range, places: Mapping[str, ChangeOffset], stale: float = 0.0
    ) -> Whole:
        self.stale.append(stale)
        table = self._own.range(question, places.get(SITE))
        more = None
        if len(table) == question.limit:
            last = table.slice(len(table) - 1)
            more = {SITE: (int(micros(last["time"])[0]), int(last["seq"][0].as_py()))}
        return Whole(with_node(table, SITE), self._nodes, more)

    def aggregate(self, question: AggregateQuery, stale: float = 0.0) -> Whole:
        return self._whole(self._own.aggregate(question))

    def metrics(self, prefix: str) -> Whole:
        return self._whole(self._own.metrics(prefix))

    def sql(self, text: str) -> Whole:
        return self._whole(self._own.sql(text))

    def sql_together(self, text: str, values: Range) -> Whole:
        found = self._own.range(values), self._own.latest(values.names)
        history, latest = (with_node(table, SITE) for table in found)
        hidden = self._store.metadata.signed.hidden_anywhere(self._keys)
        return Whole(self._store.sql_over(text, history, latest, hidden), self._nodes)

    def spaces(self, own: SpaceAnswers) -> SpacesWhole:
        return SpacesWhole(list_spaces({SITE: own.spaces()}), self._nodes)

    def space_rows(self, question: SpaceRange, own: SpaceAnswers) -> RowsWhole:
        return RowsWhole(own.space_rows(question), self._nodes)

    def nodes(self) -> Sequence[Mapping[str, Any]]:
        return [{"node": SITE, "state": ANSWERED}, {"node": "south", "state": UNREACHABLE}]

    def copy_of(self, origin: str) -> NodeBackend | None:
        return self.held.get(origin)

    def keep_copy(self, origin: str, metrics: tuple[str, ...] | None) -> None:
        self.kept[origin] = metrics

    def drop_copy(self, origin: str) -> None:
        self.kept.pop(origin, None)

    def copies(self) -> Mapping[str, Mapping[str, Any]]:
        return {origin: {"metrics": metrics} for origin, metrics in self.kept.items()}

    def copy_changes(
        self,
        origin: str,
        after: int,
        question: Question,
        limit: int,
        whole: bool = False,
        without: Collection[str] = (),
    ) -> tuple[Changes, str]:
        found = self._store.changes(after, question.metrics, limit, question.share, without)
        return found, "of another"

    def state(self, with_metrics: bool = False) -> Mapping[str, Any]:
        return {"node": SITE, "metrics": self._store.metric_sizes() if with_metrics else None}

    def _whole(self, table: pa.Table) -> Whole:
        return Whole(with_node(table, SITE), self._nodes)


class Served:
    """A node that answers over HTTP."""

    def __init__(self, store: SiteStore, fabric: Alone, address: str, folder: Path) -> None:
        self.store = store
        self.fabric = fabric
        self.address = address
        self.folder = folder

    def client(self, token: str | None = None) -> httpx.Client:
        """For the owner, or for who has this token."""
        headers = {"Authorization": f"Bearer {token or own_token(self.folder)}"}
        return httpx.Client(base_url=self.address, headers=headers, trust_env=False, timeout=120)


@contextmanager
def served(folder: Path, limits: StoreLimits | None = None) -> Iterator[Served]:
    """A node with a new store in the folder, until the block is left."""
    with SiteStore(folder, SITE, limits) as store:
        fabric = Alone(store)
        node = FabricNode(SITE, store, fabric, Callers(folder, SECRET), SpaceKeys(folder))
        server = Server("127.0.0.1", 0)
        server.start(make_app(node))
        try:
            yield Served(store, fabric, server.address, folder)
        finally:
            server.stop()
