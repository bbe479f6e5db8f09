"""The store process of a site: started, changed, killed at any moment, damaged, full."""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import psutil
import pyarrow.parquet as pq
import pytest

from fogline.common.errors import UsageError
from fogline.common.http.server import Server, listen_again
from fogline.common.process.children import Child
from fogline.common.state_files import read_state
from fogline.fabric.contract import StoreFeed, StoreProcessConfig, StoreStatus
from fogline.fabric.process import limits_of
from fogline.log import LogWriter, SiteLog
from fogline.storage.limits import StoreLimits
from fogline.storage.store import SiteStore
from tests.live_folders import below
from tests.storage.kit import START
from tests.tiers import seeds
from tests.waiting import wait_for

pytestmark = pytest.mark.site

SMALL = {"flush_rows": 40, "flush_us": 100_000, "file_rows": 5_000, "merge_files": 3}
SECRET = "what these sites share"
SECONDS = 90.0


class Process:
    """A store process, started again whenever it dies, as the agent does it."""

    def __init__(self, folder: Path, limits: dict[str, float] | None = None) -> None:
        self.folder = folder
        self.config = StoreProcessConfig(
            revision=1, site="north", folder=str(folder), secrets=((SECRET, None),),
            host="127.0.0.1", hosts=(), port=0, limits=limits or {}, nodes={},
            control=None, signed={}, feeds=(), fabric_logs=(),
        )  # fmt: skip
        self.child = self._new()

    @property
    def status(self) -> StoreStatus:
        """Before the first one: a status without anything in it."""
        return self.child.status or StoreStatus(self.child.state)

    def wait(self, true: Callable[[], Any], what: str) -> None:
        told = lambda: f"{what}: {self.status}\n{self.log()}"  # noqa: E731
        wait_for(lambda: self._holds(true), SECONDS, told)

    def _holds(self, true: Callable[[], Any]) -> bool:
        self.child.keep_running()
        try:
            return bool(true())
        except (TypeError, httpx.HTTPError):
            return False

    def running(self, state: str = "running") -> Process:
        self.wait(
            lambda: self.status.state == state and self.status.revision == self.config.revision,
            f"process that is {state}",
        )
        return self

    def change(self, **more: Any) -> None:
        self.config = replace(self.config, **more, revision=self.config.revision + 1)
        self.child.update()

    def configure(self, *feeds: StoreFeed) -> None:
        """Before it is started."""
        self.config = replace(self.config, feeds=feeds)

    def get(self, path: str) -> dict[str, Any]:
        token = (self.folder / "store" / "token").read_text(encoding="utf-8").strip()
        headers = {"Authorization": f"Bearer {token}"}
        with httpx.Client(trust_env=False, timeout=60) as client:
            reply = client.get(f"{self.status.address}{path}", headers=headers)
        reply.raise_for_status()
        return dict(reply.json())

    def kill(self) -> None:
        """The next one is started without a pause."""
        os.kill(self.child.pid, signal.SIGKILL)
        self.child.wait(SECONDS)
        self.child = self._new()

    def _new(self) -> Child[StoreStatus]:
        name, module = "store", "fogline.fabric.process"
        return Child(name, module, lambda: self.config, StoreStatus, self.folder)

    def end(self) -> None:
        self.child.ask_to_end()
        self.child.wait(SECONDS)

    def log(self) -> str:
        return (self.folder / "store.log").read_text(encoding="utf-8")[-3_000:]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Process]]:
    made: list[Process] = []

    def start(**limits: float) -> Process:
        made.append(Process(tmp_path, limits))
        return made[-1]

    yield start
    for process in made:
        process.end()


def feed(log: str, form: str = "json", **more: Any) -> StoreFeed:
    return StoreFeed(log, format=form, time="t", entity="s", **more)


def write(writer: LogWriter, numbers: range) -> None:
    bodies = [{"t": START + n, "s": f"s{n % 5}", "x": n, "on": n % 2 == 0} for n in numbers]
    writer.append([("t", json.dumps(body).encode()) for body in bodies])
    writer.commit()


def stored(folder: Path, metric: str = "x") -> list[int]:
    """All numbers of a metric on disk, in order; the process does not run."""
    with SiteStore(folder / "store") as store:
        found: list[int] = []
        cursor = None
        while True:
            page = store.range(metric, limit=50_000, cursor=cursor)
            found += [int(value.value) for value in page.values()]
            cursor = page.cursor
            if cursor is None:
                return found


