"""After a crash at any moment everything committed is there and nothing else is.

A crash leaves the files of the last commit cut or garbled anywhere, and `committed` at an older
value; opening for writing repairs that.
"""

from __future__ import annotations

import struct
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fogline.log import LogError, LogReader
from fogline.log.files.damage import load_all
from tests.log.kit import copy, flip, follow, read, records, segments, set_committed, write, writer


def repaired(folder: Path) -> int:
    with writer(folder) as log:
        return log.position


@pytest.mark.parametrize("segment_bytes", [64 << 20, 300])
@pytest.mark.parametrize("harm", ["cut", "garble"])
def test_the_last_commit_harmed_at_every_byte(
    folder: Path, tmp_path: Path, segment_bytes: int, harm: str
) -> None:
    ends = write(folder, [records(3), records(3, start=3), records(2, start=6)], segment_bytes)
    last = segments(folder)[-1]
    start = ends[1] - int(last.stem)
    for offset in range(max(start, 0), last.stat().st_size):
        broken = copy(folder, tmp_path / "broken")
        set_committed(broken, ends[1])
        data = last.read_bytes()
        changed = bytes([data[offset] ^ 0x5A]) + data[offset + 1 :] if harm == "garble" else b""
        (broken / last.name).write_bytes(data[:offset] + changed)
        assert repaired(broken) == ends[1]
        assert read(broken) == records(6)
        assert read(broken, ends[0]) == records(3, start=3)


@given(st.data())
def test_any_tail_behind_the_commit(data: st.DataObject) -> None:
    segment_bytes = data.draw(st.integers(100, 2000))
    sizes = data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=6))
    tail = data.draw(st.binary(max_size=200))
    with TemporaryDirectory() as name:
        folder = Path(name) / "log"
        commits = [records(size, start=10 * i) for i, size in enumerate(sizes)]
        ends = write(folder, commits, segment_bytes)
        last = segments(folder)[-1]
        last.write_bytes(last.read_bytes() + tail)
        set_committed(folder, data.draw(st.sampled_from([0, *ends])))
        assert repaired(folder) == ends[-1]
        assert read(folder) == [record for commit in commits for record in commit]
        write(folder, [records(2)], segment_bytes)
        assert read(folder, ends[-1]) == records(2)


def test_frames_without_the_end_of_their_commit_are_cut(folder: Path, tmp_path: Path) -> None:
    end = write(folder, [records(3)])[0]
    with writer(folder, segment_bytes=2 << 20) as log:
        log.append([("a", bytes(700_000))] * 9)
        assert len(segments(folder)) > 2
        crashed = copy(folder, tmp_path / "crashed")
    assert repaired(crashed) == end
    assert len(segments(crashed)) == 1
    assert read(crashed) == records(3)


@pytest.mark.parametrize(
    "content", [None, b"", b"1234", b"\xff" * 8, bytes(20), struct.pack("<Q", 77)]
)
@pytest.mark.parametrize("segment_bytes", [64 << 20, 200])
def test_committed_is_found_again(folder: Path, segment_bytes: int, content: bytes | None) -> None:
    commits = [records(3, start=i) for i in range(0, 30, 3)]
    ends = write(folder, commits, segment_bytes)
    (folder / "committed").unlink()
    if content is not None:
        (folder / "committed").write_bytes(content)
    assert repaired(folder) == ends[-1]
    assert read(folder) == records(30)
    assert len((folder / "committed").read_bytes()) == 20


def test_a_log_goes_on_at_committed_when_its_end_is_missing(folder: Path) -> None:
    end = write(folder, [records(3)])[0]
    set_committed(folder, end + 1000)
    assert repaired(folder) == end + 1000


def test_a_log_of_format_1_is_named(folder: Path) -> None:
    folder.mkdir()
    (folder / f"{0:020}.seg").write_bytes(struct.pack("<6sHQ", b"FOGLOG", 1, 0) + bytes(50))
    (folder / "committed").write_bytes(struct.pack("<Q", 66))
    with pytest.raises(LogError, match="format 1"):
        repaired(folder)
    with pytest.raises(LogError, match="format 1"):
        read(folder)


