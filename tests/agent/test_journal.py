"""The broker's journal and the intake from it: what was confirmed is never lost, nor stored twice.

A full disk is made by limiting the size of the broker's files from outside (`prlimit`): a write
then fails in the middle, as on a full disk, and works again as soon as the limit is lifted.
"""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, count
from pathlib import Path
from typing import Any

import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from fogline.agent.broker.site_broker import enforce_journal
from fogline.agent.contracts.ingest import Subscription
from fogline.agent.ingest import journal_intake as module
from fogline.agent.ingest.journal_intake import JournalIntake
from fogline.broker import Message, open_broker
from fogline.broker.mosquitto.journal import READER, register
from fogline.broker.mosquitto.server import Mosquitto, MosquittoOptions
from fogline.common.errors import SetupError
from fogline.common.process.contract import to_json
from fogline.common.state_files import find_damaged
from fogline.log import LogBusy, LogReader, LogWriter, SiteLog, get_position, set_position
from fogline.log.files import committed, sources
from fogline.log.files.damage import load_all
from fogline.log.files.frames import FrameBody
from fogline.log.files.segments import header, list_segments
from tests.broker.worlds import eventually, send
from tests.links.kit import ingest_config

pytestmark = pytest.mark.site

NEVER = threading.Event()


def options(folder: Path, **more: Any) -> MosquittoOptions:
    return MosquittoOptions(**{"journal": folder / "journal", "journal_free_bytes": 0} | more)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Mosquitto]:
    with Mosquitto(tmp_path / "broker", options(tmp_path)) as broker:
        yield broker
        broker.kill()


def journal_of(broker: Mosquitto) -> Path:
    assert broker.options.journal is not None
    return broker.options.journal


def contents(folder: Path, skip_damage: bool = False) -> list[tuple[str, bytes]]:
    found: list[tuple[str, bytes]] = []
    with LogReader(folder, skip_damage) as reader:
        position = reader.first()
        while True:
            records, position = reader.read(position)
            if not records:
                return found
            found += records


def publish(broker: Mosquitto, *messages: Message) -> None:
    with open_broker(broker.url) as client:
        client.connect()
        send(client, *messages)


# ── the plugin ───────────────────────────────────────────────────────────────────────────────────


def test_python_reads_what_the_broker_writes(broker: Mosquitto) -> None:
    messages = [
        Message("a", b"0", 0),
        Message("a/b", b"1", 1),
        Message("a/b", b"2", 2),
        Message("empty", b"", 1),
        Message("binary", bytes(range(256)) * 3, 1),
        Message("stadt/straße/🌡", b"warm\n", 1),
        Message("///", b"levels", 1),
        Message("$odd/topic with spaces", b"x", 1),
        Message("t" * 60_000, b"long", 1),
        Message("large", random.Random(1).randbytes(10_000_000), 1),
    ]
    before = time.time_ns() // 1000
    for message in messages:
        publish(broker, message)
    folder = journal_of(broker)
    assert contents(folder) == [(m.topic, m.payload) for m in messages]
    assert (folder / "topic").read_text() == "$journal"
    with LogReader(folder) as reader:
        frames, _ = reader.frames(0)
    assert {(f.source, f.epoch, f.count, f.last) for f in frames} == {(0, -1, 1, True)}
    assert before <= frames[0].arrival <= time.time_ns() // 1000


def test_a_last_will_is_in_it_once(broker: Mosquitto) -> None:
    client = paho.Client(CallbackAPIVersion.VERSION2)
    client.will_set("gone/device", b"bye", qos=1)
    client.connect("127.0.0.1", broker.port)
    client.loop_start()
    eventually(client.is_connected)
    assert contents(journal_of(broker)) == []
    link = client.socket()
    assert link is not None
    link.shutdown(socket.SHUT_RDWR)
    eventually(lambda: contents(journal_of(broker)))
    client.loop_stop()
    publish(broker, Message("x", b"1"))
    assert contents(journal_of(broker)) == [("gone/device", b"bye"), ("x", b"1")]


