"""Damage is reported with file and position, or skipped; nothing else ever escapes."""

from __future__ import annotations

import struct
import tracemalloc
import zlib
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fogline.log import LogDamaged, LogGone, LogReader
from fogline.log.frames import BODY, PREFIX
from fogline.log.segments import header
from tests.log.kit import follow, records, segments, write, writer


def raw_log(folder: Path, frames: bytes) -> Path:
    """A log whose only segment holds these bytes behind its header, all of them committed."""
    folder.mkdir(parents=True, exist_ok=True)
    data = header(0) + frames
    (folder / f"{0:020}.seg").write_bytes(data)
    (folder / "committed").write_bytes(struct.pack("<Q", len(data)))
    return folder


def frame(body: bytes) -> bytes:
    return PREFIX.pack(len(body), zlib.crc32(body)) + body


def test_damage_in_the_middle_is_named_and_can_be_skipped(folder: Path) -> None:
    ends = write(folder, [records(5, start=i) for i in range(0, 100, 5)], segment_bytes=700)
    bad = segments(folder)[1]
    data = bytearray(bad.read_bytes())
    data[-3] ^= 1
    bad.write_bytes(data)
    position = ends[ends.index(int(segments(folder)[2].stem)) - 1]
    before = follow(LogReader(folder), 0, stop=position)
    with pytest.raises(LogDamaged, match=bad.name) as caught:
        follow(LogReader(folder), 0)
    assert caught.value.file == bad
    assert caught.value.position == position
    assert before == records(len(before))
    skipping = LogReader(folder, skip_damage=True)
    found = follow(skipping, 0)
    following = int(segments(folder)[2].stem)
    assert skipping.skipped == following - position
    assert found == before + records(95 - len(before), start=len(before) + 5)


def test_damage_in_the_last_segment_is_skipped_up_to_the_end(folder: Path) -> None:
    ends = write(folder, [records(5), records(5, start=5)])
    only = segments(folder)[0]
    data = bytearray(only.read_bytes())
    data[ends[0] + 50] ^= 1
    only.write_bytes(data)
    skipping = LogReader(folder, skip_damage=True)
    assert follow(skipping, 0) == records(5)
    assert skipping.skipped == ends[1] - ends[0]
    write(folder, [records(1)])
    assert follow(skipping, ends[1]) == records(1)


def test_a_missing_segment_is_damage(folder: Path) -> None:
    write(folder, [records(5, start=i) for i in range(0, 100, 5)], segment_bytes=700)
    gap = segments(folder)[1]
    gap.unlink()
    with pytest.raises(LogDamaged):
        follow(LogReader(folder), 0)
    skipping = LogReader(folder, skip_damage=True)
    assert follow(skipping, 0)
    assert skipping.skipped == int(segments(folder)[1].stem) - int(gap.stem)


def test_segments_may_vanish_under_a_reader(folder: Path) -> None:
    write(folder, [records(5, start=i) for i in range(0, 100, 5)], segment_bytes=700)
    reader, skipping = LogReader(folder), LogReader(folder, skip_damage=True)
    names = [int(path.stem) for path in segments(folder)]
    for log in (reader, skipping):
        log.read(0)
    segments(folder)[2].unlink()
    assert follow(skipping, names[2]) == follow(reader, names[3])
    assert skipping.skipped == names[3] - names[2]
    with pytest.raises(LogDamaged):
        reader.read(names[2])
    for path in segments(folder)[:2]:
        path.unlink()
    with pytest.raises(LogGone):
        reader.read(names[1])
    assert follow(skipping, names[1]) == follow(reader, names[3])


@pytest.mark.parametrize(
    ("count", "content"),
    [
        (1, b""),
        (0, b"x"),
        (2**32 - 1, b""),
        (1, struct.pack("<IH", 3, 1) + b"tabcX"),
        (1, struct.pack("<IH", 3, 1) + b"tabc\n\n"),
        (1, struct.pack("<IH", 2**32 - 1, 1) + b"tabc\n"),
        (1, struct.pack("<IH", 3, 0xFFFE) + b"tabc\n"),
        (1, struct.pack("<IH", 3, 0xFFFF) + b"abc\n"),
        (1, struct.pack("<IH", 3, 0) + b"abc\n"),
        (1, struct.pack("<IH", 3, 1) + b"\xffabc\n"),
    ],
)
def test_records_that_break_the_format_are_damage(folder: Path, count: int, content: bytes) -> None:
    good = frame(BODY.pack(1, 0, 0, -1, 1) + struct.pack("<IH", 3, 1) + b"tabc\n")
    raw_log(folder, good + frame(BODY.pack(1, 0, 0, -1, count) + content) + good)
    reader = LogReader(folder)
    assert reader.read(0) == ([("t", b"abc")], 16 + len(good))
    with pytest.raises(LogDamaged):
        reader.read(16 + len(good))
    skipping = LogReader(folder, skip_damage=True)
    assert follow(skipping, 0) == [("t", b"abc")]
    assert skipping.skipped > 0


@pytest.mark.parametrize("length", [0, 28, 29, 32 << 20, (32 << 20) + 1, 2**32 - 1])
def test_a_hostile_length_takes_no_memory(folder: Path, length: int) -> None:
    raw_log(folder, struct.pack("<II", length, 0) + bytes(100))
    tracemalloc.start()
    with pytest.raises(LogDamaged):
        LogReader(folder).read(0)
    with suppress(LogDamaged), writer(folder):
        pass
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 20


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=300), st.booleans(), st.integers(0, 400))
def test_any_bytes_are_read_or_are_damage(content: bytes, whole: bool, committed: int) -> None:
    with TemporaryDirectory() as name:
        folder = raw_log(Path(name) / "log", frame(content) if whole else content)
        for skip in (False, True):
            with LogReader(folder, skip) as reader, suppress(LogDamaged):
                follow(reader, 0)
                reader.position_at(1)
                reader.last_epoch(1)
        (folder / "committed").write_bytes(struct.pack("<Q", committed))
        with suppress(LogDamaged), writer(folder) as log:
            log.append(records(2))
            end = log.commit()
            assert LogReader(folder).committed() == end


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_a_harmed_log_gives_only_what_was_written(data: st.DataObject) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name) / "log"
        ends = write(folder, [records(4, start=i) for i in range(0, 40, 4)], segment_bytes=500)
        path = data.draw(st.sampled_from([*segments(folder), folder / "committed"]))
        content = bytearray(path.read_bytes())
        for _ in range(data.draw(st.integers(1, 3))):
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
        path.write_bytes(content[: data.draw(st.integers(0, len(content)))])
        with LogReader(folder, skip_damage=True) as reader, suppress(LogGone):
            assert set(follow(reader, 0)) <= set(records(40))
        with suppress(LogDamaged), writer(folder) as log:
            assert log.position in ([0, *ends] if path.suffix == ".seg" else ends[-1:])