def test_it_stores_answers_and_ends(make: Callable[..., Process], tmp_path: Path) -> None:
    process = make()
    process.configure(feed("plant"))
    with SiteLog(tmp_path / "log", min_free_bytes=0).writer("plant") as writer:
        write(writer, range(100))
        process.running()
        process.wait(lambda: len(process.get("/v1/latest?scope=node")["values"]) == 10, "values")
        first = process.status.address
        assert process.status.store["latest"] >= 0
        told = process.get("/v1/latest?metric=x&entity=s4")
        assert [value["value"] for value in told["values"]] == [99.0]
        assert told["nodes"] == [{"node": "north", "state": "answered"}]
        process.wait(lambda: process.status.feeds[0].values == 200, "count of values")
        pid = process.child.pid
        process.end()
        assert not psutil.pid_exists(pid)
        assert stored(tmp_path) == list(range(100))
        assert stored(tmp_path, "on") == [1, 0] * 50
        process.running()
        assert process.status.address == first, "the port stays the same"
        assert (tmp_path / "store" / "token").stat().st_mode & 0o777 == 0o600


def test_what_it_writes_is_for_its_owner_only(make: Callable[..., Process]) -> None:
    process = make().running()
    store = process.folder / "store"
    process.wait(lambda: (store / "manifest").exists(), "manifest")
    modes: dict[Path, int] = {}
    for path in (store, *below(store)):
        with suppress(FileNotFoundError):
            modes[path] = path.stat().st_mode & 0o077
    assert len(modes) > 2
    assert not any(modes.values()), modes


def test_it_follows_changes_and_starts_anew_for_others(make: Callable[..., Process]) -> None:
    process = make().running()
    pid = process.child.pid
    process.change(feeds=(feed("plant"), feed("other", "csv")))
    process.running()
    assert [item.state for item in process.status.feeds] == ["running", "not kept"]
    assert process.child.pid == pid
    process.change(nodes={"south": "http://127.0.0.1:9"})
    process.running()
    process.wait(lambda: process.get("/v1/latest")["nodes"][1]["state"] == "away", "a node away")
    process.change(limits={"hours": 2})
    process.running()
    assert process.child.pid != pid


class Publisher(threading.Thread):
    """Writes numbers into two logs until it is told to end."""

    def __init__(self, logs: SiteLog) -> None:
        super().__init__(daemon=True)
        self.count = 0
        self.ended = threading.Event()
        self._logs = logs

    def run(self) -> None:
        with self._logs.writer("plant") as plant, self._logs.writer("grid") as grid:
            while not self.ended.wait(0.03):
                for writer in (plant, grid):
                    write(writer, range(self.count, self.count + 50))
                self.count += 50


def at_some_moment(chance: random.Random, data: Path) -> None:
    """Any moment, or the one when a file comes or goes: in the midst of a flush or a merge."""
    if chance.random() < 0.3:
        time.sleep(chance.uniform(0, 1))
        return
    deadline, before = time.monotonic() + SECONDS, os.listdir(data)
    while os.listdir(data) == before:
        assert time.monotonic() < deadline, "nothing is written"
    time.sleep(chance.choice([0, 0, 0.002, 0.01]))


