"""The source over a site log: as over a file, and what only a log has."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fogline.log import LogWriter, SiteLog

pytestmark = pytest.mark.spark

TOPIC = "rooms/+"


@pytest.fixture
def log(tmp_path: Path) -> SiteLog:
    return SiteLog(tmp_path / "log", segment_bytes=4000, min_free_bytes=0)


def reading(n: int) -> bytes:
    return json.dumps({"n": n, "x": n / 10, "t": 1_700_000_000_000 + n}).encode()


def fill(writer: LogWriter, first: int, count: int, commit: int = 50) -> None:
    for start in range(first, first + count, commit):
        numbers = range(start, min(start + commit, first + count))
        writer.append([(f"rooms/{n % 3}", reading(n)) for n in numbers])
        writer.commit()


def numbers(rows: list[dict[str, Any]]) -> list[int]:
    return [int(row["n"]) for row in rows]


def test_batch_reads_every_record_once(batch: Callable, log: SiteLog) -> None:
    with log.writer(TOPIC) as writer:
        fill(writer, 0, 1000)
    rows = batch(log.folder(TOPIC), "json", "n long, x double", log=True, time="t", splitBytes=3000)
    assert sorted(numbers(rows)) == list(range(1000))
    assert all(row["x"] == row["n"] / 10 for row in rows)
    assert all(row["_time"] == (1_700_000_000_000 + row["n"]) * 1000 for row in rows)


def test_arrival_is_the_time_of_a_message_without_one(batch: Callable, log: SiteLog) -> None:
    with log.writer(TOPIC) as writer:
        writer.append([("rooms/1", reading(1))], arrival=1_600_000_000_000_000)
        writer.commit()
    (row,) = batch(log.folder(TOPIC), "json", "n long", log=True)
    assert row["_time"] == 1_600_000_000_000_000


def test_a_time_far_ahead_of_arrival_is_bad_and_moves_nothing(
    start: Callable, log: SiteLog, tmp_path: Path
) -> None:
    """One wrong clock does not make the others' records late."""
    rows: list[dict[str, Any]] = []
    rejects = tmp_path / "rejects"
    options = {
        "log": True, "time": "t", "lateness": 1000, "ahead": 60_000, "rejects": rejects,
        "checkpoint": tmp_path / "own",
    }  # fmt: skip
    arrival = 1_700_000_000_000_000
    with log.writer(TOPIC) as writer:
        for batch_of in ([1, 60_000, 60_001, 300_000_000_000], [59_500]):
            writer.append([("rooms/1", reading(n)) for n in batch_of], arrival=arrival)
            writer.commit()
            start(rows, log.folder(TOPIC), "json", "n long", **options).awaitTermination(60)
    assert numbers(rows) == [1, 60_000, 59_500]
    lines = [json.loads(x) for file in rejects.iterdir() for x in file.read_text().splitlines()]
    assert {(line["kind"], line["reason"]) for line in lines} == {
        ("bad", "its time is more than 60000 ms ahead of its arrival")
    }
    assert len(lines) == 2
    assert {line["topic"] for line in lines} == {"rooms/1"}


def test_what_is_not_committed_is_not_read(batch: Callable, log: SiteLog) -> None:
    with log.writer(TOPIC) as writer:
        fill(writer, 0, 10)
        writer.append([("rooms/1", reading(99))])
        assert len(batch(log.folder(TOPIC), "json", "n long", log=True)) == 10


def test_a_log_that_does_not_exist_yet_is_empty(batch: Callable, log: SiteLog) -> None:
    assert batch(log.folder(TOPIC), "json", "n long", log=True) == []


def test_stream_follows_the_log_and_goes_on_after_a_restart(
    start: Callable, log: SiteLog, tmp_path: Path
) -> None:
    rows: list[dict[str, Any]] = []
    options = {"log": True, "maxBytesPerTrigger": 2000, "checkpoint": tmp_path / "own"}
    with log.writer(TOPIC) as writer:
        fill(writer, 0, 300)
        start(rows, log.folder(TOPIC), "json", "n long", **options).awaitTermination(60)
        assert numbers(rows) == list(range(300))
        assert len({row["_batch"] for row in rows}) > 3
        fill(writer, 300, 100)
        start(rows, log.folder(TOPIC), "json", "n long", **options).awaitTermination(60)
    assert numbers(rows) == list(range(400))


def test_reading_begins_behind_what_retention_removed(batch: Callable, log: SiteLog) -> None:
    with log.writer(TOPIC) as writer:
        fill(writer, 0, 500)
    first = sorted(log.folder(TOPIC).glob("*.seg"))[0]
    first.unlink()
    found = numbers(batch(log.folder(TOPIC), "json", "n long", log=True))
    assert 0 < len(found) < 500
    assert found == list(range(500 - len(found), 500))


def test_bad_messages_are_rows_with_a_reason(batch: Callable, log: SiteLog) -> None:
    odd = [b"", b"rubbish", b'{"n": 1', b"\xff\xfe", b'{"n": 2}\n{"n": 3}']
    with log.writer(TOPIC) as writer:
        writer.append([("rooms/1", payload) for payload in odd])
        writer.append([("rooms/1", reading(7))])
        writer.commit()
    rows = batch(log.folder(TOPIC), "json", "n long, _error", log=True)
    assert [row["_error"] is None for row in rows] == [False] * 5 + [True]
    assert rows[-1]["n"] == 7


def test_ndjson_messages_hold_several_lines(batch: Callable, log: SiteLog) -> None:
    with log.writer(TOPIC) as writer:
        writer.append([("rooms/1", reading(1) + b"\n" + reading(2))])
        writer.commit()
    assert numbers(batch(log.folder(TOPIC), "ndjson", "n long", log=True)) == [1, 2]


def test_damage_costs_a_frame_and_is_told(batch: Callable, log: SiteLog) -> None:
    with log.writer(TOPIC) as writer:
        fill(writer, 0, 500)
    second = sorted(log.folder(TOPIC).glob("*.seg"))[1]
    with second.open("r+b") as file:
        file.seek(second.stat().st_size // 2)
        file.write(os.urandom(64))
    rows = batch(log.folder(TOPIC), "json", "n long, _error", log=True)
    told = [row["_error"] for row in rows if row["_error"]]
    assert len(told) == 1
    (lost,) = re.findall("the log is damaged: ([0-9]+) records", told[0])
    found = [int(row["n"]) for row in rows if not row["_error"]]
    assert found[0] == 0
    assert found[-1] == 499
    assert (len(found), int(lost)) == (450, 50)


def test_csv_needs_a_header(batch: Callable, log: SiteLog) -> None:
    with log.writer(TOPIC) as writer:
        writer.append([("rooms/1", b"1,2.5")])
        writer.commit()
    with pytest.raises(Exception, match="header"):
        batch(log.folder(TOPIC), "csv", "n long", log=True)
    rows = batch(log.folder(TOPIC), "csv", "n long, x double", log=True, header=["n", "x"])
    assert [(row["n"], row["x"]) for row in rows] == [(1, 2.5)]
