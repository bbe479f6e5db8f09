"""What is written comes back, in order, from every position, and only once committed."""

from __future__ import annotations

import threading
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fogline.log import (
    Limits,
    LogBusy,
    LogError,
    LogGone,
    LogReader,
    LogRecord,
    LogWriter,
    SiteLog,
    enforce,
)
from tests.log.kit import TOPIC, follow, read, records, segments, write, writer

topics = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
record_lists = st.lists(st.tuples(topics, st.binary(max_size=60)), min_size=1, max_size=8)


@given(st.lists(record_lists, max_size=6), st.integers(1, 400), st.integers(1, 300))
def test_everything_comes_back(
    commits: list[list[LogRecord]], segment_bytes: int, max_bytes: int
) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name) / "log"
        ends = write(folder, commits, segment_bytes)
        flat = [record for commit in commits for record in commit]
        assert read(folder, max_bytes=max_bytes) == flat
        for number, end in enumerate(ends):
            rest = [record for commit in commits[number + 1 :] for record in commit]
            assert read(folder, end, max_bytes) == rest


def test_nothing_is_seen_before_the_commit(folder: Path) -> None:
    with writer(folder) as log, LogReader(folder) as reader:
        log.append([(TOPIC, bytes(700_000))] * 5)
        assert segments(folder)
        assert reader.read(0) == ([], 0)
        log.commit()
        assert len(follow(reader, 0)) == 5


def test_a_commit_may_span_segments_and_is_seen_at_once(folder: Path) -> None:
    with writer(folder, segment_bytes=1 << 20) as log, LogReader(folder) as reader:
        log.append((TOPIC, bytes(300_000)) for _ in range(20))
        assert len(segments(folder)) > 2
        assert reader.committed() == 0
        end = log.commit()
        assert reader.committed() == end
        assert len(follow(reader, 0)) == 20
        frames, _ = reader.frames(0, 1 << 30)
        assert not frames[0].last


def test_closing_takes_back_what_is_not_committed(folder: Path) -> None:
    with writer(folder) as log:
        log.append(records(3))
        log.commit()
        log.append([(TOPIC, bytes(900_000))] * 4)
    assert read(folder) == records(3)
    with writer(folder) as log:
        log.append(records(2, start=3))
        log.commit()
    assert read(folder) == records(5)


def test_an_empty_commit_changes_nothing(folder: Path) -> None:
    with writer(folder) as log:
        log.append([])
        assert log.commit() == 0
        log.append(records(1))
        end = log.commit()
        assert log.commit() == end
    assert len(read(folder)) == 1


def test_frames_tell_arrival_source_and_epoch(folder: Path) -> None:
    with LogWriter(folder, TOPIC, clock=lambda: 42, min_free_bytes=0) as log:
        log.append(records(2))
        log.append(records(2), source=2**64 - 1, epoch=7)
        log.append(records(2), source=2**64 - 1, epoch=7, arrival=50)
        log.commit()
    found, _ = LogReader(folder).frames(0)
    told = [(f.arrival, f.source, f.epoch, f.count, f.last) for f in found]
    big = 2**64 - 1
    assert told == [(42, 0, -1, 2, False), (42, big, 7, 2, False), (50, big, 7, 2, True)]


def test_the_last_epoch_of_a_source_survives_retention_and_reopening(folder: Path) -> None:
    with writer(folder, segment_bytes=500) as log:
        for epoch in range(3):
            log.append(records(5), source=9, epoch=epoch)
            log.commit()
        for _ in range(20):
            log.append(records(5))
            log.commit()
        assert log.last_epoch(9) == 2
    for path in segments(folder)[:-2]:
        path.unlink()
    assert LogReader(folder).last_epoch(9) == 2
    assert LogReader(folder).last_epoch(8) == -1
    with writer(folder) as log:
        assert log.last_epoch(9) == 2