def test_committed_is_found_again_before_a_segment_without_a_commit(folder: Path) -> None:
    end = write(folder, [records(3)])[0]
    (folder / f"{end:020}.seg").write_bytes(b"FOGL")
    (folder / "committed").unlink()
    assert repaired(folder) == end
    assert read(folder) == records(3)


def test_a_new_segment_without_header_holds_no_commit(folder: Path) -> None:
    end = write(folder, [records(3)])[0]
    (folder / f"{end:020}.seg").write_bytes(bytes(5000))
    assert repaired(folder) == end
    assert len(segments(folder)) == 1


def test_acknowledged_commits_are_never_cut_off(folder: Path) -> None:
    """An old `committed` and damage: two commits behind a bad place cannot have been in flight."""
    ends = write(folder, [records(3, start=i) for i in range(0, 30, 3)])
    only = segments(folder)[0]
    data = bytearray(only.read_bytes())
    data[ends[3] + 80] ^= 1
    only.write_bytes(data)
    set_committed(folder, ends[1])
    assert repaired(folder) == ends[-1]
    assert only.read_bytes() == data
    set_committed(folder, ends[-1])
    assert repaired(folder) == ends[-1]
    write(folder, [records(3, start=30)])
    with LogReader(folder, skip_damage=True) as reader:
        assert follow(reader, 0) == records(12) + records(18, start=15)
        assert reader.lost == 3


@pytest.mark.parametrize("tail", [b"", b"torn"])
@pytest.mark.parametrize("offset", [0, 5, 9, 13, 30, 70])
def test_damage_before_committed_cuts_nothing(folder: Path, offset: int, tail: bytes) -> None:
    ends = write(folder, [records(3, start=i) for i in range(0, 30, 3)])
    only = segments(folder)[0]
    data = bytearray(only.read_bytes())
    for bad in (ends[3], ends[8]):
        data[bad + offset] ^= 1
    only.write_bytes(data + tail)
    assert repaired(folder) == ends[-1]
    assert only.read_bytes() == data
    write(folder, [records(3, start=30)])
    with LogReader(folder, skip_damage=True) as reader:
        found = records(12) + records(12, start=15) + records(3, start=30)
        assert follow(reader, 0) == found
        assert reader.lost == 6


def test_a_bad_header_costs_no_record(folder: Path) -> None:
    write(folder, [records(3, start=i) for i in range(0, 30, 3)], segment_bytes=300)
    harmed = segments(folder)[1:]
    for bad in harmed:
        flip(bad, 0)
    repaired(folder)
    write(folder, [records(3, start=30)])
    with LogReader(folder, skip_damage=True) as reader:
        assert follow(reader, 0) == records(33)
        assert reader.lost == 0
    assert [damage.records for damage in load_all(folder)] == [0] * len(harmed)


def test_a_file_that_is_too_short_gives_no_position_out_twice(folder: Path) -> None:
    ends = write(folder, [records(3, start=i) for i in range(0, 30, 3)])
    only = segments(folder)[0]
    only.write_bytes(only.read_bytes()[: ends[6] + 20])
    assert repaired(folder) == ends[-1]
    write(folder, [records(3, start=30)])
    with LogReader(folder, skip_damage=True) as reader:
        assert follow(reader, 0) == records(21) + records(3, start=30)
        assert reader.lost == 9


def test_a_reader_ahead_of_a_lagging_committed_waits(folder: Path) -> None:
    ends = write(folder, [records(3), records(3, start=3)])
    set_committed(folder, ends[0])
    reader = LogReader(folder)
    assert reader.read(ends[1]) == ([], ends[1])
    assert repaired(folder) == ends[1]
    write(folder, [records(1)])
    assert reader.read(ends[1])[0] == records(1)