def test_with_sync(tmp_path: Path) -> None:
    with Mosquitto(tmp_path / "broker", options(tmp_path, journal_sync=True)) as broker:
        publish(broker, *[Message("x", b"%d" % n) for n in range(20)])
        broker.kill()
    assert [payload for _, payload in contents(journal_of(broker))] == [
        b"%d" % n for n in range(20)
    ]


def raw_publish(topic: bytes, payload: bytes) -> bytes:
    """A PUBLISH at QoS 1, whatever it holds."""
    body = struct.pack(">H", len(topic)) + topic + b"\0\7" + payload
    length, rest = b"", len(body)
    while True:
        rest, digit = rest >> 7, rest & 127
        length += bytes([digit | (128 if rest else 0)])
        if not rest:
            return b"\x32" + length + body


def answer(broker: Mosquitto, packet: bytes) -> bytes:
    """What the broker says to a packet before it closes the connection or falls silent."""
    with socket.create_connection(("127.0.0.1", broker.port), timeout=5) as link:
        link.sendall(b"\x10\x0d\0\x04MQTT\x04\x02\0\x3c\0\x01z")
        assert link.recv(4) == b"\x20\x02\0\0"
        try:
            link.sendall(packet)
            return link.recv(4)
        except ConnectionError:
            return b""


def test_what_the_log_does_not_take_is_not_confirmed(broker: Mosquitto) -> None:
    assert answer(broker, raw_publish(b"ok", b"1")) == b"\x40\x02\0\7"
    assert answer(broker, raw_publish(b"x", bytes((16 << 20) + 1))) == b""
    assert answer(broker, raw_publish(b"x" * 65_535, b"1")) == b""
    assert answer(broker, raw_publish(b"bad \xff\xfe", b"1")) == b""
    assert answer(broker, raw_publish(b"", b"1")) == b""
    assert answer(broker, raw_publish(b"x" * 65_534, b"1")) == b"\x40\x02\0\7"
    assert answer(broker, raw_publish(b"most", bytes(16 << 20))) == b"\x40\x02\0\7"
    sizes = [(len(topic), len(payload)) for topic, payload in contents(journal_of(broker))]
    assert sizes == [(2, 1), (65_534, 1), (4, 16 << 20)]


def test_nonsense_does_not_end_the_broker(broker: Mosquitto) -> None:
    chance = random.Random(7)
    for _ in range(200):
        packet = bytearray(raw_publish(chance.randbytes(chance.randrange(20)), b"payload"))
        for _ in range(chance.randrange(4)):
            packet[chance.randrange(len(packet))] = chance.randrange(256)
        with socket.create_connection(("127.0.0.1", broker.port)) as link:
            link.sendall(b"\x10\x0c\0\x04MQTT\x04\x02\0\x3c\0\0" + packet)
    publish(broker, Message("end", b"1"))
    assert broker.running
    assert contents(journal_of(broker))[-1] == ("end", b"1")


def test_a_new_segment_and_retention(tmp_path: Path, broker: Mosquitto) -> None:
    folder = journal_of(broker)
    intake = JournalIntake(folder, [Subscription("n/#", "n/#", "")], SiteLog(tmp_path / "log"))
    for n in range(6):
        publish(broker, Message(f"n/{n}", b"x" * 14_000_000))
    first, second = list_segments(folder)
    assert first.size() <= 64 << 20
    assert second.first == first.first + first.size()
    enforce_journal(folder)
    assert len(list_segments(folder)) == 2
    drain(intake)
    intake._note()
    assert get_position(folder, READER) == LogReader(folder).committed()
    enforce_journal(folder)
    assert list_segments(folder) == [second]
    intake.close()
    stored = contents(tmp_path / "log" / "n%2F%23")
    assert [(topic, len(payload)) for topic, payload in stored] == [
        (f"n/{n}", 14_000_000) for n in range(6)
    ]


