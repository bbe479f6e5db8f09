"""From the site's logs into its store: every field, every log, whatever goes wrong with one."""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fogline.fabric.contract import FeedStatus, StoreFeed
from fogline.fabric.streams import log_to_store as feeding_module
from fogline.fabric.streams.log_to_store import Feeding
from fogline.fabric.streams.stored_log import source_of
from fogline.log import LogWriter, SiteLog, get_position, set_position
from fogline.storage.errors import StoreFull
from fogline.storage.ingest.columns import _by_columns, decode_batch
from fogline.storage.ingest.decode import ArrivedMessage, decode
from fogline.storage.ingest.log_to_store import READER
from fogline.storage.ingest.mapping import Insights, Readings
from fogline.storage.store import SiteStore
from fogline.storage.values import BATCH, Value, to_values
from tests.storage.kit import START, everything, same_values
from tests.waiting import wait_for

ALL = Readings(entity="s", time="t", labels=("c",), prefix="p.")


def message(body: object) -> ArrivedMessage:
    return "city/1", body if isinstance(body, bytes) else json.dumps(body).encode(), START


# ── every field ──────────────────────────────────────────────────────────────────────────────────


def test_every_scalar_of_a_record_is_kept() -> None:
    record = {"t": START, "s": "a", "c": "bern", "x": 1, "on": True, "mode": "auto", "none": None,
              "list": [1], "deep": {"x": 1}, "": 5}  # fmt: skip
    found = decode(ALL, [message(record), message({"t": START, "s": "a", "new": 2})])
    labels = {"c": "bern"}
    assert to_values(found.table) == [
        Value("p.x", "a", START, 1.0, labels),
        Value("p.on", "a", START, 1.0, labels),
        Value("p.mode", "a", START, "auto", labels),
        Value("p.", "a", START, 5.0, labels),
        Value("p.new", "a", START, 2.0),
    ]
    assert found.rejected == {}


SCALARS = st.one_of(
    st.none(), st.integers(-(2**70), 2**70), st.floats(), st.booleans(), st.text(max_size=3),
    st.sampled_from(["2026-01-01", "2026-01-01T00:00:00Z", "\u0000", "\ud800", [1], {"a": 1}]),
)  # fmt: skip
USUAL = st.fixed_dictionaries(
    {"t": st.integers(START, START + 99), "s": st.sampled_from(["a", "b", "é"])},
    optional={"x": st.floats(), "y": st.text(max_size=3), "c": st.sampled_from(["k", "l"]),
              "b": st.booleans(), "n": st.integers(-(2**70), 2**70),
              "d": st.sampled_from(["2026-01-01", "12:30"]),
              "o": st.sampled_from([{"t": 1}, None])},
)  # fmt: skip
ODD = st.dictionaries(st.sampled_from(["t", "s", "x", "y", "c", "new", "b"]), SCALARS)


@given(st.lists(USUAL, min_size=16, max_size=40), st.lists(ODD, max_size=1))
def test_all_fields_by_columns_and_by_records_agree(
    usual: list[dict[str, object]], odd: list[object]
) -> None:
    messages = [message(body) for body in [*usual, *odd]]
    one, many = decode(ALL, messages), decode_batch(ALL, messages)
    assert one.rejected == many.rejected
    by_metric = [
        sorted(to_values(found.table), key=lambda value: value.metric) for found in (one, many)
    ]
    assert same_values(*by_metric)


def test_the_usual_case_and_new_fields_go_by_columns() -> None:
    bodies: list[dict[str, Any]] = [
        {
            "t": START + i,
            "s": "a",
            "x": i,
            "on": True,
            "mode": "auto",
            "deep": {},
            "d": "2026-01-01",
        }
        for i in range(100)
    ]
    assert _by_columns(ALL, [message(body) for body in bodies]) is not None
    bodies[51]["surprise"] = 5
    table = _by_columns(ALL, [message(body) for body in bodies])
    assert table is not None
    assert len(table) == 401


