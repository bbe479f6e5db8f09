"""Damage in the logs of a site: repaired from the journal, or reported until it is acknowledged."""

from __future__ import annotations

import json
import subprocess
import threading
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from fogline.agent.config.site import read_config
from fogline.agent.contracts.ingest import Subscription
from fogline.agent.damage.watch import DAMAGE_LOG, JOURNAL, DamageStatus, DamageWatch
from fogline.agent.ingest.journal_intake import JournalIntake
from fogline.agent.supervisor.site import Site
from fogline.cli.main import cli
from fogline.common.process.free_ports import free_port
from fogline.log import LogReader, LogWriter, SiteLog
from fogline.log.files.damage import LOST, REPAIRED, load_all
from fogline.log.files.frames import FRAME_BYTES, HEAD
from fogline.log.files.segments import heads, list_segments
from tests.agent.rooms import BASE, Subscriber, publish
from tests.log.kit import flip, follow, segments
from tests.waiting import wait_for

NEVER = threading.Event()
READINGS = [json.dumps({"room": "a", "x": i % 50, "t": BASE + i}) for i in range(20_000)]


class Watched:
    """The logs of a site, their journal and the watch over both, without processes."""

    def __init__(self, folder: Path) -> None:
        self.logs = SiteLog(folder / "log", min_free_bytes=0)
        self.journal = folder / "journal"
        self.said: list[str] = []
        self.watch = DamageWatch("s", self.logs, self.journal, self.said.append, lambda: None)

    def take(self, deduplicate: bool = False) -> None:
        """The readings, through the journal, into their log."""
        journal = LogWriter(self.journal, JOURNAL, min_free_bytes=0)
        intake = JournalIntake(
            self.journal, [Subscription("rooms/+", "rooms/+", "", deduplicate)], self.logs
        )
        for start in range(0, len(READINGS), 2000):
            for reading in READINGS[start : start + 2000]:
                journal.append([("rooms/a", reading.encode())])
                journal.append([("other", b"nobody wants this")])
            journal.commit()
            while intake.step(NEVER):
                pass
        intake.close()
        journal.close()

    @property
    def folder(self) -> Path:
        return self.logs.folder("rooms/+")

    def read(self) -> list[str]:
        with LogReader(self.folder, skip_damage=True) as reader:
            return [payload.decode() for _, payload in follow(reader, 0)]


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    made = Watched(tmp_path)
    yield made
    made.watch.stop()


