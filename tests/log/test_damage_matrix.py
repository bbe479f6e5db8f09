"""Every kind of damage to every file of a log: Python and Java lose the same, and know how much."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from fogline.log import Limits, LogReader, enforce, set_position
from fogline.log.files.damage import LOST, load_all
from fogline.log.files.idleness import write_heard
from tests.log.kit import copy, flip, follow, records, segments, write, writer

pytestmark = pytest.mark.site

Tool = Callable[..., subprocess.CompletedProcess[bytes]]
Harm = Callable[[Path], None]
TOTAL = 1600
SEGMENT = 9000
FRAME_RECORDS = 20


def zero(path: Path, offset: int, size: int) -> None:
    data = bytearray(path.read_bytes())
    data[offset : offset + size] = bytes(len(data[offset : offset + size]))
    path.write_bytes(data)


def truncate(path: Path, size: int) -> None:
    path.write_bytes(path.read_bytes()[:size])


def duplicate(path: Path, move: int) -> None:
    """The same file under a second name."""
    path.with_name(f"{int(path.stem) + move:020}.seg").write_bytes(path.read_bytes())


def swap(one: Path, other: Path) -> None:
    first, second = one.read_bytes(), other.read_bytes()
    one.write_bytes(second)
    other.write_bytes(first)


def nth(index: int, harm: Callable[[Path], None]) -> Harm:
    return lambda folder: harm(segments(folder)[index])


def on(name: str, harm: Callable[[Path], None]) -> Harm:
    return lambda folder: harm(folder / name)


# What it does to a log, and the most records that it may cost.
MATRIX: dict[str, tuple[Harm, int]] = {
    "nothing": (lambda folder: None, 0),
    **{
        f"a bit of byte {at}": (nth(1, lambda p, at=at: flip(p, at)), FRAME_RECORDS)  # type: ignore[misc]
        for at in (16, 21, 25, 29, 33, 41, 49, 53, 60, 70, 900)
    },
    "a bit of the header": (nth(1, lambda p: flip(p, 3)), 0),
    "a bit of the last frame": (nth(-1, lambda p: flip(p, p.stat().st_size - 5)), FRAME_RECORDS),
    "a page of zeros": (nth(2, lambda p: zero(p, 4096, 4096)), 8 * FRAME_RECORDS),
    "the first page of zeros": (nth(2, lambda p: zero(p, 0, 4096)), 8 * FRAME_RECORDS),
    "a segment of zeros": (nth(1, lambda p: zero(p, 0, 1 << 20)), 16 * FRAME_RECORDS),
    "cut in the middle": (nth(1, lambda p: truncate(p, 4321)), 10 * FRAME_RECORDS),
    "cut at the end": (nth(-1, lambda p: truncate(p, p.stat().st_size - 1)), FRAME_RECORDS),
    "cut to its header": (nth(1, lambda p: truncate(p, 16)), 16 * FRAME_RECORDS),
    "empty": (nth(1, lambda p: truncate(p, 0)), 16 * FRAME_RECORDS),
    "the last one empty": (nth(-1, lambda p: truncate(p, 0)), 16 * FRAME_RECORDS),
    "removed": (nth(1, Path.unlink), 16 * FRAME_RECORDS),
    "the first one removed": (nth(0, Path.unlink), 16 * FRAME_RECORDS),
    "the last one removed": (nth(-1, Path.unlink), 16 * FRAME_RECORDS),
    "twice, within": (nth(1, lambda p: duplicate(p, 100)), 0),
    "twice, behind": (nth(0, lambda p: duplicate(p, 1 << 30)), 0),
    "swapped": (lambda f: swap(*segments(f)[1:3]), 32 * FRAME_RECORDS),
    "longer": (nth(1, lambda p: p.write_bytes(p.read_bytes() + b"more" * 99) and None), 0),
    "sources": (on("sources", lambda p: flip(p, 0)), 0),
    "sources zeros": (on("sources", lambda p: zero(p, 0, 4096)), 0),
    "removed note": (on("removed", lambda p: flip(p, 0)), 0),
    "heard": (on("heard", lambda p: flip(p, 0)), 0),
    "a position": (on("readers/r", lambda p: flip(p, 0)), 0),
}
COMMITTED: dict[str, Harm] = {
    **{f"a bit of byte {at}": on("committed", lambda p, at=at: flip(p, at)) for at in range(20)},  # type: ignore[misc]
    "zeros": on("committed", lambda p: zero(p, 0, 20)),
    "empty": on("committed", lambda p: truncate(p, 0)),
    "cut": on("committed", lambda p: truncate(p, 8)),
    "removed": on("committed", Path.unlink),
}


def make_log(folder: Path) -> list[tuple[str, bytes]]:
    """Eighty commits of a frame each in a few segments, and every other file that a log has."""
    write(
        folder, [records(FRAME_RECORDS, start=i) for i in range(0, TOTAL, FRAME_RECORDS)], SEGMENT
    )
    set_position(folder, "r", int(segments(folder)[1].stem))
    assert enforce(folder, Limits(size=0), 0)
    write_heard(folder, 5, 6)
    return follow(LogReader(folder), int(segments(folder)[0].stem))


def harmed(root: Path, whole: Path, harms: list[Harm]) -> list[Path]:
    found = []
    for number, harm in enumerate(harms):
        folder = copy(whole, root / str(number))
        (folder / "readers").mkdir()
        (folder / "readers/r").write_bytes((whole / "readers/r").read_bytes())
        harm(folder)
        found.append(folder)
    return found


def check(folder: Path, start: int) -> tuple[list[tuple[str, bytes]], int, int]:
    with LogReader(folder, skip_damage=True) as reader:
        return follow(reader, start), reader.skipped, reader.lost


def test_both_lose_only_what_is_damaged_and_count_it(tmp_path: Path, log_tool: Tool) -> None:
    whole = tmp_path / "whole"
    wanted = make_log(whole)
    start = int(segments(whole)[0].stem)
    harms = [harm for harm, _ in MATRIX.values()]
    mine, theirs = (harmed(tmp_path / name, whole, harms) for name in ("python", "java"))
    seen = log_tool("check", *theirs, f"--from={start}").stdout.decode().splitlines()
    for (name, (_, most)), folder, other, line in zip(
        MATRIX.items(), mine, theirs, seen, strict=True
    ):
        found, skipped, lost = check(folder, start)
        assert found == [record for record in wanted if record in set(found)], name
        assert len(found) + lost == len(wanted), name
        assert lost <= most, name
        assert sum(d.records for d in load_all(folder) if d.state == LOST) == lost, name
        told = re.search(r"records=(\d+) skipped=(\d+) lost=(\d+)", line)
        assert told, line
        assert tuple(map(int, told.groups())) == (len(found), skipped, lost), name
        assert [(d.position, d.end, d.records) for d in load_all(folder)] == [
            (d.position, d.end, d.records) for d in load_all(other)
        ], name


def test_both_go_on_writing_behind_damage(tmp_path: Path, log_tool: Tool) -> None:
    whole = tmp_path / "whole"
    wanted = make_log(whole)
    start = int(segments(whole)[0].stem)
    harms = [harm for harm, _ in MATRIX.values()]
    mine, theirs = (harmed(tmp_path / name, whole, harms) for name in ("python", "java"))
    log_tool("repair", *theirs)
    for name, folder, other in zip(MATRIX, mine, theirs, strict=True):
        for log in (folder, other):
            write(log, [records(3, start=TOTAL)])
            found, _, lost = check(log, start)
            assert found[-3:] == records(3, start=TOTAL), name
            assert len(found) + lost == len(wanted) + 3, name


def test_committed_is_found_again_and_noted(tmp_path: Path, log_tool: Tool) -> None:
    whole = tmp_path / "whole"
    wanted = make_log(whole)
    start = int(segments(whole)[0].stem)
    harms = list(COMMITTED.values())
    mine, theirs = (harmed(tmp_path / name, whole, harms) for name in ("python", "java"))
    log_tool("repair", *theirs)
    for folder in mine:
        with LogReader(folder, skip_damage=True) as reader:
            assert follow(reader, start) == []
        with writer(folder):
            pass
    for name, folder in zip([*COMMITTED, *COMMITTED], [*mine, *theirs], strict=True):
        assert check(folder, start) == (wanted, 0, 0), name
        assert [(d.file, d.lost) for d in load_all(folder)] == [("committed", 0)], name