def test_one_writer_only(tmp_path: Path, broker: Mosquitto) -> None:
    folder = journal_of(broker)
    code = (
        "import sys, pathlib, fogline.log as log\n"
        "log.LogWriter(pathlib.Path(sys.argv[1]), '$journal')\n"
    )
    second = subprocess.run(
        [sys.executable, "-c", code, str(folder)], capture_output=True, text=True, check=False
    )
    assert LogBusy.__name__ in second.stderr
    with pytest.raises(SetupError, match="does not start"):
        Mosquitto(tmp_path / "other", options(tmp_path)).start()


# ── repair ───────────────────────────────────────────────────────────────────────────────────────


def restart(broker: Mosquitto) -> Path:
    broker.kill()
    broker.start()
    return journal_of(broker)


def last_file(folder: Path) -> Path:
    return list_segments(folder)[-1].path


def test_a_torn_frame_is_cut_off(broker: Mosquitto) -> None:
    publish(broker, Message("x", b"1"), Message("x", b"2"))
    folder = restart(broker)
    good = last_file(folder).read_bytes()
    for torn in (b"\0", good[16:50], good[16:60] + b"?" * 100, bytes(500)):
        broker.kill()
        last_file(folder).write_bytes(good + torn)
        broker.start()
        assert last_file(folder).read_bytes() == good
    publish(broker, Message("x", b"3"))
    assert contents(folder) == [("x", b"1"), ("x", b"2"), ("x", b"3")]
    broker.kill()
    with LogWriter(folder, "$journal") as writer:
        assert writer.position == LogReader(folder).committed()


@pytest.mark.parametrize("text", [None, b"", b"123", struct.pack("<Q", 77), bytes(20), b"x" * 20])
def test_a_committed_that_is_missing_or_wrong(broker: Mosquitto, text: bytes | None) -> None:
    publish(broker, Message("x", b"1"), Message("x", b"2"))
    folder = journal_of(broker)
    broker.kill()
    (folder / "committed").unlink()
    if text is not None:
        (folder / "committed").write_bytes(text)
    broker.start()
    publish(broker, Message("x", b"3"))
    assert contents(folder) == [("x", b"1"), ("x", b"2"), ("x", b"3")]


def test_a_segment_that_had_only_begun(broker: Mosquitto) -> None:
    publish(broker, Message("x", b"1"))
    folder = journal_of(broker)
    end = LogReader(folder).committed()
    for torn in (b"", header(end)[:9], header(end), header(end) + b"half a frame"):
        broker.kill()
        (folder / f"{end:020}.seg").write_bytes(torn)
        broker.start()
        assert len(list_segments(folder)) == 1
    publish(broker, Message("x", b"2"))
    assert contents(folder) == [("x", b"1"), ("x", b"2")]


def test_a_file_shorter_than_committed(broker: Mosquitto) -> None:
    """A power failure can do that, without `sync`."""
    publish(broker, Message("x", b"1"), Message("x", b"2"))
    folder = journal_of(broker)
    broker.kill()
    os.truncate(last_file(folder), last_file(folder).stat().st_size - 1)
    broker.start()
    publish(broker, Message("x", b"3"))
    assert contents(folder, skip_damage=True) == [("x", b"1"), ("x", b"3")]
    assert [damage.records for damage in load_all(folder)] == [1]


