"""Damage costs the frames it is in and no others, is counted in records, noted, and never escapes
as anything else."""

from __future__ import annotations

import os
import struct
import tracemalloc
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fogline.common.state_files import find_damaged
from fogline.log import Limits, LogDamaged, LogGone, LogReader, SiteLog, enforce
from fogline.log.files import committed
from fogline.log.files.committed import End
from fogline.log.files.damage import LOST, acknowledge, load_all
from fogline.log.files.frames import FRAME_BYTES, FrameBody
from fogline.log.files.segments import header
from tests.log.kit import flip, follow, records, segments, write, writer


def raw_log(folder: Path, frames: bytes, number: int = 0) -> Path:
    """A log whose only segment holds these bytes behind its header, all of them committed."""
    folder.mkdir(parents=True, exist_ok=True)
    data = header(0) + frames
    (folder / f"{0:020}.seg").write_bytes(data)
    store_committed(folder, End(len(data), number))
    return folder


def store_committed(folder: Path, end: End) -> None:
    fd = committed.create(folder)
    committed.store(fd, end)
    os.close(fd)


def frame(content: bytes, count: int, position: int = 16, number: int = 0) -> bytes:
    body = FrameBody(True, 0, 0, -1, count, content)
    return body.head(position, number) + content


def test_one_flipped_byte_costs_one_small_frame(folder: Path) -> None:
    """20,000 unread readings, as they came in."""
    wanted = [("city/1", b'{"time": %d, "value": %d}' % (i, i % 100)) for i in range(20_000)]
    write(folder, [wanted[i : i + 2500] for i in range(0, 20_000, 2500)])
    only = segments(folder)[0]
    flip(only, only.stat().st_size // 2)
    with LogReader(folder, skip_damage=True) as reader:
        found = follow(reader, 0)
    assert 0 < reader.lost < FRAME_BYTES // 30
    assert len(found) == 20_000 - reader.lost
    left_out = sorted(set(wanted) - set(found), key=wanted.index)
    assert left_out == wanted[wanted.index(left_out[0]) :][: reader.lost]
    (damage,) = load_all(folder)
    assert (damage.records, damage.lost, damage.state) == (reader.lost, reader.lost, LOST)
    assert damage.end - damage.position == reader.skipped
    assert acknowledge(folder) == 1
    assert acknowledge(folder) == 0


def test_damage_is_named_and_can_be_skipped(folder: Path) -> None:
    ends = write(folder, [records(5, start=i) for i in range(0, 100, 5)], segment_bytes=900)
    bad = segments(folder)[1]
    position = ends[ends.index(int(segments(folder)[2].stem)) - 1]
    flip(bad, bad.stat().st_size - 3)
    before = follow(LogReader(folder), 0, stop=position)
    with pytest.raises(LogDamaged, match=bad.name) as caught:
        follow(LogReader(folder), 0)
    assert caught.value.file == bad
    assert caught.value.position == position
    assert before == records(len(before))
    skipping = LogReader(folder, skip_damage=True)
    assert follow(skipping, 0) == before + records(95 - len(before), start=len(before) + 5)
    assert (skipping.skipped, skipping.lost) == (int(segments(folder)[2].stem) - position, 5)


def test_damage_at_the_end_is_skipped_up_to_the_end(folder: Path) -> None:
    ends = write(folder, [records(5), records(5, start=5)])
    only = segments(folder)[0]
    flip(only, ends[0] + 5)
    skipping = LogReader(folder, skip_damage=True)
    assert follow(skipping, 0) == records(5)
    assert (skipping.skipped, skipping.lost) == (ends[1] - ends[0], 5)
    write(folder, [records(1)])
    assert follow(skipping, ends[1]) == records(1)


def test_a_missing_segment_is_damage(folder: Path) -> None:
    write(folder, [records(5, start=i) for i in range(0, 100, 5)], segment_bytes=900)
    for gap in (segments(folder)[3], segments(folder)[0]):
        missing = len(follow(LogReader(folder), int(gap.stem), stop=int(gap.stem) + 1))
        gap.unlink()
        with pytest.raises(LogDamaged):
            LogReader(folder).read(int(gap.stem))
        skipping = LogReader(folder, skip_damage=True)
        behind = min(int(path.stem) for path in segments(folder) if path > gap)
        assert follow(skipping, int(gap.stem))
        assert load_all(folder)[0].records == missing
        assert load_all(folder)[0].end == behind + 16


def test_segments_may_vanish_under_a_reader(folder: Path) -> None:
    write(folder, [records(5, start=i) for i in range(0, 100, 5)], segment_bytes=900)
    reader, skipping = LogReader(folder), LogReader(folder, skip_damage=True)
    removed = int(segments(folder)[1].stem)
    for log in (reader, skipping):
        log.read(0)
    assert enforce(folder, Limits(size=0), 0)
    with pytest.raises(LogGone):
        reader.read(removed)
    assert follow(skipping, removed) == follow(reader, reader.first())
    assert (skipping.lost, load_all(folder)) == (0, [])


def test_known_damage_is_not_counted_again(folder: Path) -> None:
    ends = write(folder, [records(5, start=i) for i in range(0, 50, 5)])
    flip(segments(folder)[0], ends[2] - 10, ends[4] - ends[2])
    for start in (0, 0, ends[2], ends[3]):
        with LogReader(folder, skip_damage=True) as reader:
            assert follow(reader, start)[-20:] == records(20, start=30)
    assert [damage.records for damage in load_all(folder)] == [5, 10]


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
    one = struct.pack("<IH", 3, 1) + b"tabc\n"
    good = frame(one, 1)
    bad = frame(content, count, 16 + len(good), 1)
    behind = frame(one, 1, 16 + len(good) + len(bad), 1 + count)
    raw_log(folder, good + bad + behind, 2 + count)
    reader = LogReader(folder)
    assert reader.read(0) == ([("t", b"abc")], 16 + len(good))
    with pytest.raises(LogDamaged):
        reader.read(16 + len(good))
    skipping = LogReader(folder, skip_damage=True)
    assert follow(skipping, 0) == [("t", b"abc")] * 2
    assert (skipping.skipped, skipping.lost) == (len(bad), count)


@pytest.mark.parametrize("length", [0, 28, 29, 32 << 20, (32 << 20) + 1, 2**32 - 1])
def test_a_hostile_length_takes_no_memory(folder: Path, length: int) -> None:
    content = frame(bytes(100), 1)
    raw_log(folder, content[:12] + struct.pack("<I", length) + content[16:])
    tracemalloc.start()
    with pytest.raises(LogDamaged):
        LogReader(folder).read(0)
    with suppress(LogDamaged), writer(folder):
        pass
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 20


@given(st.binary(max_size=300), st.booleans(), st.integers(0, 400))
def test_any_bytes_are_read_or_are_damage(content: bytes, whole: bool, position: int) -> None:
    with TemporaryDirectory() as name:
        folder = raw_log(Path(name) / "log", frame(content, 1) if whole else content)
        for skip in (False, True):
            with LogReader(folder, skip) as reader, suppress(LogDamaged):
                follow(reader, 0)
                reader.last_epoch(1)
        store_committed(folder, End(position, 1))
        with writer(folder) as log:
            log.append(records(2))
            end = log.commit()
        with LogReader(folder) as reader:
            assert reader.committed() == end


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
        with LogReader(folder, skip_damage=True) as reader:
            found = follow(reader, 0)
        assert found == [record for record in records(40) if record in found]
        assert path.name == "committed" or len(found) + reader.lost == 40
        with writer(folder) as log:
            assert log.position == ends[-1]


@pytest.mark.parametrize("harm", [b"rooms/-", b"\xff", bytes(7)])
def test_a_damaged_topic_is_written_anew(tmp_path: Path, harm: bytes) -> None:
    site = SiteLog(tmp_path)
    site.writer("rooms/+").close()
    (site.folder("rooms/+") / "topic").write_bytes(harm)
    assert site.topics() == ["rooms/+"]
    site.writer("rooms/+").close()
    assert (site.folder("rooms/+") / "topic").read_text() == "rooms/+"
    assert len(list(find_damaged([site.folder("rooms/+")]))) == 1