def test_names_without_end_do_not_fill_the_memory() -> None:
    messages = [message({"t": START, "s": "a", f"field{i}": i}) for i in range(3_000)]
    assert _by_columns(ALL, messages) is None
    assert len(decode_batch(ALL, messages).table) == 3_000


def test_ndjson_has_a_record_a_line() -> None:
    """A line that is no record makes the message bad, as in a query."""
    source = Readings(format="ndjson", time="t", entity="s")
    lines = b'{"t":%d,"s":"a","x":1}\n\n{"t":%d,"s":"b","x":2}\r\n' % (START, START)
    for count in (1, 20):
        found = decode_batch(source, [message(lines), message(lines + b"rubbish\n")] * count)
        assert len(found.table) == 2 * count
        assert found.rejected == {"not json": count}


def test_declarations_of_logs() -> None:
    readings = StoreFeed("a/b", format="senml", labels=("x",))
    assert source_of(readings) == Readings(format="senml", labels=("x",))
    assert source_of(StoreFeed("a", "insights")) == Insights()
    lines = StoreFeed("a", format="csv", header=("t", "x"))
    assert source_of(lines) == Readings(format="csv", header=("t", "x"))


# ── many logs ────────────────────────────────────────────────────────────────────────────────────


class Rig:
    """A store, the logs of a site, and the thread between them."""

    def __init__(self, folder: Path) -> None:
        self.logs = SiteLog(folder / "log", min_free_bytes=0)
        self.store = SiteStore(folder / "store")
        self.feeding = Feeding(self.store, self.logs)
        self._writers: dict[str, LogWriter] = {}

    def write(self, log: str, *bodies: object) -> int:
        if log not in self._writers:
            self._writers[log] = self.logs.writer(log)
        self._writers[log].append([(log, message(body)[1]) for body in bodies])
        return self._writers[log].commit()

    def remove(self, log: str) -> None:
        self._writers.pop(log).close()
        shutil.rmtree(self.logs.folder(log))

    def set_feeds(self, *logs: str, **more: Any) -> None:
        self.feeding.set_feeds([StoreFeed(log, **more) for log in logs])

    def status_of(self, log: str) -> FeedStatus | None:
        return next((item for item in self.feeding.status() if item.log == log), None)

    def state(self, log: str) -> str:
        found = self.status_of(log)
        return found.state if found else "not told"

    def taken(self, log: str) -> int:
        found = self.status_of(log)
        return found.values if found else -1

    def close(self) -> None:
        self.feeding.close()
        for writer in self._writers.values():
            writer.close()
        self.store.close()


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = Rig(tmp_path)
    made.feeding.start()
    yield made
    made.close()


def test_logs_are_followed_as_the_list_changes(rig: Rig) -> None:
    rig.write("a", {"x": 1}, {"x": 2})
    rig.set_feeds("a", "b")
    wait_for(lambda: rig.taken("a") == 2, 60, "the first log")
    rig.write("b", {"x": 3})
    wait_for(lambda: rig.taken("b") == 1, 60, "a log that was made later")
    assert rig.status_of("a").lag == 0
    rig.set_feeds("b", "c")
    wait_for(lambda: not rig.status_of("a"), 60, "the end of the first log")
    rig.write("c", {"x": 4, "y": "on"})
    wait_for(lambda: rig.taken("c") == 2, 60, "the third log")
    rig.write("a", {"x": 5})
    rig.set_feeds("a")
    wait_for(lambda: rig.taken("a") == 1, 60, "the first log goes on where it was")
    found = sorted(str(value.value) for value in everything(rig.store))
    assert found == ["1.0", "2.0", "3.0", "4.0", "5.0", "on"]


def test_a_log_that_is_not_wanted_holds_up_nothing(rig: Rig) -> None:
    end = rig.write("a", *({"x": number} for number in range(500)))
    rig.set_feeds("a")
    wait_for(lambda: rig.taken("a") == 500, 60, "all values")
    folder = rig.logs.folder("a")
    assert get_position(folder, READER) == 0, "nothing is on disk in the store yet"
    rig.set_feeds()
    wait_for(lambda: get_position(folder, READER) is None, 60, "the reader to be forgotten")
    assert rig.store.committed("a") == end
    assert rig.store.state().rows == 500


