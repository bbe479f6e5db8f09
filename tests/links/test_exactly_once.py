"""From log to log over links and copies, with everything dying in between: each record once."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from uuid import uuid4

import pytest

from fogline.agent.contracts.ingest import Subscription
from fogline.agent.ingest.intake import SubscriptionIntake
from fogline.broker import Broker, BrokerOptions, BrokerRefusedError, Message, open_broker
from fogline.broker.memory import hub
from fogline.broker.mosquitto import server
from fogline.links import sender
from fogline.links.copier import Copier, Copy
from fogline.links.inlet import Inlet
from fogline.links.sender import Outlet, pack_batches, pack_renamed
from fogline.log import LogFull, SiteLog, claim_reader, get_position, set_position
from tests.links.kit import contents, eventually, numbers, site, write
from tests.tiers import seeds


@pytest.fixture
def address() -> str:
    return f"memory://{uuid4()}"


@pytest.fixture
def near(tmp_path: Path) -> SiteLog:
    return site(tmp_path / "near", segment_bytes=20_000)


@pytest.fixture
def far(tmp_path: Path) -> SiteLog:
    return site(tmp_path / "far", segment_bytes=20_000)


class Receiving:
    """The far side's intake in its thread."""

    def __init__(self, address: str, logs: SiteLog, pattern: str, client: str = "ingest") -> None:
        self.broker = open_broker(address, BrokerOptions(client_id=client, persistent=True))
        self.broker.connect()
        self.intake = SubscriptionIntake(Subscription(pattern, pattern, address), self.broker, logs)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self.intake.run, args=(self._stop,), daemon=True)
        self._thread.start()
        eventually(lambda: self.intake.subscribed)

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(10)
        self.broker.close()


def connected(address: str, client: str = "near") -> Broker:
    broker = open_broker(address, BrokerOptions(client_id=client))
    broker.connect()
    return broker


def link(logs: SiteLog, log: str, broker: Broker, topic: str, begin: str = "start") -> Outlet:
    pack = pack_batches(logs.folder(log), topic)
    return Outlet(log, logs, broker, pack, "route j 0", begin)


def drain(outlet: Outlet) -> None:
    eventually(lambda: not outlet.forward() and not outlet.lag, "everything sent")
    outlet.finish()


