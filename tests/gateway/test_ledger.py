"""What gateways were told, on disk: many changes at once, crashes, damage, and writing it anew."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from fogline.common.errors import DataError
from fogline.gateway.jobs import ledger as module
from fogline.gateway.jobs.ledger import Ledger, LedgerEntry
from fogline.log import LogBusy, LogError, LogFull, LogWriter
from fogline.model.jobs import Assignment, Place, Route, Steps


def entry(job: str = "j", life: str = "1", **parameters: float) -> LedgerEntry:
    assignment = Assignment(
        job,
        "p",
        Steps(({"op": "filter", "when": "x > 1"},)),
        (Place("d/+"),),
        (Route("link", "up", "mqtt://h:1", "s"),),
        parameters,
        {"time": "t"},
    )
    return LedgerEntry(assignment, life, 7, {"first": 1})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "jobs"


@pytest.fixture
def ledger(folder: Path) -> Iterator[Ledger]:
    made = Ledger(folder)
    yield made
    made.close()


def reopened(ledger: Ledger, folder: Path) -> Ledger:
    """As after a crash: what was not committed is gone."""
    ledger.close()
    return Ledger(folder)


def test_what_is_committed_is_there_after_a_crash(ledger: Ledger, folder: Path) -> None:
    ledger.put("g", entry("a"))
    ledger.put("g", entry("b", x=1.5))
    ledger.put("h", entry("a", "2"))
    ledger.drop("h", "unknown")
    ledger.commit()
    ledger.put("g", entry("c"))
    ledger.drop("g", "a")
    assert [t.job for t in ledger.jobs("g")] == ["b", "c"]
    again = reopened(ledger, folder)
    assert again.jobs("g") == [entry("a"), entry("b", x=1.5)]
    assert again.jobs("h") == [entry("a", "2")]
    assert again.jobs("nobody") == []
    again.drop("g", "a")
    again.commit()
    assert [t.job for t in reopened(again, folder).jobs("g")] == ["b"]


def test_many_changes_need_the_disk_once(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    commits: list[LogWriter] = []
    commit = LogWriter.commit

    def counted(writer: LogWriter) -> int:
        commits.append(writer)
        return commit(writer)

    monkeypatch.setattr(LogWriter, "commit", counted)
    for number in range(200):
        ledger.put(f"g-{number}", entry())
    ledger.commit()
    ledger.commit()
    ledger.put("g-0", entry())
    ledger.commit()
    assert len(commits) == 1


def test_what_could_not_be_written_is_tried_again(
    ledger: Ledger, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = LogWriter.commit

    def full(writer: LogWriter) -> int:
        writer.rollback()
        raise LogFull("no space left")

    ledger.put("g", entry("a"))
    monkeypatch.setattr(LogWriter, "commit", full)
    with pytest.raises(LogError):
        ledger.commit()
    monkeypatch.setattr(LogWriter, "commit", commit)
    ledger.put("g", entry("b"))
    ledger.commit()
    assert [t.job for t in reopened(ledger, folder).jobs("g")] == ["a", "b"]


def test_it_stays_small_however_much_changes(
    ledger: Ledger, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "REWRITE_BYTES", 20_000)
    ledger._writer._tail._segment_bytes = 4_000
    for number in range(2_000):
        ledger.put("g", entry("a", x=number))
        ledger.put("g", entry(f"b-{number % 3}", str(number)))
        if number % 7 == 0:
            ledger.drop("g", f"b-{number % 3}")
        ledger.commit()
    wanted = ledger.jobs("g")
    assert sum(file.stat().st_size for file in folder.glob("*.seg")) < 60_000
    again = reopened(ledger, folder)
    assert {t.job: t for t in again.jobs("g")} == {t.job: t for t in wanted}
    again.close()


def test_a_commit_that_was_not_finished_is_taken_back(ledger: Ledger, folder: Path) -> None:
    ledger.put("g", entry("a"))
    ledger.commit()
    ledger.close()
    segment = next(folder.glob("*.seg"))
    with segment.open("ab") as file:
        file.write(b"half a frame")
    assert [t.job for t in Ledger(folder).jobs("g")] == ["a"]


@pytest.mark.parametrize(
    "entry", [b"{", b"5", b"{}", b"[]", b"\xff", b'{"assignment": {}}', b'{"gone": 1}' * 2]
)
def test_entries_that_are_none_are_refused_with_a_hint(
    ledger: Ledger, folder: Path, entry: bytes
) -> None:
    ledger.close()
    with LogWriter(folder, "jobs", min_free_bytes=0) as writer:
        writer.append([("g", entry)])
        writer.commit()
    for _ in range(2):
        with pytest.raises(DataError, match="cannot be read") as refused:
            Ledger(folder)
        assert "move it away" in refused.value.hint


def test_damage_is_told(ledger: Ledger, folder: Path) -> None:
    for number in range(3):
        ledger.put("g", entry(f"j-{number}"))
        ledger.commit()
    ledger.close()
    segment = next(folder.glob("*.seg"))
    data = bytearray(segment.read_bytes())
    data[60] ^= 0xFF
    segment.write_bytes(bytes(data))
    with pytest.raises(LogError):
        Ledger(folder)


def test_two_processes_cannot_share_one(ledger: Ledger, folder: Path) -> None:
    with pytest.raises(LogBusy):
        Ledger(folder)


def test_a_job_is_the_same_after_writing_and_reading() -> None:
    assert LedgerEntry.from_json(json.loads(json.dumps(entry(x=2).as_json()))) == entry(x=2)