def test_places_of_logs_that_nobody_names_are_forgotten_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feeding_module, "_STRAY_SECONDS", 0.0)
    rig = Rig(tmp_path)
    try:
        for log in ("kept", "stray"):
            rig.write(log, {"x": 1})
            set_position(rig.logs.folder(log), READER, 0)
        rig.set_feeds("kept")
        rig.feeding.start()
        wait_for(lambda: get_position(rig.logs.folder("stray"), READER) is None, 60, "forgotten")
        assert get_position(rig.logs.folder("kept"), READER) == 0
    finally:
        rig.close()


def test_a_changed_declaration_counts_from_then_on(rig: Rig) -> None:
    rig.set_feeds("a", prefix="old.")
    rig.write("a", {"x": 1})
    wait_for(lambda: rig.taken("a") == 1, 60, "the first value")
    rig.set_feeds("a", prefix="new.")
    wait_for(lambda: rig.taken("a") == 0, 60, "the new declaration")
    rig.write("a", {"x": 2})
    wait_for(lambda: rig.taken("a") == 1, 60, "the second value")
    assert [value.metric for value in everything(rig.store)] == ["old.x", "new.x"]


@pytest.mark.parametrize(
    ("more", "why"),
    [({"format": "csv"}, "header"), ({"format": "raw"}, "raw"), ({"metric": "m"}, "together"),
     ({"job": "j"}, "job"), ({"kind": "other"}, "other")],
)  # fmt: skip
def test_what_is_not_kept_is_told_with_the_reason(rig: Rig, more: dict[str, Any], why: str) -> None:
    rig.feeding.set_feeds([StoreFeed("bad", **more), StoreFeed("good"), StoreFeed("")])
    rig.write("good", {"x": 1})
    wait_for(lambda: rig.taken("good") == 1, 60, "the other log")
    assert rig.state("bad") == "not kept"
    assert why in rig.status_of("bad").why
    assert rig.state("") == "not kept"
    rig.feeding.set_feeds([StoreFeed("good")])
    wait_for(lambda: not rig.status_of("bad"), 60, "the end of the bad one")


def test_values_that_are_none_are_counted(rig: Rig) -> None:
    rig.set_feeds("a", time="t")
    rig.write("a", b"rubbish", {"t": "never", "x": 1}, {"t": START, "x": 1})
    wait_for(lambda: rig.taken("a") == 1, 60, "the one value")
    assert rig.status_of("a").rejected == {"not json": 1, "no time": 1}


