"""Whole gateways with brokers in memory: installing, forwarding, a site away, many at once."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from fogline.broker import Broker, BrokerError, BrokerOptions, Message, Tls, open_broker
from fogline.broker.memory import hub
from fogline.common.errors import DataError
from fogline.control import ControlClient
from fogline.gateway.runtime.config import Buffer, Control, GatewayBroker, GatewayConfig
from fogline.gateway.runtime.control import connect_gateways
from fogline.gateway.runtime.gateway import Gateway
from fogline.gateway.runtime.host import Host
from fogline.links import PREFIX, decode
from tests.broker.certificates import Authority
from tests.damage import DAMAGES, Damage
from tests.gateway.helpers import BASE
from tests.live_folders import below
from tests.waiting import wait_for

_numbers = count()


class Site:
    """The broker of a site, and what comes to it by links, each record once as a site sees it."""

    def __init__(self) -> None:
        self.name = f"site-{next(_numbers)}"
        self.url = f"memory://{self.name}"
        self._broker = open_broker(self.url)
        self._broker.connect()
        self._broker.subscribe(PREFIX + "#")
        self._last: dict[tuple[str, int], int] = {}
        self.records: dict[str, list[Any]] = {}

    def take(self) -> dict[str, list[Any]]:
        for message in (batch := self._broker.receive(timeout=0)):
            topic, link = message.topic.removeprefix(PREFIX), decode(message.payload)
            for piece in link.pieces:
                if piece.end > self._last.get((topic, link.origin), -1):
                    self._last[topic, link.origin] = piece.end
                    self.records.setdefault(topic, []).extend(map(json.loads, piece.payloads))
        self._broker.acknowledge(batch)
        return self.records


@pytest.fixture
def site() -> Site:
    return Site()


@pytest.fixture
def devices() -> Iterator[tuple[str, Broker]]:
    url = f"memory://devices-{next(_numbers)}"
    broker = open_broker(url)
    broker.connect()
    yield url, broker
    broker.close()


Make = Callable[..., Gateway]


@pytest.fixture
def make(tmp_path: Path, devices: tuple[str, Broker]) -> Iterator[Make]:
    made: list[Gateway] = []

    def start(**changes: Any) -> Gateway:
        given = {"gateway": "g", "folder": tmp_path / "g", "broker": GatewayBroker(url=devices[0])}
        gateway = Gateway(GatewayConfig(**given | changes))
        gateway.start()
        made.append(gateway)
        return gateway

    yield start
    for gateway in made:
        gateway.stop()


def told(site: Site | None = None, **changes: Any) -> dict[str, Any]:
    routes = [{"mode": "link", "topic": "up", "broker": site.url, "node": "s"}] if site else []
    given = {
        "job": "j", "pipeline": "p", "work": {"steps": [{"op": "filter", "when": "x >= 0"}]},
        "reads": [{"topic": "d/+"}], "routes": routes, "input": {"time": "time"},
    }  # fmt: skip
    return given | changes


def install(gateway: Gateway, assignments: list[Any]) -> None:
    gateway.install(assignments)
    gateway.settle()


def send(broker: Broker, first: int, last: int, topic: str = "d/1") -> None:
    payloads = [json.dumps({"time": BASE + i, "x": i}).encode() for i in range(first, last)]
    broker.publish([Message(topic, payload) for payload in payloads]).wait(60)


def xs(site: Site, topic: str = "up") -> list[int]:
    return [record["x"] for record in site.take().get(topic, [])]


def test_from_device_to_site(make: Make, devices: tuple[str, Broker], site: Site) -> None:
    gateway = make()
    install(gateway, [told(site)])
    send(devices[1], -5, 1000)
    devices[1].publish([Message("d/2", b"broken"), Message("other", b"{}")])
    assert wait_for(lambda: len(xs(site)) >= 1000)
    assert xs(site) == list(range(1000))
    seen = wait_for(lambda: [o for o in gateway.observed() if o.bad])[0]
    assert (seen.state, seen.records_in, seen.records_out, seen.bad) == ("running", 1005, 1000, 1)
    assert "bad: not JSON" in gateway.job_log("j")[-1]
    wait_for(lambda: gateway.waiting == 0)


def test_a_site_that_is_away(make: Make, devices: tuple[str, Broker], site: Site) -> None:
    gateway = make()
    install(gateway, [told(site)])
    send(devices[1], 0, 100)
    wait_for(lambda: len(xs(site)) == 100)
    hub(site.name).stop()
    send(devices[1], 100, 600)
    wait_for(lambda: gateway.observed()[0].records_out == 600)
    assert gateway.observed()[0].more["waiting_bytes"] > 0
    assert len(site.records["up"]) == 100
    hub(site.name).start()
    send(devices[1], 600, 700)
    wait_for(lambda: len(xs(site)) >= 700)
    assert xs(site) == list(range(700))


def test_it_goes_on_after_a_restart(make: Make, devices: tuple[str, Broker], site: Site) -> None:
    gateway = make()
    install(gateway, [told(site)])
    send(devices[1], 0, 50)
    wait_for(lambda: len(xs(site)) == 50)
    gateway.stop()
    send(devices[1], 50, 100)
    make()
    send(devices[1], 100, 150)
    wait_for(lambda: len(xs(site)) >= 150)
    assert xs(site) == list(range(150))


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_job_with_damaged_state_waits_until_it_is_deployed_anew(
    make: Make, devices: tuple[str, Broker], site: Site, tmp_path: Path, damage: Damage
) -> None:
    gateway = make()
    other = Site()
    install(gateway, [told(site), told(other, job="k")])
    send(devices[1], 0, 50)
    wait_for(lambda: len(xs(site)) == 50 and len(xs(other)) == 50)
    gateway.stop()
    state = tmp_path / "g" / "state" / "j.json"
    damage(state)
    again = make()
    send(devices[1], 50, 60)
    wait_for(lambda: len(xs(other)) >= 60)
    assert xs(other) == list(range(60))
    (failed,) = (job for job in again.observed() if job.job == "j")
    assert failed.state == "failed"
    assert str(state) in failed.problem
    assert len(xs(site)) == 50
    install(again, [told(site)])
    send(devices[1], 60, 70)
    wait_for(lambda: len(xs(site)) >= 60)
    assert xs(site)[50:] == list(range(60, 70))
    assert {job.state for job in again.observed()} == {"running"}


def test_installing_again_and_again(make: Make, devices: tuple[str, Broker], site: Site) -> None:
    gateway = make()
    for _ in range(3):
        install(gateway, [told(site)])
    send(devices[1], 0, 10)
    wait_for(lambda: len(xs(site)) == 10)
    other = Site()
    install(gateway, [told(other)])
    send(devices[1], 10, 20)
    wait_for(lambda: len(xs(other)) >= 10)
    assert xs(other) == list(range(10, 20))
    changed = {"steps": [{"op": "filter", "when": "x >= 25"}]}
    install(gateway, [told(other, work=changed)])
    send(devices[1], 20, 30)
    wait_for(lambda: len(xs(other)) >= 15)
    assert xs(other)[10:] == list(range(25, 30))


def test_removing_forgets(
    make: Make, devices: tuple[str, Broker], site: Site, tmp_path: Path
) -> None:
    gateway = make()
    install(gateway, [told(site), told(site, job="k")])
    send(devices[1], 0, 10)
    wait_for(lambda: len(xs(site)) == 20)
    gateway.remove(["j", "unknown"])
    gateway.settle()
    assert [o.job for o in gateway.observed()] == ["k"]
    wait_for(lambda: not any("out%2Fj" in path.name for path in below(tmp_path / "g")))
    with pytest.raises(DataError):
        gateway.job_log("j")
    install(gateway, [told(site)])
    assert {o.job: o.records_in for o in gateway.observed()}["j"] == 0


def test_a_removed_job_forwards_what_it_took(
    make: Make, devices: tuple[str, Broker], site: Site, tmp_path: Path
) -> None:
    gateway = make()
    install(gateway, [told(site)])
    hub(site.name).stop()
    send(devices[1], 0, 600)
    wait_for(lambda: gateway.observed()[0].records_out == 600)
    gateway.remove(["j"])
    gateway.settle()
    assert gateway.observed() == []
    gateway.stop()
    gateway = make()
    assert gateway.observed() == []
    with pytest.raises(DataError, match="still ending"):
        gateway.install([told(Site())])
    send(devices[1], 600, 700)
    hub(site.name).start()
    wait_for(lambda: len(xs(site)) >= 600)
    wait_for(lambda: not any("out%2Fj" in path.name for path in below(tmp_path / "g")))
    assert xs(site) == list(range(600))
    install(gateway, [told(site)])
    send(devices[1], 700, 710)
    wait_for(lambda: len(xs(site)) >= 610)
    assert xs(site)[600:] == list(range(700, 710))


def test_open_windows_are_flushed(make: Make, devices: tuple[str, Broker], site: Site) -> None:
    gateway = make()
    steps = [{"op": "aggregate", "window": 3600, "fields": ["x"], "functions": ["sum"]}]
    install(gateway, [told(site, work={"steps": steps})])
    send(devices[1], 0, 10)
    wait_for(lambda: gateway.observed()[0].records_in == 10)
    gateway.flush(["j"])
    assert wait_for(lambda: site.take().get("up"))[0]["sum_x"] == 45


def test_a_full_buffer_stops_intake(make: Make, devices: tuple[str, Broker], site: Site) -> None:
    gateway = make(buffer=Buffer(megabytes=0.01))
    install(gateway, [told(site)])
    hub(site.name).stop()
    sent = 0
    while "buffer is full" not in gateway.state:
        send(devices[1], sent, sent + 100)
        sent += 100
        assert sent < 100_000
    seen = gateway.observed()[0].records_in
    send(devices[1], sent, sent + 3000)
    hub(site.name).start()
    wait_for(lambda: len(xs(site)) >= sent + 3000)
    assert xs(site) == list(range(sent + 3000))
    assert seen < sent + 3000
    wait_for(lambda: gateway.state == "running")


@pytest.mark.site
def test_a_full_buffer_stops_the_own_broker(make: Make, site: Site) -> None:
    gateway = make(broker=GatewayBroker(), buffer=Buffer(megabytes=0.01))
    install(gateway, [told(site)])
    device = open_broker(gateway.broker_url, BrokerOptions("device", retry_longest=0.2, window=20))
    device.connect()
    hub(site.name).stop()
    sender = threading.Thread(target=send, args=(device, 0, 3000))
    sender.start()
    wait_for(lambda: "buffer is full" in gateway.state)
    wait_for(lambda: not device.connected)
    assert gateway.waiting < 1_000_000
    hub(site.name).start()
    wait_for(lambda: len(xs(site)) >= 3000, 60)
    sender.join(60)
    assert xs(site) == list(range(3000))
    device.close()


@pytest.mark.site
@pytest.mark.parametrize("encrypted", [False, True])
def test_devices_of_the_network_reach_the_own_broker(
    make: Make, site: Site, tmp_path: Path, encrypted: bool
) -> None:
    authority, server = Authority(tmp_path, "ca"), None
    if encrypted:
        server = authority.sign("server", "IP:127.0.0.2")
    (tmp_path / "secret").write_text("word\n", encoding="utf-8")
    given = GatewayBroker(
        host="127.0.0.2",
        user="dev",
        password_file=tmp_path / "secret",
        certificate=server.certificate if server else None,
        key=server.key if server else None,
    )
    gateway = make(broker=given, announce="mqtt://gate.example:1883")
    assert gateway.describe().broker == "mqtt://gate.example:1883"
    routes = [*told(site)["routes"], {"mode": "publish", "topic": "here"}]
    install(gateway, [told(site, routes=routes)])
    url = gateway.broker_url
    assert url.startswith(
        "mqtts://dev:word@127.0.0.2" if encrypted else "mqtt://dev:word@127.0.0.2"
    )
    tls = Tls(ca=authority.certificate) if encrypted else None
    device = open_broker(url, BrokerOptions("device", tls=tls))
    device.connect()
    device.subscribe("here")
    send(device, 0, 20)
    wait_for(lambda: len(xs(site)) >= 20)
    wait_for(lambda: len(device.receive(timeout=1.0)) > 0)
    device.close()
    with pytest.raises(BrokerError):
        open_broker(url.replace("dev:word@", ""), BrokerOptions("x", tls=tls)).connect()


def test_it_takes_from_other_brokers_too(make: Make, site: Site) -> None:
    url = f"memory://far-{next(_numbers)}"
    far = open_broker(url)
    far.connect()
    gateway = make()
    install(gateway, [told(site, reads=[{"topic": "d/+", "broker": url}])])
    send(far, 0, 20)
    wait_for(lambda: len(xs(site)) >= 20)
    assert xs(site) == list(range(20))
    far.close()


HOSTILE: list[Any] = [
    None, {}, [None], [{}], [told(work={"entry": "m:f", "package": "", "file": ""})],
    [told(work={"steps": "abc"})], [told(work={"steps": [1, 2]})], [told(work={"steps": [{}]})],
    [told(reads=[])], [told(reads=[{"topic": "a/#/b"}])], [told(reads=[{"topic": 3}])],
    [told(reads=[{"topic": "a"}, {"topic": "b", "broker": "mqtt://h:1"}])],
    [told(reads=[{"topic": "a", "broker": "http://h"}])], [told(job="a/b")],
    [told(routes=[{"mode": "log", "topic": "a"}])], [told(routes=[{"mode": "link", "topic": "a"}])],
    [told(routes=[{"mode": "publish", "topic": "a/+"}])], [told(parameters={"nothing": 1})],
    [told(input={"format": "yaml"})],
]  # fmt: skip


@pytest.mark.parametrize("assignments", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_assignments_are_refused(make: Make, assignments: Any) -> None:
    gateway = make()
    with pytest.raises(DataError):
        gateway.install(assignments)
    assert gateway.observed() == []


def test_all_problems_of_all_jobs_are_told(make: Make) -> None:
    wrong = [told(job=f"j{i}", work={"steps": [{"op": "filter"}, {"op": "x"}]}) for i in range(3)]
    with pytest.raises(DataError) as refused:
        make().install([*wrong, told()])
    assert str(refused.value).count("step 0") == str(refused.value).count("step 1") == 3


def test_under_control(make: Make, devices: tuple[str, Broker], site: Site) -> None:
    gateway = make(site="north", labels={"floor": "2"})
    url = f"memory://control-{next(_numbers)}"
    client = ControlClient(url, {}, lambda: None, "test")
    client.start()
    node = connect_gateways([gateway], Control(url))
    node.start()
    try:
        wait_for(lambda: node.connected)

        def ask(op: str, **body: Any) -> dict[str, Any]:
            return dict(client.send("g", op, body, 10).result())

        ask("install", assignments=[told(site)])
        send(devices[1], 0, 10)
        wait_for(lambda: len(xs(site)) == 10)
        jobs = ask("describe")["jobs"]
        assert [(j["job"], j["records_out"]) for j in jobs] == [("j", 10)]
        assert ask("logs", job="j", lines=5)["lines"] == []
        ask("flush", jobs=["j"])
        ask("remove", jobs=["j"])
        assert ask("describe")["jobs"] == []
        with pytest.raises(Exception, match="step 0"):
            ask("install", assignments=[told(site, work={"steps": [{"op": "?"}]})])
    finally:
        node.close()
        client.close()
    described = gateway.describe()
    assert (described.kind, described.site, described.labels) == (
        "gateway",
        "north",
        {"floor": "2"},
    )


def test_fifty_gateways_in_one_process(
    tmp_path: Path, devices: tuple[str, Broker], site: Site
) -> None:
    broker = GatewayBroker(url=devices[0])
    config = GatewayConfig(gateway="g", folder=tmp_path, broker=broker, gateways=50)
    threads = threading.active_count()
    host = Host(config)
    host.start()
    try:
        for gateway in host.gateways:
            name = gateway.config.gateway
            route = {"mode": "link", "topic": f"up/{name}", "broker": site.url, "node": "s"}
            install(gateway, [told(reads=[{"topic": "{gateway}/+"}], routes=[route])])
        for number in range(50):
            send(devices[1], number, number + 20, f"g-{number + 1:03}/t")
        wait_for(lambda: sum(map(len, site.take().values())) >= 1000, 40)
        for number in range(50):
            assert xs(site, f"up/g-{number + 1:03}") == list(range(number, number + 20))
        assert threading.active_count() - threads < 10
    finally:
        host.stop()


# ── many under control ───────────────────────────────────────────────────────────────────────────


@pytest.fixture
def host(tmp_path: Path, devices: tuple[str, Broker]) -> Iterator[Callable[[], Host]]:
    """Starts twenty gateways under control, in place of those before."""
    url = f"memory://control-{next(_numbers)}"
    broker, made = GatewayBroker(url=devices[0]), []

    def start() -> Host:
        for old in made:
            old.stop()
        made[:] = [
            Host(GatewayConfig("g", tmp_path, broker=broker, control=Control(url), gateways=20))
        ]
        made[0].start()
        return made[0]

    yield start
    made[0].stop()


def asked(client: ControlClient, op: str, bodies: dict[str, dict[str, Any]]) -> None:
    futures = [client.send(name, op, body, 60) for name, body in bodies.items()]
    for future in futures:
        future.result()


def test_many_gateways_are_told_together(
    host: Callable[[], Host],
    devices: tuple[str, Broker],
    site: Site,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    threads = threading.active_count()
    first = host()
    assert first._control is not None
    client = ControlClient(first._control.url, {}, lambda: None, "test")
    client.start()
    names = [gateway.config.gateway for gateway in first.gateways]
    try:
        online = lambda: [v.node.name for v in client.views().values() if v.online]  # noqa: E731
        wait_for(lambda: sorted(online()) == names)
        assert threading.active_count() - threads < 16
        syncs: list[int] = []
        fsync, fdatasync = os.fsync, os.fdatasync
        monkeypatch.setattr(os, "fsync", lambda fd: (syncs.append(fd), fsync(fd))[1])
        monkeypatch.setattr(os, "fdatasync", lambda fd: (syncs.append(fd), fdatasync(fd))[1])
        reads = [{"topic": "{gateway}/+"}]
        asked(client, "install", {n: {"assignments": [told(site, reads=reads)]} for n in names})
        assert len(syncs) < len(names)
        monkeypatch.undo()
        wait_for(lambda: all(v.jobs for v in client.views().values()))
        send(devices[1], 0, 5, "g-007/t")
        wait_for(lambda: len(xs(site)) == 5)
        asked(client, "remove", {n: {"jobs": ["j"]} for n in names[:10]})
        host()
        wait_for(
            lambda: [len(v.jobs) for _, v in sorted(client.views().items())] == [0] * 10 + [1] * 10
        )
        send(devices[1], 5, 10, "g-011/t")
        send(devices[1], 10, 15, "g-001/t")
        wait_for(lambda: len(xs(site)) >= 10)
        assert xs(site) == list(range(10))
    finally:
        client.close()


def test_one_wrong_request_among_many_fails_alone(host: Callable[[], Host], site: Site) -> None:
    made = host()
    assert made._control is not None
    client = ControlClient(made._control.url, {}, lambda: None, "test")
    client.start()
    try:
        wait_for(lambda: len(client.views()) == 20)
        bodies = [[told(site)], [told(site, reads=[])], [told(site)]]
        futures = [
            client.send(f"g-{number:03}", "install", {"assignments": body}, 60)
            for number, body in enumerate(bodies, 1)
        ]
        failed = [future.exception() is not None for future in futures]
        assert failed == [False, True, False]
        assert [len(gateway.observed()) for gateway in made.gateways[:3]] == [1, 0, 1]
    finally:
        client.close()


# ── what is not there yet ────────────────────────────────────────────────────────────────────────


def test_a_job_whose_broker_is_away_waits_for_it(
    make: Make, devices: tuple[str, Broker], site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fogline.gateway.runtime.intake._SUBSCRIBE_SECONDS", 0.1)
    gateway = make()
    name = devices[0].removeprefix("memory://")
    wait_for(lambda: gateway.state == "running")
    hub(name).stop()
    gateway.install([told(site)])
    with pytest.raises(BrokerError):
        gateway.settle()
    seen = gateway.observed()[0]
    assert (seen.state, "disconnected" in seen.problem) == ("starting", True)
    gateway.settle()
    hub(name).start()
    wait_for(lambda: gateway.observed()[0].state == "running")
    wait_for(lambda: devices[1].connected)
    send(devices[1], 0, 5)
    wait_for(lambda: len(xs(site)) == 5)


def test_routes_of_a_job_without_output(
    make: Make, devices: tuple[str, Broker], site: Site
) -> None:
    gateway, other = make(), Site()
    install(gateway, [told(site)])
    states = gateway.observed()[0].more["routes"]
    assert [(s["topic"], s["sent"], s["lag"]) for s in states] == [("up", 0, 0)]
    install(gateway, [told(other)])
    gateway.stop()
    make()
    send(devices[1], 0, 10)
    wait_for(lambda: len(xs(other)) == 10)
    assert xs(site) == []


def test_a_route_that_is_added_begins_with_what_comes_from_now_on(
    make: Make, devices: tuple[str, Broker], site: Site
) -> None:
    gateway, other = make(), Site()
    install(gateway, [told(site)])
    send(devices[1], 0, 10)
    wait_for(lambda: len(xs(site)) == 10)
    both = [*told(site)["routes"], *told(other)["routes"]]
    install(gateway, [told(site, routes=both)])
    gateway.stop()
    make()
    send(devices[1], 10, 20)
    wait_for(lambda: len(xs(site)) == 20 and len(xs(other)) >= 10)
    assert xs(other) == list(range(10, 20))


@pytest.mark.parametrize("mode", ["link", "publish"])
def test_a_site_that_was_never_seen_is_waited_for(
    make: Make, devices: tuple[str, Broker], site: Site, mode: str
) -> None:
    gateway = make()
    echo = open_broker(devices[0])
    echo.connect()
    echo.subscribe(["up", f"{PREFIX}#"])
    install(gateway, [told(routes=[{"mode": mode, "topic": "up", "node": "s"}])])
    send(devices[1], 0, 50)
    wait_for(lambda: gateway.observed()[0].records_out == 50)
    (route,) = gateway.observed()[0].more["routes"]
    assert "s was never seen" in route["state"]
    wait_for(lambda: gateway.observed()[0].more["waiting_bytes"] > 0)
    gateway.stop()
    gateway = make()
    send(devices[1], 50, 100)
    wait_for(lambda: gateway.observed()[0].records_out == 100)
    assert len(echo.receive(timeout=0.1)) == 0, "it is not for the devices' broker"
    install(gateway, [told(site)])
    send(devices[1], 100, 150)
    wait_for(lambda: len(xs(site)) >= 150)
    assert xs(site) == list(range(150))
    echo.close()


def test_counts_go_on_when_a_job_is_changed(
    make: Make, devices: tuple[str, Broker], site: Site
) -> None:
    gateway = make()
    install(gateway, [told(site)])
    send(devices[1], 0, 10)
    wait_for(lambda: gateway.observed()[0].records_in == 10)
    other = {"steps": [{"op": "filter", "when": "x >= 15"}]}
    install(gateway, [told(site, work=other)])
    assert gateway.observed()[0].records_in == 10
    gateway.stop()
    gateway = make()
    send(devices[1], 10, 20)
    wait_for(lambda: gateway.observed()[0].records_in == 20)
    assert gateway.observed()[0].records_out == 15


def test_a_job_that_reads_elsewhere_begins_there_with_what_comes(
    make: Make, devices: tuple[str, Broker], site: Site
) -> None:
    url = f"memory://far-{next(_numbers)}"
    far = open_broker(url)
    far.connect()
    gateway = make()
    install(gateway, [told(site, job="k", reads=[{"topic": "d/+", "broker": url}])])
    send(far, 0, 5)
    install(gateway, [told(site)])
    send(devices[1], 100, 110)
    wait_for(lambda: len(xs(site)) == 15)
    install(gateway, [told(site, reads=[{"topic": "d/+", "broker": url}])])
    send(far, 5, 10)
    wait_for(lambda: len(xs(site)) >= 25)
    assert sorted(xs(site)) == sorted([*range(10), *range(5, 10), *range(100, 110)])
    far.close()
