"""Whatever is killed while a pipeline is deployed, changed or deleted: it becomes as wanted, and no
record is lost or doubled."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from functools import partial

import psutil
import pytest
import yaml

from fogline.common.errors import FoglineError
from fogline.demo.world import World
from tests.agent.kit import kill_pid
from tests.fabric_sites.kit import ask
from tests.sites.kit import PASS, Device, log_of, numbers, observed, upload
from tests.waiting import wait_for

pytestmark = pytest.mark.site

Jobs = tuple[tuple[str, str, str, str, str], ...]
CHAIN: Jobs = (
    ("K1", "a", "K-in", "c", "K-c"),
    ("K2", "c", "K-c", "d", "K-d"),
    ("K3", "d", "K-d", "d", "K-out"),
)
LONGER: Jobs = (
    ("K1", "a", "K-in", "c", "K-c"),
    ("K2", "c", "K-c", "c", "K-c2"),
    ("K2b", "c", "K-c2", "d", "K-d"),
    ("K3", "d", "K-d", "d", "K-out"),
)


def composed(world: World, jobs: Jobs) -> str:
    """Jobs as (name, site, source topic, sink site, sink topic)."""
    described = [
        {
            "name": name,
            "site": site,
            "source_topic": reads,
            "sink_broker": world.broker(sink),
            "sink_topic": writes,
            "entry": "k:run",
            "job_path": "k.py",
        }
        for name, site, reads, sink, writes in jobs
    ]
    return yaml.safe_dump({"jobs": described})


def kill_coordinator(world: World) -> None:
    world.coordinator.kill()
    world.wait(lambda: not _listening(world.control_port), 30, "the port of the control broker")
    world.coordinator.start()


def kill_agent(world: World) -> None:
    world.sites["c"].kill()
    for port in (world.ports["c"], world.http_ports["c"]):
        world.wait(lambda: not _listening(port), 30, "free ports")  # noqa: B023
    world.sites["c"].start()


def kill_control_broker(world: World) -> None:
    for child in psutil.Process(world.coordinator.pid).children(recursive=True):
        if child.name() == "mosquitto":
            kill_pid(child.pid)


def _listening(port: int) -> bool:
    return any(c.laddr.port == port and c.status == "LISTEN" for c in psutil.net_connections())


KILLS = (kill_coordinator, kill_control_broker, kill_agent)


@pytest.mark.parametrize(
    "kills",
    [KILLS, *(pytest.param((kill,) * 3, marks=pytest.mark.long) for kill in KILLS)],
    ids=["each", "coordinator", "control broker", "agent"],
)
def test_it_becomes_as_wanted(world: World, kills: tuple[Callable[[World], None], ...]) -> None:
    """The first is done after deploying, the second after changing, the third after deleting."""
    after_deploy, after_change, after_delete = kills
    since = time.time_ns() // 1000
    upload(world, "k.py", PASS)
    world.client.put_pipeline("kills", composed(world, CHAIN), "yaml")
    after_deploy(world)
    world.wait_running("kills")
    device = Device(world, "a", "K-in")
    device.start()
    world.wait(lambda: len(log_of(world, "d", "out/K3")) > 200, 120, "records at the end")
    told = world.client.put_pipeline("kills", composed(world, LONGER), "yaml")
    assert told["diff"]["counts"] == {"added": 1, "redirected": 1, "unchanged": 2}
    after_change(world)
    world.wait_running("kills")
    at = len(log_of(world, "c", "out/K2b"))
    world.wait(lambda: len(log_of(world, "c", "out/K2b")) > at + 100, 120, "records through K2b")
    sent = device.stop()
    world.wait(lambda: len(log_of(world, "d", "out/K3")) >= sent, 120, "all records at the end")
    assert numbers(log_of(world, "d", "out/K3"), "a-K-in") == list(range(sent))
    for metric, entity, site in (("n", "K-in", "a"), ("K3.n", "a-K-in", "d")):
        there = {site: sent}
        count = partial(stored, world, metric, entity, since)
        wait_for(lambda: count() == there, 30, lambda: f"{there} of {metric}, but {count()}")  # noqa: B023
    _delete(world)
    after_delete(world)
    ours = {"K1", "K2", "K2b", "K3"}
    world.wait(lambda: world.is_up() and not ours & observed(world), 180, "an end of all jobs")


def stored(world: World, metric: str, entity: str, since: int) -> dict[str, int]:
    """How many values of a metric the stores of each site have, as another site tells."""
    asked = {"metric": metric, "entity": entity, "from": str(since), "bucket": "1000000h"}
    try:
        told = ask(world, "b", "/v1/aggregate", function="count", **asked)
    except FoglineError:
        return {}
    return {row["node"]: row["count"] for row in told["rows"]}


def _delete(world: World) -> None:
    def deleted() -> bool:
        with contextlib.suppress(FoglineError):
            world.client.delete_pipeline("kills")
            return True
        return False

    world.wait(deleted, 60, "a coordinator that deletes")