def test_a_full_store_is_tried_again(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    full, original = threading.Event(), rig.store.ingest
    full.set()

    def ingest(*arguments: Any) -> None:
        if full.is_set():
            raise StoreFull("no space left")
        original(*arguments)

    monkeypatch.setattr(rig.store, "ingest", ingest)
    rig.set_feeds("a")
    rig.write("a", {"x": 1})
    wait_for(lambda: rig.state("a") == "full", 60, "the full store to be told")
    assert rig.status_of("a").lag > 0
    full.clear()
    wait_for(lambda: rig.state("a") == "running", 60, "the store to be tried again")
    assert [value.value for value in everything(rig.store)] == [1.0]


def test_one_log_in_trouble_does_not_stop_the_others(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = rig.store.position

    def position(log: str) -> int:
        if log == "bug":
            raise ZeroDivisionError
        return original(log)

    monkeypatch.setattr(rig.store, "position", position)
    rig.logs.folder("file").parent.mkdir(parents=True, exist_ok=True)
    rig.logs.folder("file").write_text("not a folder", encoding="utf-8")
    rig.set_feeds("bug", "file", "good")
    rig.write("good", {"x": 1})
    wait_for(lambda: rig.taken("good") == 1, 60, "the good log")
    wait_for(lambda: rig.state("bug") == "failed", 60, "the bug to be told")
    wait_for(lambda: rig.state("file") == "failed", 60, "the file to be told")
    rig.write("good", {"x": 2})
    wait_for(lambda: rig.taken("good") == 2, 60, "the good log goes on")


def test_damage_is_skipped_and_counted(rig: Rig) -> None:
    rig.write("a", *({"x": number} for number in range(50)))
    rig.write("a", {"x": "end"})
    segment = max(rig.logs.folder("a").glob("*.seg"), key=lambda path: path.stat().st_size)
    with segment.open("r+b") as file:
        file.seek(200)
        file.write(b"\xff" * 8)
    rig.set_feeds("a")
    wait_for(
        lambda: (found := rig.status_of("a")) and found.skipped_bytes > 0,
        60,
        "the damage to be counted",
    )


def test_a_log_that_was_replaced_is_read_from_its_beginning(rig: Rig) -> None:
    rig.store.ingest(BATCH.empty_table(), "a", 1 << 40)
    rig.write("a", {"x": 1})
    rig.set_feeds("a")
    wait_for(lambda: rig.taken("a") == 1, 60, "the value of the new log")


def test_a_log_that_went_with_its_job_and_comes_again_is_another(rig: Rig) -> None:
    """The second is longer than the first was, so its length tells nothing."""
    rig.write("a", {"x": 1})
    rig.set_feeds("a")
    wait_for(lambda: rig.taken("a") == 1, 60, "the first value")
    rig.set_feeds()
    wait_for(lambda: not rig.status_of("a"), 60, "the end of the first log")
    rig.remove("a")
    wait_for(lambda: rig.store.position("a") == 0, 60, "the first log to be forgotten")
    rig.write("a", *({"x": number} for number in range(2, 102)))
    rig.set_feeds("a")
    wait_for(lambda: rig.taken("a") == 100, 60, "all values of the second log")
    assert sorted(v.value for v in everything(rig.store)) == [float(n) for n in range(1, 102)]


def test_a_log_that_went_while_nobody_looked_is_another(rig: Rig) -> None:
    rig.store.ingest(BATCH.empty_table(), "a", 50)
    rig.set_feeds("a")
    wait_for(lambda: rig.store.position("a") == 0, 60, "the log that is not there to be forgotten")
    rig.write("a", *({"x": number} for number in range(100)))
    wait_for(lambda: rig.taken("a") == 100, 60, "all values")


def test_a_quiet_site_is_looked_at_seldom(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"log{number}" for number in range(10)]
    for name in names:
        rig.write(name, {"x": 1})
    rig.set_feeds(*names)
    wait_for(lambda: all(rig.taken(name) == 1 for name in names), 60, "all logs")
    rounds, original = [0], Feeding._round

    def counted(self: Feeding) -> int:
        rounds[0] += 1
        return original(self)

    monkeypatch.setattr(Feeding, "_round", counted)
    begun = time.monotonic()
    wait_for(lambda: rounds[0] >= 15, 60, "rounds to go on")
    waited = time.monotonic() - begun
    assert rounds[0] <= 10 + waited / feeding_module._REST_SECONDS


def test_values_that_keep_coming_are_gathered(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    rounds, original = [0], Feeding._round

    def counted(self: Feeding) -> int:
        rounds[0] += 1
        return original(self)

    rig.write("a", {"x": 0})
    rig.set_feeds("a")
    wait_for(lambda: rig.taken("a") == 1, 60, "the first value")
    monkeypatch.setattr(Feeding, "_round", counted)
    begun = time.monotonic()
    for number in range(1, 201):
        rig.write("a", {"x": number})
    wait_for(lambda: rig.taken("a") == 201, 60, "all values")
    waited = time.monotonic() - begun
    assert rounds[0] <= 10 + 2 * waited / feeding_module._GATHER_SECONDS


def test_the_process_forgets_no_file_descriptors(rig: Rig) -> None:
    rig.write("a", {"x": 1})
    rig.set_feeds("a")
    wait_for(lambda: rig.taken("a") == 1, 60, "the value")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        rig.set_feeds()
        wait_for(lambda: not rig.status_of("a"), 60, "the end")
        rig.set_feeds("a")
        wait_for(lambda: rig.status_of("a"), 60, "the log again")
    assert len(os.listdir("/proc/self/fd")) <= before + 2