def test_an_epoch_that_is_not_committed_does_not_count(folder: Path) -> None:
    with writer(folder) as log:
        log.append(records(1), source=9, epoch=1)
        log.commit()
        log.append(records(1), source=9, epoch=2)
        assert log.last_epoch(9) == LogReader(folder).last_epoch(9) == 1
        log.rollback()
        log.append(records(1))
        log.commit()
        assert log.last_epoch(9) == LogReader(folder).last_epoch(9) == 1


def test_waiting_ends_with_the_next_commit(folder: Path) -> None:
    reader = LogReader(folder)
    assert not reader.wait(0, timeout=0.01)
    with writer(folder) as log:
        log.append(records(1))
        threading.Timer(0.02, log.commit).start()
        assert reader.wait(0, timeout=10)
    assert len(follow(reader, 0)) == 1


def test_two_readers_follow_a_writer(folder: Path) -> None:
    wanted = records(3000)
    found: dict[int, list[LogRecord]] = {0: [], 1: []}

    def run(number: int) -> None:
        position = 0
        with LogReader(folder) as reader:
            while len(found[number]) < len(wanted) and reader.wait(position, timeout=10):
                more, position = reader.read(position, max_bytes=1000 * (number + 1))
                found[number] += more

    threads = [threading.Thread(target=run, args=(number,)) for number in found]
    for thread in threads:
        thread.start()
    with writer(folder, segment_bytes=5000) as log:
        for start in range(0, len(wanted), 50):
            log.append(wanted[start : start + 50])
            if start % 400 == 0:
                log.append([(TOPIC, bytes(1 << 20))] * 2)
                log.rollback()
                log.append(wanted[start : start + 50])
            log.commit()
    for thread in threads:
        thread.join(timeout=20)
    assert found == {0: wanted, 1: wanted}


def test_a_second_writer_is_turned_away(folder: Path) -> None:
    with writer(folder) as log:
        with pytest.raises(LogBusy, match="already writes"):
            writer(folder)
        log.append(records(1))
        log.commit()
    writer(folder).close()


def test_the_folder_of_another_topic_is_refused(folder: Path) -> None:
    write(folder, [records(1)])
    with pytest.raises(LogError, match="another topic"):
        LogWriter(folder, "other")
    writer(folder).close()


def test_a_wrong_record_takes_the_commit_back_and_the_writer_goes_on(folder: Path) -> None:
    with writer(folder) as log:
        for bad in ("", "x" * 65535, "\ud800"):
            with pytest.raises(LogError):
                log.append([*records(2), (bad, b"")])
        with pytest.raises(LogError, match="payload"):
            log.append([*records(2), (TOPIC, bytes((16 << 20) + 1))])
        log.append(records(1))
        log.commit()
    assert read(folder) == records(1)
    with pytest.raises(LogError, match="open it again"):
        log.append(records(1))


def test_the_largest_payload_and_topic_fit(folder: Path) -> None:
    large = [("x" * 65534, bytes(16 << 20)), ("y", b"")]
    write(folder, [large])
    assert read(folder, max_bytes=1) == large


def test_a_position_that_was_removed_is_gone(folder: Path) -> None:
    write(folder, [records(5, start=i) for i in range(0, 50, 5)], segment_bytes=400)
    assert enforce(folder, Limits(size=0), 0)
    (kept,) = segments(folder)
    reader = LogReader(folder)
    assert reader.first() == int(kept.stem)
    with pytest.raises(LogGone):
        reader.read(0)
    skipping = LogReader(folder, skip_damage=True)
    assert follow(skipping, 0) == read(folder)
    assert (skipping.skipped, skipping.lost) == (0, 0)


def test_a_site_lists_its_topics(tmp_path: Path) -> None:
    site = SiteLog(tmp_path / "logs", min_free_bytes=0)
    assert site.topics() == []
    names = ["a/b", "+/x/#", "ü" * 300, "ü" * 301, ".", ".."]
    for name in names:
        with site.writer(name) as log:
            log.append([(name, name.encode())])
            log.commit()
    assert site.topics() == sorted(names)
    for name in names:
        assert site.reader(name).read(0)[0] == [(name, name.encode())]
        assert len(site.folder(name).name) <= 217
    assert site.folder("a/b").name == "a%2Fb"
