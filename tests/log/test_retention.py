"""Retention removes old segments from the front, and never what a reader still needs."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fogline.common.state_files import find_damaged
from fogline.log import (
    Limits,
    LogDamaged,
    LogReader,
    enforce,
    forget_reader,
    get_position,
    lowest_position,
    retire_reader,
    set_position,
)
from fogline.log.files.positions import readers_of
from fogline.log.retention import SegmentView, removable
from tests.log.kit import follow, records, segments, writer


def fill(folder: Path, commits: int = 20) -> list[int]:
    """Commit number i arrived at time i."""
    with writer(folder, segment_bytes=300) as log:
        ends = []
        for number in range(commits):
            log.append(records(3, start=3 * number), arrival=number)
            ends.append(log.commit())
    return ends


def test_without_limits_everything_stays(folder: Path) -> None:
    fill(folder)
    before = segments(folder)
    assert enforce(folder, Limits(), now=10**9) == 0
    assert segments(folder) == before


def test_what_is_too_old_goes(folder: Path) -> None:
    fill(folder)
    assert enforce(folder, Limits(age=10), now=20) > 0
    reader = LogReader(folder)
    oldest = reader.frames(reader.first())[0][0]
    assert 0 < oldest.arrival <= 10
    found = follow(reader, reader.first())
    assert found[-1] == records(60)[-1]
    assert found == records(60)[-len(found) :]


def test_what_is_too_much_goes(folder: Path) -> None:
    fill(folder)
    enforce(folder, Limits(size=1000), now=0)
    total = sum(path.stat().st_size for path in segments(folder))
    assert 600 <= total <= 1000


def test_the_segment_written_to_stays(folder: Path) -> None:
    ends = fill(folder)
    enforce(folder, Limits(age=0, size=0), now=10**9)
    assert len(segments(folder)) <= 2
    with writer(folder) as log:
        assert log.position == ends[-1]


def test_what_a_reader_needs_stays(folder: Path) -> None:
    ends = fill(folder)
    set_position(folder, "slow job", ends[4])
    set_position(folder, "fast job", ends[-1])
    assert lowest_position(folder) == ends[4]
    enforce(folder, Limits(age=0, size=0), now=10**9)
    assert follow(LogReader(folder), ends[4]) == records(45, start=15)
    set_position(folder, "slow job", ends[9])
    assert enforce(folder, Limits(age=0, size=0), now=10**9) > 0
    forget_reader(folder, "slow job")
    assert get_position(folder, "slow job") is None
    assert get_position(folder, "fast job") == ends[-1]
    assert enforce(folder, Limits(age=0, size=0), now=10**9) > 0


@pytest.mark.parametrize("harm", [b"?", b"", bytes(20), b"9000\ncrc32 00000000\n"])
def test_whose_position_is_damaged_may_need_anything(folder: Path, harm: bytes) -> None:
    ends = fill(folder)
    set_position(folder, "job", ends[-1])
    (folder / "readers" / "job").write_bytes(harm)
    before = segments(folder)
    with pytest.raises(LogDamaged):
        enforce(folder, Limits(size=0), now=10**9)
    assert get_position(folder, "job") == 0
    enforce(folder, Limits(size=0), now=10**9)
    assert segments(folder) == before
    assert len(list(find_damaged([folder / "readers"]))) == 1
    set_position(folder, "job", ends[-1])
    assert get_position(folder, "job") == ends[-1]


def test_positions_leave_no_other_files(folder: Path) -> None:
    for position in range(5):
        set_position(folder, "a/b", position)
    assert [path.name for path in (folder / "readers").iterdir()] == ["a%2Fb"]


stretch_lists = st.lists(st.tuples(st.integers(1, 50), st.integers(0, 100)), max_size=8)


@given(stretch_lists, st.integers(0, 400), st.integers(0, 200), st.integers(0, 400))
def test_the_decision(drawn: list[tuple[int, int]], needed: int, age: int, size: int) -> None:
    stretches, first = [], 0
    for length, newest in drawn:
        stretches.append(SegmentView(first, first + length, newest))
        first += length
    count = removable(stretches, needed, Limits(age, size), now=100)
    assert 0 <= count <= max(len(stretches) - 1, 0)
    for stretch in stretches[:count]:
        assert stretch.end <= needed
        assert stretch.newest < 100 - age or first - stretch.first > size
    for stretch in stretches[count:][:1]:
        kept_for_a_reason = stretch.end > needed or not (
            stretch.newest < 100 - age or first - stretch.first > size
        )
        assert kept_for_a_reason or stretch is stretches[-1]


def test_a_retired_reader_that_retention_has_passed_is_unknown(folder: Path) -> None:
    fill(folder)
    set_position(folder, "slow", 0)
    retire_reader(folder, "slow")
    assert get_position(folder, "slow") == 0
    assert enforce(folder, Limits(size=0), now=10**9) > 0
    assert get_position(folder, "slow") is None


def test_a_retired_reader_holds_nothing_back_and_finds_its_place_again(folder: Path) -> None:
    folder.mkdir()
    set_position(folder, "job a/b", 7)
    set_position(folder, "other", 99)
    assert readers_of(folder) == ["job%20a%2Fb", "other"]
    retire_reader(folder, "job%20a%2Fb")
    assert lowest_position(folder) == 99
    assert get_position(folder, "job a/b") == 7
    retire_reader(folder, "job%20a%2Fb")
    set_position(folder, "job a/b", 8)
    assert lowest_position(folder) == 8
    retire_reader(folder, "job%20a%2Fb")
    forget_reader(folder, "job a/b")
    assert get_position(folder, "job a/b") is None
