"""Three sites without Spark, with real brokers and stores; publishing, asking, killing."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

import psutil

from fogline.broker import Broker, BrokerOptions, Message, open_broker
from fogline.common.errors import FoglineError
from fogline.common.http.client import Patience
from fogline.demo.world import World
from fogline.fabric.http.store_client import StoreClient
from tests.waiting import PATIENCE

BASE = 1_700_000_000
SECONDS = 120.0


def publish(world: World, site: str, numbers: Iterable[int], entity: str = "m") -> None:
    """Numbered readings at QoS 1, confirmed when this returns; a broker that dies is waited for."""
    broker = eventually(lambda: _connected(world.broker(site)), f"a broker at {site}")
    messages = [
        Message("plant/x", json.dumps({"id": entity, "t": BASE + n, "n": n}).encode())
        for n in numbers
    ]
    try:
        for first in range(0, len(messages), 200):
            broker.publish(messages[first : first + 200], SECONDS).wait(SECONDS)
    finally:
        broker.close()


def _connected(url: str) -> Broker:
    broker = open_broker(url, BrokerOptions(protocol=5))
    try:
        broker.connect(5.0)
    except FoglineError:
        broker.close()
        raise
    return broker


class Publisher(threading.Thread):
    """Publishes in the background; `join` and then see `error`."""

    def __init__(self, world: World, site: str, numbers: Iterable[int], entity: str = "m") -> None:
        super().__init__(daemon=True)
        self.error: Exception | None = None
        self._arguments = world, site, list(numbers), entity

    def run(self) -> None:
        try:
            world, site, numbers, entity = self._arguments
            for first in range(0, len(numbers), 100):
                publish(world, site, numbers[first : first + 100], entity)
        except Exception as error:
            self.error = error


def store_client(world: World, site: str) -> StoreClient:
    address = world.status(site)["store"]["address"]
    token = (world.folder / site / "store" / "token").read_text(encoding="utf-8").strip()
    return StoreClient(address, token, Patience(5.0, 60.0))


def ask(world: World, site: str, path: str, **parameters: Any) -> dict[str, Any]:
    pairs = [(k, v) for k, v in parameters.items() if not isinstance(v, list)]
    pairs += [(k, item) for k, v in parameters.items() if isinstance(v, list) for item in v]
    return store_client(world, site).json("GET", path, pairs)


def pages(world: World, site: str, limit: int, **parameters: Any) -> list[dict[str, Any]]:
    """All values of a range, page by page."""
    found: list[dict[str, Any]] = []
    cursor: dict[str, str] = {}
    while True:
        told = ask(world, site, "/v1/range", limit=limit, **parameters, **cursor)
        found += told["values"]
        if "next" not in told:
            return found
        assert len(told["values"]) == limit
        cursor = {"cursor": told["next"]}


def counts(world: World, site: str, metric: str = "n") -> dict[str, int]:
    """How many values of each node there are, as one site tells."""
    told = ask(world, site, "/v1/aggregate", metric=metric, bucket="1000000h", function="count")
    found: dict[str, int] = {}
    for row in told["rows"]:
        found[row["node"]] = found.get(row["node"], 0) + row["count"]
    return found


def held(world: World, holder: str, origin: str) -> int:
    """How many values a copy has."""
    told = ask(world, holder, "/v1/aggregate", scope="node", of=origin, metric="n",
               bucket="1000000h", function="count")  # fmt: skip
    return sum(row["count"] for row in told["rows"])


def states(world: World, site: str) -> dict[str, str]:
    """How each node took part in an answer of this one."""
    return {node["node"]: node["state"] for node in ask(world, site, "/v1/latest")["nodes"]}


def eventually(condition: Callable[[], Any], what: str, seconds: float = SECONDS) -> Any:
    """The first true answer; what fails meanwhile is tried again."""
    deadline = time.monotonic() + PATIENCE * seconds
    last: object = None
    while time.monotonic() < deadline:
        try:
            if last := condition():
                return last
        except (FoglineError, OSError, KeyError) as error:
            last = error
        time.sleep(0.05)
    raise AssertionError(f"after {seconds:g} s not yet {what}: {last}")


def kill_store(world: World, site: str) -> int:
    """The store process, with -9; which one it was."""
    pid = int(eventually(lambda: world.status(site)["store"]["pid"], "a store process"))
    try:
        psutil.Process(pid).kill()
    except psutil.NoSuchProcess:
        return 0
    return pid