def test_damage_before_committed_is_kept_and_passed(tmp_path: Path, broker: Mosquitto) -> None:
    folder = journal_of(broker)
    intake = JournalIntake(folder, [Subscription("x", "x", "")], SiteLog(tmp_path / "log"))
    publish(broker, Message("x", b"1"), Message("x", b"damaged"))
    broker.kill()
    data = last_file(folder).read_bytes()
    last_file(folder).write_bytes(data.replace(b"damaged", b"DAMAGED"))
    broker.start()
    publish(broker, Message("x", b"3"))
    drain(intake)
    intake.close()
    assert [damage.records for damage in load_all(folder)] == [1]
    assert contents(folder, skip_damage=True) == [("x", b"1"), ("x", b"3")]
    assert contents(tmp_path / "log" / "x") == [("x", b"1"), ("x", b"3")]


# ── a full disk ──────────────────────────────────────────────────────────────────────────────────


class Producer:
    """A device: publishes numbers at QoS 1 and knows which of them were confirmed."""

    def __init__(self, port: int, topic: str) -> None:
        self._topic = topic
        self._sent: dict[int, int] = {}
        self._confirmed: set[int] = set()
        self._client = paho.Client(CallbackAPIVersion.VERSION2, reconnect_on_failure=False)
        self._client.on_publish = lambda client, data, mid, *rest: self._confirmed.add(mid)
        self._client.max_inflight_messages_set(500)
        self._client.connect("127.0.0.1", port)
        self._client.loop_start()

    @property
    def confirmed(self) -> set[int]:
        known = self._confirmed.copy()
        return {number for mid, number in self._sent.copy().items() if mid in known}

    @property
    def unconfirmed(self) -> list[int]:
        return sorted({*self._sent.copy().values()} - self.confirmed)

    def publish(self, number: int) -> bool:
        """Whether it was handed over; not once the connection is gone."""
        info = self._client.publish(self._topic, b"%s %d" % (self._topic.encode(), number), 1)
        self._sent[info.mid] = number
        return info.rc == 0

    def stream(self, numbers: Iterator[int], stop: threading.Event) -> None:
        while not stop.is_set():
            if len(self._sent) - len(self._confirmed) > 1000:
                time.sleep(0.001)
            elif not self.publish(next(numbers)):
                break

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()