@pytest.mark.parametrize("seed", seeds(1, 20))
def test_both_sides_die_at_random(
    address: str, near: SiteLog, far: SiteLog, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sender forgets what was confirmed, the receiver what it stored and did not acknowledge;
    batches are cut differently each time."""
    chance = random.Random(seed)
    fresh = count()
    receiving = Receiving(address, far, "t/#")
    broker = connected(address)
    outlet = link(near, "out/j", broker, "t/1")
    with near.writer("out/j") as writer:
        for _ in range(60):
            monkeypatch.setattr(sender, "READ_BYTES", chance.choice((50, 300, 3000, 1 << 20)))
            write(
                writer, [next(fresh) for _ in range(chance.randrange(60))], chance.randrange(1, 9)
            )
            for _ in range(chance.randrange(6)):
                outlet.forward()
            event = chance.randrange(6)
            if event == 0:
                outlet.note()
            if event <= 1:
                outlet.close()
                outlet = link(near, "out/j", broker, "t/1")
            if event == 2:
                receiving.broker.acknowledge = lambda batch: None  # type: ignore[method-assign]
            if event <= 3:
                receiving.stop()
                receiving = Receiving(address, far, "t/#")
            if event == 4:
                hub(address.removeprefix("memory://")).drop(chance.choice(("near", "ingest")))
        drain(outlet)
    total = next(fresh)
    eventually(lambda: len(numbers(far, "t/#")) >= total, "everything")
    receiving.stop()
    broker.close()
    assert numbers(far, "t/#") == list(range(total))
    assert {topic for topic, _ in contents(far, "t/#")} == {"t/1"}


def test_a_batch_that_comes_twice(address: str, near: SiteLog, far: SiteLog) -> None:
    receiving = Receiving(address, far, "t")
    broker = connected(address)
    with near.writer("out/j") as writer:
        write(writer, range(50))
    frames, _ = near.reader("out/j").frames(0)
    messages = pack_batches(near.folder("out/j"), "t")(frames).messages
    more = pack_batches(near.folder("out/j"), "t")(frames[:3]).messages
    broker.publish([*messages, *more, *messages]).wait(10)
    broker.publish([Message("t", b"50")]).wait(10)
    eventually(lambda: len(numbers(far, "t")) >= 51)
    receiving.stop()
    broker.close()
    assert sorted(numbers(far, "t")) == list(range(51))


def test_two_origins_and_two_topics_into_one_log(
    address: str, near: SiteLog, far: SiteLog, tmp_path: Path
) -> None:
    """The same log to two topics that a log takes both: that is twice, and both are whole."""
    other = site(tmp_path / "other")
    receiving = Receiving(address, far, "#")
    broker = connected(address)
    for logs in (near, other):
        with logs.writer("out/j") as writer:
            write(writer, range(100))
    second = Outlet(
        "out/j", near, broker, pack_batches(near.folder("out/j"), "b"), "route j 1", "start"
    )
    outlets = [link(near, "out/j", broker, "a"), second, link(other, "out/j", broker, "a")]
    for outlet in outlets:
        drain(outlet)
    eventually(lambda: len(contents(far, "#")) >= 300)
    receiving.stop()
    broker.close()
    found = contents(far, "#")
    assert sorted(found) == sorted([(t, b"%d" % n) for n in range(100) for t in ("a", "a", "b")])
    assert [int(payload) for topic, payload in found if topic == "b"] == list(range(100))


def test_begin_stays_where_it_was(address: str, near: SiteLog) -> None:
    broker = connected(address)
    reader = connected(address, "reader")
    reader.subscribe("fogline/link/t")
    with near.writer("out/j") as writer:
        write(writer, range(10))
        at_end = link(near, "out/j", broker, "t", begin="end")
        assert not at_end.forward()
        write(writer, [10])
        again = link(near, "out/j", broker, "t", begin="end")
        drain(again)
        assert again.messages == 1
        assert get_position(near.folder("out/j"), "route j 0") == writer.position
    early = link(near, "not/yet", broker, "t", begin="end")
    with near.writer("not/yet") as writer:
        write(writer, [1, 2])
    drain(early)
    assert early.messages == 2
    reader.close()
    broker.close()


def test_a_broker_that_refuses_is_asked_again(
    address: str, near: SiteLog, far: SiteLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sender, "_RETRY_SECONDS", 0.01)
    monkeypatch.setattr(sender, "READ_BYTES", 300)
    receiving = Receiving(address, far, "t")
    broker = connected(address)
    with near.writer("out/j") as writer:
        write(writer, range(500))
    outlet = link(near, "out/j", broker, "t")
    publish, answers = broker.publish, iter("nnynyyyynnny")

    def moody(messages: list[Message], timeout: float = 0) -> sender.DeliveryFuture:
        if next(answers, "y") == "y":
            return publish(messages, timeout)
        delivery = sender.DeliveryFuture(1)
        delivery.confirm(sender.BrokerError("not now"))
        return delivery

    monkeypatch.setattr(broker, "publish", moody)
    seen = set()
    while outlet.lag:
        outlet.forward()
        seen.add(outlet.state)
    assert seen == {"running", "cannot send: not now"}
    eventually(lambda: len(numbers(far, "t")) >= 500)
    receiving.stop()
    broker.close()
    assert numbers(far, "t") == list(range(500))


@pytest.mark.site
def test_a_message_that_is_forbidden_holds_nothing_up(
    tmp_path: Path, near: SiteLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "acl").write_text("topic readwrite #\ntopic deny closed/#\n", encoding="utf-8")
    whole = server.configuration
    text = f"acl_file {tmp_path / 'acl'}\n"
    monkeypatch.setattr(server, "configuration", lambda *given: whole(*given) + text)
    with near.writer("out") as writer:
        for number in range(30):
            topic = "closed/a" if number % 10 == 5 else "open/a"
            writer.append([(topic, b"%d" % number)])
        end = writer.commit()
    with server.Mosquitto(tmp_path / "broker") as broker:
        reader = connected(broker.url, "reader")
        reader.subscribe("#")
        client = connected(broker.url)
        outlet = Outlet("out", near, client)
        drain(outlet)
        assert (outlet.messages, outlet.refused, outlet.lag) == (27, 3, 0)
        assert outlet.state == "running"
        assert "closed/a" in outlet.trouble
        assert "refuses: Not authorized" in outlet.trouble
        assert get_position(near.folder("out"), sender.PUBLISHER) == end
        found: list[Message] = []
        eventually(lambda: found.extend(reader.receive(timeout=0.1)) or len(found) >= 27)
        assert [int(m.payload) for m in found] == [n for n in range(30) if n % 10 != 5]
        reader.close()
        client.close()


def test_only_what_was_refused_for_now_is_sent_again(
    address: str, near: SiteLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sender, "_RETRY_SECONDS", 0.01)
    with near.writer("out") as writer:
        writer.append([("a", b"%d" % number) for number in range(5)])
        writer.commit()
    broker = connected(address)
    sent: list[list[bytes]] = []

    def busy(messages: list[Message], timeout: float = 0) -> sender.DeliveryFuture:
        sent.append([m.payload for m in messages])
        delivery = sender.DeliveryFuture(len(messages))
        for message in messages:
            refused = len(sent) < 3 and message.payload == b"3"
            delivery.confirm(BrokerRefusedError("quota exceeded") if refused else None, message)
        return delivery

    monkeypatch.setattr(broker, "publish", busy)
    outlet = Outlet("out", near, broker)
    seen = set()
    while outlet.lag:
        outlet.forward()
        seen.add(outlet.state)
    assert seen == {"running", "cannot send: quota exceeded"}
    assert sent == [[b"0", b"1", b"2", b"3", b"4"], [b"3"], [b"3"]]
    broker.close()


def test_records_with_a_topic_that_cannot_be_published(address: str, near: SiteLog) -> None:
    broker = connected(address)
    reader = connected(address, "reader")
    reader.subscribe("#")
    with near.writer("out") as writer:
        writer.append([("a", b"1"), ("a/#", b"2"), ("a", b"3")])
        writer.commit()
    outlet = Outlet("out", near, broker)
    drain(outlet)
    assert (outlet.messages, outlet.left_out) == (2, 1)
    assert "cannot publish to 'a/#'" in outlet.trouble
    drain(Outlet("out", near, broker, pack_renamed("b"), "route j 0", "start"))
    found: list[Message] = []
    eventually(lambda: found.extend(reader.receive(timeout=0.1)) or len(found) >= 5)
    assert [(m.topic, m.payload) for m in found] == [
        *(("a", b"1"), ("a", b"3")),
        *(("b", b"1"), ("b", b"2"), ("b", b"3")),
    ]
    reader.close()
    broker.close()


def test_bad_batches_are_kept_and_passed(address: str, near: SiteLog, far: SiteLog) -> None:
    receiving = Receiving(address, far, "t")
    broker = connected(address)
    broker.publish([Message("fogline/link/t", b"nonsense"), Message("t", b"1")]).wait(10)
    eventually(lambda: receiving.intake.messages)
    eventually(lambda: contents(far, "bad/links"))
    receiving.stop()
    broker.close()
    assert contents(far, "t") == [("t", b"1")]
    assert contents(far, "bad/links") == [("fogline/link/t", b"nonsense")]


# ── copies ───────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def inlets(far: SiteLog) -> Iterator[list[Inlet]]:
    made = [Inlet(pattern, far.writer(pattern)) for pattern in ("t", "+", "other")]
    yield made
    for inlet in made:
        inlet.close()


def copier(near: SiteLog, inlets: list[Inlet]) -> Copier:
    made = Copier(Copy("out/j", "t", "route j 0"), near)
    made.feed(inlets)
    return made


def finish(copying: Copier) -> None:
    while copying.step():
        pass
    copying.close()


def test_copies_go_to_every_log_that_takes_them(
    near: SiteLog, far: SiteLog, inlets: list[Inlet]
) -> None:
    with near.writer("out/j") as writer:
        write(writer, range(1000))
        finish(copier(near, inlets))
        assert get_position(near.folder("out/j"), "route j 0") == writer.position
        write(writer, range(1000, 1100))
        finish(copier(near, inlets))
    for log in ("t", "+"):
        assert contents(far, log) == [("t", b"%d" % n) for n in range(1100)]
    assert contents(far, "other") == []


def test_a_copy_begins_where_whoever_sent_before_has_come_to(
    near: SiteLog, far: SiteLog, inlets: list[Inlet]
) -> None:
    with near.writer("out/j") as writer:
        write(writer, range(100))
        elsewhere = claim_reader(near.folder("out/j"), "route j 0")
        copying = copier(near, inlets)
        assert copying.step() == 0
        assert copying.state != "running"
        set_position(near.folder("out/j"), "route j 0", writer.position)
        write(writer, range(100, 150))
        assert elsewhere is not None
        elsewhere.release()
        finish(copying)
    assert numbers(far, "t") == list(range(100, 150))


def test_a_copy_dies_at_random(
    near: SiteLog, far: SiteLog, inlets: list[Inlet], monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(3)
    monkeypatch.setattr("fogline.links.copier._READ_BYTES", 500)
    start = 0
    with near.writer("out/j") as writer:
        for _ in range(30):
            stop = start + chance.randrange(200)
            write(writer, range(start, stop))
            start = stop
            copying = copier(near, inlets)
            for _ in range(chance.randrange(8)):
                copying.step()
            if chance.random() < 0.3:
                copying.note()
        finish(copier(near, inlets))
    for log in ("t", "+"):
        assert numbers(far, log) == list(range(start))


def test_without_space_a_copy_waits(
    near: SiteLog, far: SiteLog, inlets: list[Inlet], monkeypatch: pytest.MonkeyPatch
) -> None:
    with near.writer("out/j") as writer:
        write(writer, range(20))
    copying = copier(near, inlets)

    def full(*_: object) -> None:
        raise LogFull("full")

    with monkeypatch.context() as patch:
        patch.setattr(inlets[1], "write", full)
        assert copying.step() == 0
        assert copying.state == "no space: full"
    monkeypatch.setattr(copying, "_due", 0.0)
    finish(copying)
    assert copying.state == "running"
    assert numbers(far, "t") == numbers(far, "+") == list(range(20))


def test_a_log_that_joins_gets_what_comes_then(near: SiteLog, far: SiteLog) -> None:
    """Also when the copy dies before it noted how far it was."""
    with near.writer("out/j") as writer, far.writer("t") as first, far.writer("+") as second:
        early, late = Inlet("t", first), Inlet("+", second)
        write(writer, range(10))
        copying = copier(near, [early])
        while copying.step():
            pass
        copying.feed([early, late])
        write(writer, range(10, 20))
        del copying  # it dies, and its claim with it
        finish(copier(near, [early, late]))
    assert numbers(far, "t") == list(range(20))
    assert numbers(far, "+") == list(range(10, 20))


def test_retention_may_have_been_faster(near: SiteLog, far: SiteLog, inlets: list[Inlet]) -> None:
    with near.writer("out/j") as writer:
        write(writer, range(3000))
    set_position(near.folder("out/j"), "route j 0", 0)
    min(near.folder("out/j").glob("*.seg")).unlink()
    finish(copier(near, inlets))
    found = numbers(far, "t")
    assert found == list(range(found[0], 3000))
    assert found[0] > 0
