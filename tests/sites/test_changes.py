"""A query file that is changed while data flows: only what has changed begins anew."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from fogline.demo.world import World
from tests.sites.kit import Device, deployed, log_of, observed, runs

pytestmark = pytest.mark.site

START = 1_700_000_000_000
EVERY_MS = 20
IN_A_WINDOW = 5000 // EVERY_MS
STREAM = """
s = STREAM FROM mqtt(topic="kept", format="json", time="at", lateness="1 s", nodes="a");
"""
COUNTS = "counts = COMPUTE COUNT(x, 5 s) EVERY 5 s;\n"
DOOMED = "doomed = COMPUTE SUM(x, 5 s) EVERY 5 s;\n"
ADDED = "added = COMPUTE MAX(x, 5 s) EVERY 5 s;\n"


class Subscriber:
    """What is published of each insight."""

    def __init__(self, port: int) -> None:
        self._found: list[tuple[str, dict[str, Any]]] = []
        self._client = paho.Client(CallbackAPIVersion.VERSION2, client_id="reader of insights")
        self._client.on_connect = lambda client, *_: client.subscribe("insights/kept-a/+", qos=1)
        self._client.on_message = lambda _, __, message: self._found.append(
            (message.topic, json.loads(message.payload))
        )
        self._client.connect("127.0.0.1", port)
        self._client.loop_start()

    def of(self, insight: str) -> list[dict[str, Any]]:
        return [record for topic, record in self._found if topic == f"insights/kept-a/{insight}"]

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()


@pytest.fixture
def seen(world: World) -> Iterator[Subscriber]:
    made = Subscriber(world.ports["a"])
    yield made
    made.close()


def reading(number: int) -> dict[str, Any]:
    return {"at": START + number * EVERY_MS, "x": 1}


def test_what_has_not_changed_goes_on_while_insights_come_and_go(
    world: World, seen: Subscriber
) -> None:
    def more(insight: str, count: int) -> None:
        """Waits for so many more results of an insight."""
        wanted = len(seen.of(insight)) + count
        world.wait(lambda: len(seen.of(insight)) >= wanted, 120, f"{count} more of {insight}")

    first, second = STREAM + COUNTS + DOOMED, STREAM + COUNTS + ADDED
    with deployed(world, "kept", first, "ins"):
        run = runs(world, "kept-a")
        device = Device(world, "a", "kept", reading=reading)
        device.start()
        more("doomed", 2)

        told = world.client.put_pipeline("kept", second, "ins")
        assert told["text"] == "~ kept-a muted doomed\n+ kept-a-2 added at a: added"
        assert not world.client.put_pipeline("kept", second, "ins")["changed"]
        world.wait_running("kept")
        more("added", 2)
        muted = len(seen.of("doomed"))
        stored = len(log_of(world, "a", "insights/kept-a/doomed"))
        more("counts", 4)
        assert runs(world, "kept-a") == run
        assert len(seen.of("doomed")) == muted
        assert len(log_of(world, "a", "insights/kept-a/doomed")) == stored
        assert world.client.job("kept-a")["muted"] == ["doomed"]

        told = world.client.put_pipeline("kept", first, "ins")
        assert told["text"] == "~ kept-a unmuted doomed\n- kept-a-2 removed at a: added"
        world.wait_running("kept")
        more("doomed", 2)
        assert seen.of("doomed")[muted]["value"] == IN_A_WINDOW, "its window was not begun anew"
        world.wait(lambda: "kept-a-2" not in observed(world), 60, "an end of what is not wanted")
        assert runs(world, "kept-a") == run

        sent = device.stop()
        whole = sent // IN_A_WINDOW - 1
        world.wait(lambda: len(seen.of("counts")) >= whole, 60, "all windows that are over")
        counts = [(record["window"]["start"], record["value"]) for record in seen.of("counts")]
        assert [value for _, value in counts] == [IN_A_WINDOW] * len(counts)
        assert len({start for start, _ in counts}) == len(counts) >= whole
        assert [value for _, value in counts] == [
            record["value"] for record in log_of(world, "a", "insights/kept-a/counts")
        ]


def test_another_site_reads_on_when_another_job_computes_the_insight(world: World) -> None:
    """Of two insights one is changed; what it tells is still sent, each result once."""
    stream = STREAM.replace('"kept"', '"read"')
    counts = "counts = COMPUTE COUNT(x, 5 s) EVERY 5 s;\n"
    most = "most = COMPUTE MAX(x, 5 s) EVERY 5 s;\n"
    total = "total = COMPUTE SUM(counts, 5 s) EVERY 5 s WITH ALLOW WHEN node_id == b;\n"
    log = "insights/read-a/counts"

    def results(site: str, name: str = log) -> list[float]:
        return [record["value"] for record in log_of(world, site, name)]

    def wait_for_results(site: str, name: str, count: int) -> None:
        wanted = len(results(site, name)) + count
        world.wait(lambda: len(results(site, name)) >= wanted, 120, f"{name} at {site}")

    with deployed(world, "read", stream + counts + most, "ins"):
        device = Device(world, "a", "read", reading=reading)
        device.start()
        wait_for_results("a", log, 2)
        told = world.client.put_pipeline("read", stream + counts + most + total, "ins")
        assert f"~ read-a redirected from nowhere to {log} at b" in told["text"]
        world.wait_running("read")
        wait_for_results("b", "insights/read-b/total", 2)
        run = runs(world, "read-a", "read-b")

        doubled = counts.replace("COUNT(x", "SUM(x * 2")
        told = world.client.put_pipeline("read", stream + doubled + most + total, "ins")
        assert told["diff"]["counts"] == {"added": 1, "redirected": 1, "muted": 1, "unchanged": 1}
        world.wait_running("read")
        world.wait(
            lambda: results("b", "insights/read-b/total")[-1] == 2 * IN_A_WINDOW,
            120,
            "totals of what is told now",
        )
        assert runs(world, "read-a", "read-b") == run
        device.stop()

        def last(site: str) -> list[dict[str, Any]]:
            return log_of(world, site, log)[-1:]

        world.wait(lambda: last("b") == last("a"), 60, "the last one at b")
        here, there = log_of(world, "a", log), log_of(world, "b", log)
        assert 0 < len(there) < len(here), "what was told before b read it is not sent"
        assert there == here[-len(there) :]