@pytest.mark.parametrize("seed", seeds(1, 10))
def test_killed_at_any_moment_nothing_is_lost_or_doubled(
    make: Callable[..., Process], tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    process = make(**SMALL)
    process.configure(feed("plant"), feed("grid", fields=("x",), prefix="grid."))
    publisher = Publisher(SiteLog(tmp_path / "log", min_free_bytes=0))
    process.running()
    publisher.start()
    try:
        for _ in range(6):
            at_some_moment(chance, tmp_path / "store" / "data")
            process.kill()
            process.running()
    finally:
        publisher.ended.set()
        publisher.join()
    process.wait(lambda: all_taken(process), "end of the logs")
    process.kill()
    assert publisher.count > 0
    assert stored(tmp_path) == list(range(publisher.count))
    assert stored(tmp_path, "grid.x") == list(range(publisher.count))
    files = list((tmp_path / "store" / "data").glob("*.parquet"))
    assert sum(pq.read_metadata(file).num_rows for file in files) == 3 * publisher.count


def all_taken(process: Process) -> bool:
    """Whether the logs are in the store, on disk; not from before they ended."""
    told = process.status
    process.wait(lambda: process.status is not told, "a new status")
    lag = sum(item.lag for item in process.status.feeds)
    return lag + int(process.status.store["waiting"]) == 0


def test_it_ends_with_its_parent(make: Callable[..., Process], tmp_path: Path) -> None:
    process = make()
    process.configure(feed("plant"))
    with SiteLog(tmp_path / "log", min_free_bytes=0).writer("plant") as writer:
        process.running()
        write(writer, range(10))
        process.wait(lambda: process.get("/v1/latest?scope=node&metric=x")["values"], "values")
        running = psutil.Process(process.child.pid)
        running.send_signal(signal.SIGTERM)
        running.wait(SECONDS)
        process.child.wait(0)
    assert stored(tmp_path) == list(range(10)), "what waited was written"


def test_a_damaged_store_is_told_and_not_touched(
    make: Callable[..., Process], tmp_path: Path
) -> None:
    process = make().running()
    process.end()
    manifest = tmp_path / "store" / "manifest"
    good = manifest.read_bytes() if manifest.exists() else None
    manifest.write_bytes(b"rubbish")
    process.running("damaged")
    assert "manifest" in process.status.why
    assert process.status.hint
    pid = process.child.pid
    assert manifest.read_bytes() == b"rubbish"
    if good is None:
        manifest.unlink()
    else:
        manifest.write_bytes(good)
    process.change(feeds=())
    process.running()
    assert process.child.pid == pid, "it tries again by itself"


def test_a_store_in_use_and_a_port_in_use_are_told(
    make: Callable[..., Process], tmp_path: Path
) -> None:
    with SiteStore(tmp_path / "store"):
        process = make().running("failed")
        assert "in use" in process.status.why
    process.running()
    taken = Server("127.0.0.1", 0)
    try:
        process.change(port=taken.port)
        process.running("failed")
        assert str(taken.port) in process.status.why
    finally:
        taken.stop()


def test_a_store_that_cannot_be_written_says_so(
    make: Callable[..., Process], tmp_path: Path
) -> None:
    """A folder in the way of its files stands for a full disk."""
    process = make(flush_us=1_000, flush_rows=5, wait_rows=20)
    process.configure(feed("plant"))
    with SiteLog(tmp_path / "log", min_free_bytes=0).writer("plant") as writer:
        process.running()
        data = tmp_path / "store" / "data"
        data.rename(tmp_path / "away")
        data.write_text("in the way", encoding="utf-8")
        written = 0

        def held_up() -> bool:
            nonlocal written
            write(writer, range(written, written + 10))
            written += 10
            return bool(process.status.feeds[0].state != "running")

        process.wait(held_up, "the log's trouble")
        process.wait(lambda: process.status.state in ("failing", "full"), "trouble told")
        used = psutil.Process(process.child.pid)
        before = used.cpu_times()
        told = process.status
        process.wait(lambda: process.status is not told, "another status")
        after = used.cpu_times()
        assert after.user + after.system - before.user - before.system < 2, "it does not spin"
        data.unlink()
        (tmp_path / "away").rename(data)
        process.wait(lambda: process.status.state == "running", "a store that works again")
        process.wait(lambda: process.status.feeds[0].lag == 0, "all that waited")
        process.end()
    assert stored(tmp_path) == list(range(written))


def test_limits_from_the_configuration() -> None:
    assert limits_of({"hours": 0.5, "megabytes": 2, "memory_megabytes": 1}) == StoreLimits(
        age_us=1_800_000_000, disk_bytes=2 << 20, latest_bytes=1 << 20
    )
    assert limits_of({}) == StoreLimits()
    hours: list[Any] = [0, -1, "1", True, None, float("nan"), float("inf")]
    for wrong in ({"other": 1}, {"merge_files": 1}, *({"hours": number} for number in hours)):
        with pytest.raises(UsageError):
            limits_of(wrong)


@pytest.mark.parametrize("text", ["", "rubbish", "0", "70000", "-1", "\0"])
def test_a_remembered_port_that_is_none(tmp_path: Path, text: str) -> None:
    memory = tmp_path / "store-port"
    memory.write_text(text, encoding="utf-8")
    server = listen_again("127.0.0.1", 0, memory)
    server.stop()
    assert int(read_state(memory)) == server.port


def test_a_port_that_somebody_else_has_now_is_not_waited_for(tmp_path: Path) -> None:
    taken = Server("127.0.0.1", 0)
    memory = tmp_path / "store-port"
    memory.write_text(str(taken.port), encoding="ascii")
    try:
        server = listen_again("127.0.0.1", 0, memory)
        server.stop()
        assert server.port != taken.port
    finally:
        taken.stop()