@contextmanager
def full_disk(broker: Mosquitto) -> Iterator[None]:
    """No file of the broker grows beyond the size that the journal's segment has now."""
    size = last_file(journal_of(broker)).stat().st_size + 10
    before = resource.prlimit(broker.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    try:
        yield
    finally:
        if broker.running:
            resource.prlimit(broker.pid, resource.RLIMIT_FSIZE, before)


def test_a_full_disk_blocks_and_does_not_confirm(broker: Mosquitto) -> None:
    publish(broker, Message("fill", b"x" * 1_000_000))
    producer = Producer(broker.port, "x")
    with full_disk(broker):
        producer.publish(1)
        producer.publish(2)
        eventually(lambda: "clients wait" in broker.log.read_text())
        time.sleep(0.1)
        assert producer.unconfirmed == [1, 2]
        assert [topic for topic, _ in contents(journal_of(broker))] == ["fill"]
    eventually(lambda: producer.confirmed == {1, 2})
    producer.close()
    assert contents(journal_of(broker))[1:] == [("x", b"x 1"), ("x", b"x 2")]
    said = broker.log.read_text()
    assert said.count("clients wait") == said.count("can be written again") == 1


def test_some_space_is_left_free(tmp_path: Path) -> None:
    with Mosquitto(tmp_path / "broker", options(tmp_path, journal_free_bytes=1 << 60)) as broker:
        producer = Producer(broker.port, "x")
        producer.publish(1)
        eventually(lambda: "No space left" in broker.log.read_text())
        time.sleep(0.1)
        assert producer.unconfirmed == [1]
        started = time.monotonic()
        broker.stop()
        assert time.monotonic() - started < 30
        assert not producer.confirmed
        producer.close()
    assert contents(journal_of(broker)) == []


def test_killed_while_the_disk_is_full(broker: Mosquitto) -> None:
    publish(broker, Message("fill", b"x" * 1_000_000))
    producer = Producer(broker.port, "x")
    with full_disk(broker):
        producer.publish(1)
        eventually(lambda: "clients wait" in broker.log.read_text())
        broker.kill()
    producer.close()
    assert not producer.confirmed
    broker.start()
    publish(broker, Message("x", b"2"))
    assert contents(journal_of(broker))[1:] == [("x", b"2")]


# ── kill -9 under load ───────────────────────────────────────────────────────────────────────────


class Load:
    """One device a topic publishes: for some time when this is made, and on until `end`."""

    def __init__(self, broker: Mosquitto, feeds: dict[str, Iterator[int]], seconds: float) -> None:
        self._stop = threading.Event()
        self.producers = {topic: Producer(broker.port, topic) for topic in feeds}
        self._threads = [
            threading.Thread(target=self.producers[topic].stream, args=(feed, self._stop))
            for topic, feed in feeds.items()
        ]
        for thread in self._threads:
            thread.start()
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline or not all(p.confirmed for p in self.producers.values()):
            time.sleep(0.001)

    def end(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
        for producer in self.producers.values():
            producer.close()


def test_every_confirmed_message_survives_kill_9(broker: Mosquitto) -> None:
    chance = random.Random()
    confirmed: set[bytes] = set()
    feeds = {f"device/{n}": count() for n in range(3)}
    for _ in range(12):
        load = Load(broker, feeds, chance.uniform(0, 0.25))
        broker.kill()
        load.end()
        for topic, producer in load.producers.items():
            confirmed |= {b"%s %d" % (topic.encode(), n) for n in producer.confirmed}
        stored = {payload for _, payload in contents(journal_of(broker))}
        assert confirmed <= stored
        broker.start()
    stored = {payload for _, payload in contents(journal_of(broker))}
    assert confirmed <= stored
    assert len(confirmed) > 1000


def ingest(journal: Path, logs: Path, subscription: Subscription) -> subprocess.Popen[str]:
    """The real process, running once it has told its state."""
    process = subprocess.Popen(
        [sys.executable, "-m", "fogline.agent.ingest.process"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin
    config = ingest_config(logs, journal, subscription)
    process.stdin.write(json.dumps(to_json(config)) + "\n")
    process.stdin.flush()
    return process


def first_status(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout
    told: dict[str, Any] = json.loads(process.stdout.readline())
    return told


def test_kill_9_of_broker_and_intake_together(tmp_path: Path, broker: Mosquitto) -> None:
    """Devices send again what was not confirmed; all that was is in the log exactly once."""
    chance = random.Random()
    confirmed: set[str] = set()
    again: dict[str, list[int]] = {f"device/{n}": [] for n in range(3)}
    fresh = {topic: count() for topic in again}
    subscription = Subscription("device/+", "device/+", broker="")
    folder = journal_of(broker)
    register(folder, ["device/+"])
    for _ in range(5):
        process = ingest(folder, tmp_path / "log", subscription)
        told = first_status(process)
        assert told["state"] == "running"
        assert set(told["subscriptions"][0]) == {
            *("pattern", "log", "state", "messages", "repeated", "bytes")
        }
        feeds = {topic: iter([*again[topic]]) for topic in again}
        load = Load(broker, {t: chain(feeds[t], fresh[t]) for t in feeds}, chance.random() / 3)
        os.kill(process.pid, signal.SIGKILL)
        broker.kill()
        load.end()
        process.communicate()
        for topic, producer in load.producers.items():
            confirmed |= {f"{topic} {n}" for n in producer.confirmed}
            again[topic] = sorted({*producer.unconfirmed, *feeds[topic]})
        broker.start()
    process = ingest(folder, tmp_path / "log", subscription)
    log = tmp_path / "log" / "device%2F%2B"
    eventually(lambda: confirmed <= {payload.decode() for _, payload in contents(log)})
    process.communicate("")
    found = Counter(payload.decode() for _, payload in contents(log))
    assert confirmed <= set(found)
    assert set(found.values()) == {1}
    assert len(confirmed) > 500


# ── the intake ───────────────────────────────────────────────────────────────────────────────────


class Journal:
    """A journal as the broker writes it, without one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._number = 0
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "topic").write_text("$journal")
        self._begin(0)

    def _begin(self, position: int) -> None:
        self._first = position
        self._file = self.folder / f"{position:020}.seg"
        self._file.write_bytes(header(position))

    def roll(self) -> None:
        self._begin(self._first + self._file.stat().st_size)

    def add(self, *messages: tuple[str, bytes], arrival: int = 1) -> int:
        end = self._first + self._file.stat().st_size
        with self._file.open("ab") as file:
            for topic, payload in messages:
                raw = topic.encode()
                record = struct.pack("<IH", len(payload), len(raw)) + raw + payload + b"\n"
                frame = FrameBody(True, arrival, 0, -1, 1, record)
                file.write(frame.head(end, self._number) + record)
                end += frame.size
                self._number += 1
        fd = committed.create(self.folder)
        committed.store(fd, committed.End(end, self._number))
        os.close(fd)
        return end


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "journal")


def subscribe(*patterns: str, deduplicate: bool = False) -> list[Subscription]:
    return [Subscription(pattern, pattern, "", deduplicate) for pattern in patterns]


def drain(intake: JournalIntake, until: int = 0) -> None:
    """Steps until nothing comes any more."""
    while intake.step(NEVER):
        if until and sum(target.messages for target in intake.targets) >= until:
            break


def run_once(journal: Journal, logs: SiteLog, subscriptions: list[Subscription]) -> JournalIntake:
    intake = JournalIntake(journal.folder, subscriptions, logs)
    drain(intake)
    intake.close()
    return intake


def test_the_whole_thing_with_a_broker(tmp_path: Path, broker: Mosquitto) -> None:
    logs = SiteLog(tmp_path / "log", min_free_bytes=0)
    intake = JournalIntake(journal_of(broker), subscribe("room/+", deduplicate=True), logs)
    stop = threading.Event()
    thread = threading.Thread(target=intake.run, args=(stop,))
    thread.start()
    publish(broker, Message("room/a", b"1"), Message("hall", b"2"), Message("room/b", b"3", 0))
    publish(broker, Message("room/a", b"1"))
    target = intake.targets[0]
    eventually(lambda: target.messages == 2 and target.repeated == 1)
    assert (target.state, target.bytes) == ("running", 2)
    stop.set()
    thread.join()
    assert contents(logs.folder("room/+")) == [("room/a", b"1"), ("room/b", b"3")]
    assert get_position(journal_of(broker), READER) == LogReader(journal_of(broker)).committed()


def test_wildcards_and_overlapping_subscriptions(tmp_path: Path, journal: Journal) -> None:
    patterns = ["#", "a/#", "a/+", "+/b", "a/b", "$share/group/a/b", "$x/#", "a", "ä/+"]
    topics = ["a", "a/b", "a/c", "a/b/c", "b", "x/b", "$x/y", "/b", "ä/🌡"]
    logs = SiteLog(tmp_path / "log")
    register(journal.folder, patterns)
    journal.add(*[(topic, topic.encode()) for topic in topics])
    run_once(journal, logs, subscribe(*patterns))
    found = {p: [topic for topic, _ in contents(logs.folder(p))] for p in patterns}
    assert found == {
        "#": ["a", "a/b", "a/c", "a/b/c", "b", "x/b", "/b", "ä/🌡"],
        "a/#": ["a", "a/b", "a/c", "a/b/c"],
        "a/+": ["a/b", "a/c"],
        "+/b": ["a/b", "x/b", "/b"],
        "a/b": ["a/b"],
        "$share/group/a/b": ["a/b"],
        "$x/#": ["$x/y"],
        "a": ["a"],
        "ä/+": ["ä/🌡"],
    }


def test_a_new_subscription_begins_at_its_registration(tmp_path: Path, journal: Journal) -> None:
    logs = SiteLog(tmp_path / "log")
    journal.add(("a", b"before"))
    register(journal.folder, ["a"])
    journal.add(("a", b"1"), ("b", b"before"))
    # Nothing was read for it when the first process died; its beginning stays.
    JournalIntake(journal.folder, subscribe("a"), logs).close()
    journal.add(("a", b"2"), ("b", b"before"))
    run_once(journal, logs, subscribe("a", "b"))
    journal.add(("a", b"3"), ("b", b"1"))
    run_once(journal, logs, subscribe("a"))
    journal.add(("a", b"4"), ("b", b"while it was given up"))
    run_once(journal, logs, subscribe("a", "b"))
    journal.add(("b", b"2"))
    run_once(journal, logs, subscribe("a", "b"))
    assert [p for _, p in contents(logs.folder("a"))] == [b"1", b"2", b"3", b"4"]
    assert [p for _, p in contents(logs.folder("b"))] == [b"2"]


def test_another_journal_has_positions_of_its_own(tmp_path: Path) -> None:
    logs = SiteLog(tmp_path / "log")
    for name in ("first", "second"):
        journal = Journal(tmp_path / name)
        register(journal.folder, ["a"])
        journal.add(("a", name.encode()))
        run_once(journal, logs, subscribe("a"))
    assert contents(logs.folder("a")) == [("a", b"first"), ("a", b"second")]


@pytest.mark.parametrize("name", ["intake", ".intake.copy", f"readers/{READER}"])
def test_a_damaged_file_of_the_intake_doubles_nothing(
    tmp_path: Path, journal: Journal, name: str
) -> None:
    logs = SiteLog(tmp_path / "log")
    register(journal.folder, ["a"])
    journal.add(("a", b"1"), ("b", b"not wanted"))
    run_once(journal, logs, subscribe("a"))
    (journal.folder / name).write_bytes(bytes(30))
    journal.add(("a", b"2"))
    run_once(journal, logs, subscribe("a"))
    assert contents(logs.folder("a")) == [("a", b"1"), ("a", b"2")]
    aside = find_damaged([(journal.folder / name).parent])
    assert len(list(aside)) == (0 if "copy" in name else 1)


def test_a_quiet_log_holds_nothing_back(tmp_path: Path, journal: Journal) -> None:
    register(journal.folder, ["a", "quiet"])
    journal.add(*[("a", b"%d" % n) for n in range(10)])
    intake = JournalIntake(journal.folder, subscribe("a", "quiet"), SiteLog(tmp_path / "log"))
    drain(intake)
    intake._note()
    intake.close()
    end = LogReader(journal.folder).committed()
    assert get_position(journal.folder, READER) == end
    back = JournalIntake(journal.folder, subscribe("a", "quiet"), SiteLog(tmp_path / "log"))
    assert [target.position for target in back.targets] == [end, end]
    back.close()


def test_arrival_is_that_of_the_broker(tmp_path: Path, journal: Journal) -> None:
    register(journal.folder, ["a"])
    for second in range(5):
        journal.add(("a", b"1"), ("a", b"2"), arrival=second * 1_000_000)
    logs = SiteLog(tmp_path / "log")
    run_once(journal, logs, subscribe("a"))
    frames, _ = logs.reader("a").frames(0)
    assert [(f.arrival, f.count) for f in frames] == [(s * 1_000_000, 2) for s in range(5)]
    assert [f.last for f in frames] == [False] * 4 + [True]


def test_repetitions_are_found_after_a_restart(tmp_path: Path, journal: Journal) -> None:
    logs = SiteLog(tmp_path / "log")
    both = [*subscribe("a/1", deduplicate=True), *subscribe("a/+")]
    register(journal.folder, ["a/1", "a/+"])
    journal.add(("a/1", b"x"), ("a/1", b"x"))
    run_once(journal, logs, both)
    journal.add(("a/1", b"x"), ("a/1", b"y"))
    run_once(journal, logs, both)
    assert contents(logs.folder("a/1")) == [("a/1", b"x"), ("a/1", b"y")]
    assert len(contents(logs.folder("a/+"))) == 4


def test_no_space_pauses(tmp_path: Path, journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    register(journal.folder, ["a"])
    journal.add(*[("a", b"%d" % n) for n in range(100)])
    logs = SiteLog(tmp_path / "log")
    intake = JournalIntake(journal.folder, subscribe("a", deduplicate=True), logs)
    free = os.statvfs(tmp_path)
    monkeypatch.setattr(os, "statvfs", lambda path: os.statvfs_result((*free[:4], 0, *free[5:])))
    stop = threading.Event()
    thread = threading.Thread(target=intake.run, args=(stop,))
    thread.start()
    eventually(lambda: intake.targets[0].state.startswith("no space: "))
    monkeypatch.undo()
    eventually(lambda: intake.targets[0].state == "running")
    stop.set()
    thread.join()
    assert [p for _, p in contents(logs.folder("a"))] == [b"%d" % n for n in range(100)]


@pytest.mark.parametrize("deduplicate", [False, True])
def test_killed_at_any_moment(
    tmp_path: Path, journal: Journal, monkeypatch: pytest.MonkeyPatch, deduplicate: bool
) -> None:
    """Logs are at different positions after each kill, and each goes on at its own."""
    monkeypatch.setattr(module, "_READ_BYTES", 1500)
    monkeypatch.setattr(module, "_NOTE_SECONDS", 0.02)
    chance = random.Random()
    patterns = ["n/#", "n/+", "n/1", "n/2/#"]
    register(journal.folder, patterns)
    messages = [(f"n/{i % 3}", b"%d" % i) for i in range(6000)]
    for start in range(0, len(messages), 2000):
        journal.add(*messages[start : start + 2000])
        journal.roll()
    logs = SiteLog(tmp_path / "log", segment_bytes=20_000)
    kills = 0
    while True:
        pid = os.fork()
        if not pid:
            run_once(journal, logs, subscribe(*patterns, deduplicate=deduplicate))
            os._exit(0)
        time.sleep(chance.uniform(0, 0.08))
        os.kill(pid, signal.SIGKILL)
        if not os.waitpid(pid, 0)[1]:
            break
        kills += 1
        if kills > 40:
            run_once(journal, logs, subscribe(*patterns, deduplicate=deduplicate))
            break
    for pattern, wanted in zip(patterns, ("012", "012", "1", "2"), strict=True):
        expected = [message for message in messages if message[0][-1] in wanted]
        assert contents(logs.folder(pattern)) == expected
    assert kills


def test_gone_segments_and_odd_frames_are_passed(tmp_path: Path, journal: Journal) -> None:
    register(journal.folder, ["a"])
    journal.add(("a", b"gone"))
    journal.roll()
    journal.add(("a", b"x" * (3 << 20)), ("a", b"2"))
    (journal.folder / f"{0:020}.seg").unlink()
    logs = SiteLog(tmp_path / "log")
    run_once(journal, logs, subscribe("a"))
    assert [damage.records for damage in load_all(journal.folder)] == [1]
    assert [len(p) for _, p in contents(logs.folder("a"))] == [3 << 20, 1]


def test_retention_waits_for_an_intake(journal: Journal) -> None:
    journal.add(("a", b"1"))
    journal.roll()
    end = journal.add(("a", b"2"))
    sources.store(journal.folder, end, {})
    enforce_journal(journal.folder)
    assert len(list_segments(journal.folder)) == 2
    set_position(journal.folder, READER, end)
    enforce_journal(journal.folder)
    assert len(list_segments(journal.folder)) == 1
