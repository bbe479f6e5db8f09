"""Several nodes in one process, each with its store, its folder and its REST interface."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from fogline.common.http.server import Server
from fogline.fabric.api.node import FabricNode
from fogline.fabric.api.rest import make_app
from fogline.fabric.api.tokens_file import Callers
from fogline.fabric.federation.fabric import Fabric
from fogline.fabric.membership.options import FabricOptions
from fogline.fabric.query.query_types import ChangeOffset, Range, Selected
from fogline.fabric.query.space_keys import SpaceKeys
from fogline.storage.limits import StoreLimits
from fogline.storage.store import SiteStore
from fogline.storage.values import Value, from_values, to_values
from tests.waiting import wait_for

SECRET = "a secret that nodes share"
START = 1_767_225_600_000_000
QUICK = FabricOptions(
    exchange_seconds=0.2, copy_seconds=0.1, settle_seconds=0.3, answer_seconds=10.0, page_rows=500
)
SMALL = StoreLimits(flush_rows=300, file_rows=2_000, merge_files=3)
DEADLINE = 60.0


class RunningNode:
    """A node that can be stopped, started again on the same port, and lose its disk."""

    def __init__(
        self,
        site: str,
        folder: Path,
        options: FabricOptions = QUICK,
        limits: StoreLimits | None = None,
    ) -> None:
        self._limits = limits or SMALL
        self.site = site
        self.folder = folder / site
        self._options = options
        self._nodes: dict[str, str] = {}
        self._port = 0
        self._running = False
        self.start()

    def start(self, secret: str = SECRET) -> None:
        self.server = Server("127.0.0.1", self._port)
        self._port = self.server.port
        self.store = SiteStore(self.folder / "store", self.site, self._limits)
        self.store.start()
        self.fabric = Fabric(self.site, self.store, self.folder, secret, self._options)
        callers, keys = Callers(self.folder / "store", SECRET), SpaceKeys(self.folder / "store")
        self.fabric.set_nodes(self._nodes)
        self.fabric.start()
        self.server.start(make_app(FabricNode(self.site, self.store, self.fabric, callers, keys)))
        self._running = True

    @property
    def address(self) -> str:
        return self.server.address

    def know(self, nodes: dict[str, str]) -> None:
        self._nodes = {name: address for name, address in nodes.items() if name != self.site}
        self.fabric.set_nodes(self._nodes)

    def stop(self) -> None:
        if self._running:
            self._running = False
            self.server.stop()
            self.fabric.close()
            self.store.close()

    def lose_disk(self) -> None:
        """Only while it is stopped."""
        shutil.rmtree(self.folder)

    def put(self, values: Iterable[Value], flush: bool = True) -> None:
        self.store.ingest(from_values(values))
        if flush:
            self.store.flush()


@contextmanager
def running(
    folder: Path,
    *sites: str,
    options: FabricOptions = QUICK,
    limits: Mapping[str, StoreLimits] | None = None,
) -> Iterator[tuple[RunningNode, ...]]:
    """Nodes that know each other, once all of them have seen all others."""
    own = limits or {}
    nodes = tuple(RunningNode(site, folder, options, own.get(site)) for site in sites)
    try:
        addresses = {node.site: node.address for node in nodes}
        for node in nodes:
            node.know(addresses)
        for node in nodes:
            until(lambda node=node: all_answer(node), f"{node.site} sees the others")
        yield nodes
    finally:
        for node in nodes:
            node.stop()


def all_answer(node: RunningNode) -> bool:
    return all(seen.state == "answered" for seen in node.fabric.peer_views().values())


def until(condition: Callable[[], object], what: str = "") -> None:
    wait_for(condition, DEADLINE, what)


def some_values(count: int, metric: str = "cpu", first: int = 0) -> list[Value]:
    return [
        Value(f"{metric}{i % 3}", f"e{i % 5}", START + i * 1_000, float(i))
        for i in range(first, first + count)
    ]


def own_health(value: Value) -> bool:
    return value.metric.startswith("fabric.")


def pages(fabric: Fabric, question: Range, stale: float = 0.0) -> list[tuple[str, Value]]:
    """Every value of a range with its node, page by page; those of the fabric itself left out."""
    found: list[tuple[str, Value]] = []
    places: dict[str, ChangeOffset] = {}
    while True:
        whole = fabric.range(question, places, stale)
        assert len(whole.table) <= question.limit
        nodes = whole.table["node"].to_pylist()
        rows = zip(nodes, to_values(whole.table), strict=True)
        found += [(node, value) for node, value in rows if not own_health(value)]
        if whole.places is None:
            return found
        assert dict(whole.places) != places
        places = dict(whole.places)


def numbers(fabric: Fabric, node: str, metric: str = "cpu%", limit: int = 1_000) -> list[int]:
    """The numbers that are told of a node, in order."""
    question = Range(Selected((metric,)), limit=limit)
    return sorted(int(value.value) for where, value in pages(fabric, question) if where == node)


def how(fabric: Fabric, node: str) -> dict[str, object]:
    """How a node took part in an answer."""
    whole = fabric.latest(Selected(("cpu%",)))
    return next(answer.as_json() for answer in whole.nodes if answer.node == node)


def slower(**changes: float) -> FabricOptions:
    return replace(QUICK, **changes)  # type: ignore[arg-type]