def test_a_frame_is_made_again_from_the_journal(watched: Watched) -> None:
    watched.take()
    only = segments(watched.folder)[0]
    whole = only.read_bytes()
    flip(only, len(whole) // 2 + 5000, 3000)
    watched.watch.start()
    assert watched.read() == READINGS
    assert only.read_bytes() == whole
    assert {damage.state for damage in load_all(watched.folder)} == {REPAIRED}
    wait_for(lambda: watched.watch.status().unacknowledged, 10, "report")
    assert watched.watch.healthy
    assert watched.watch.status().lost_records == {"rooms/+": 0}


@pytest.mark.site
def test_a_reader_in_java_waits_for_the_repair(watched: Watched) -> None:
    """And is not held up where nothing can be repaired, or nobody is there."""
    watched.take()
    only = segments(watched.folder)[0]
    whole = only.read_bytes()
    flip(only, len(whole) // 2 + 5000)
    jar = files("fogline.spark") / "fogline-connector.jar"
    command = ["java", "-cp", str(jar), "io.fogline.log.LogTool", "check", str(watched.folder)]
    watched.watch.start()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert f"records={len(READINGS)} skipped=0 lost=0" in done.stdout
    assert only.read_bytes() == whole
    watched.watch.stop()
    flip(only, len(whole) // 3 + 5000)
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "lost=0" not in done.stdout
    assert {damage.state for damage in load_all(watched.folder)} == {REPAIRED, LOST}


def test_repetitions_that_were_left_out_do_not_hinder_a_repair(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "READINGS", READINGS[:50] + READINGS[:3000])
    watched.take(deduplicate=True)
    only = segments(watched.folder)[0]
    whole = only.read_bytes()
    flip(only, len(whole) - 100)
    watched.watch.start()
    assert watched.read() == READINGS[50:]
    assert only.read_bytes() == whole


def test_what_no_copy_has_is_reported_until_it_is_acknowledged(watched: Watched) -> None:
    watched.take()
    for segment in segments(watched.journal):
        segment.write_bytes(bytes(segment.stat().st_size))
    only = segments(watched.folder)[0]
    flip(only, only.stat().st_size // 2 + 5000)
    watched.watch.start()
    found = watched.read()
    lost = len(READINGS) - len(found)
    assert 0 < lost < FRAME_BYTES // 20
    wait_for(lambda: not watched.watch.healthy, 10, "report")
    (told,) = watched.watch.status().unacknowledged
    assert (told["log"], told["records"], told["state"]) == ("rooms/+", lost, LOST)
    assert any(f"{lost} records are lost" in line for line in watched.said)
    with watched.logs.reader(DAMAGE_LOG) as reader:
        ((topic, message),) = follow(reader, 0)
    assert (topic, json.loads(message)["records"]) == (DAMAGE_LOG, lost)
    assert watched.watch.acknowledge() == 1
    assert watched.watch.healthy
    assert watched.watch.status() == DamageStatus((), {"rooms/+": lost})
    again = DamageWatch("s", watched.logs, watched.journal, watched.said.append, lambda: None)
    again.step()
    assert again.healthy
    assert len(watched.said) == 1


def test_a_damaged_head_cannot_be_repaired(watched: Watched) -> None:
    watched.take()
    segment = list_segments(watched.folder)[0]
    frames = list(heads(segment, segment.frames, segment.end()))
    flip(segment.path, frames[3].position + HEAD.size - 1)
    watched.watch.start()
    assert len(watched.read()) == len(READINGS) - frames[3].count
    (damage,) = load_all(watched.folder)
    assert (damage.state, damage.records) == (LOST, frames[3].count)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """Alive, without Spark."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    config = tmp_path / "site.yaml"
    text = f"site: test\nengine: none\nbroker: {{port: {free_port()}}}\nmin_free_megabytes: 1\n"
    text += "store: {topics: [{topic: rooms/+, format: json}]}\n"
    config.write_text(text, encoding="utf-8")
    made = Site(read_config(config))
    made.start()
    stop = threading.Event()
    thread = threading.Thread(target=made.run, args=(stop,))
    thread.start()
    try:
        wait_for(lambda: made.status().healthy, 60, "healthy site")
        yield made
    finally:
        stop.set()
        thread.join()
        made.stop()


@dataclass(frozen=True)
class Port:
    mqtt_port: int


def ask(site: Site, path: str, method: str = "GET") -> Any:
    request = urllib.request.Request(site.http_address + path, method=method)
    with urllib.request.urlopen(request, timeout=10) as answer:
        return answer.read().decode()


def status(site: Site) -> Any:
    return json.loads(ask(site, "/status"))


@pytest.mark.site
def test_a_live_site_reports_damage_until_it_is_acknowledged(site: Site, tmp_path: Path) -> None:
    """A byte of a head in the middle of 20,000 readings is flipped: that cannot be repaired."""
    reached = Port(int(site.broker_address.rpartition(":")[2]))
    folder = site.logs.folder("rooms/+")
    subscriber = Subscriber(reached, "bad/#", tmp_path)
    publish(reached, "rooms/a", *READINGS)
    with LogReader(folder) as reader:
        wait_for(lambda: len(follow(reader, 0)) == len(READINGS), 60, "readings")
    segment = list_segments(folder)[0]
    middle = next(heads(segment, segment.end() // 2, segment.end()))
    flip(segment.path, middle.position + HEAD.size - 1)
    with LogReader(folder, skip_damage=True) as reader:
        found = follow(reader, 0)
    lost = len(READINGS) - len(found)
    assert 0 < lost == middle.count < FRAME_BYTES // 20
    (told,) = wait_for(lambda: status(site)["damage"]["unacknowledged"], 30, "report")
    assert not status(site)["healthy"]
    place = (told["log"], told["position"], told["records"])
    assert place == ("rooms/+", middle.position, lost)
    assert f'fogline_log_lost_records{{site="test",log="rooms/+"}} {lost}' in ask(site, "/metrics")
    wait_for(lambda: subscriber.has(f"{DAMAGE_LOG} "), 30, "message")
    subscriber.close()
    shown = CliRunner().invoke(cli, ["log", "damage", "--site", "test", "--json"])
    assert json.loads(shown.stdout) == told
    done = CliRunner().invoke(cli, ["log", "acknowledge", "--site", "test"])
    assert done.stdout == "acknowledged: 1\n"
    assert status(site)["damage"]["unacknowledged"] == []
    wait_for(lambda: status(site)["healthy"], 30, "healthy site")
    again = ask(site, "/damage/acknowledge?log=rooms%2F%2B", "POST")
    assert json.loads(again) == {"acknowledged": 0}
