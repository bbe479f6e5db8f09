"""Python and Java read, write and lock the same files."""

from __future__ import annotations

import random
import re
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from fogline.log import LogBusy, LogReader, SiteLog
from fogline.log.files.damage import Damage, load_all
from tests.log.kit import (
    TOPIC,
    copy,
    flip,
    follow,
    read,
    records,
    segments,
    set_committed,
    write,
    writer,
)
from tests.waiting import PATIENCE

pytestmark = pytest.mark.site

Tool = Callable[..., subprocess.CompletedProcess[bytes]]


def lines(found: list[tuple[str, bytes]]) -> bytes:
    return b"".join(topic.encode() + b"\t" + payload + b"\n" for topic, payload in found)


def told(done: subprocess.CompletedProcess[bytes]) -> dict[str, int]:
    assert done.returncode == 0, done.stderr
    return {key: int(value) for key, value in (x.split("=") for x in done.stdout.decode().split())}


def test_java_reads_what_python_wrote(folder: Path, log_tool: Tool) -> None:
    big = ("größe/ü", bytes(range(256)) * 12_000)
    wanted = [*records(500), big, *records(500, start=500)]
    ends = write(folder, [wanted[:300], wanted[300:800], wanted[800:]], segment_bytes=10_000)
    assert log_tool("cat", folder).stdout == lines(wanted)
    assert log_tool("cat", folder, ends[0], ends[1]).stdout == lines(wanted[300:800])
    summary = told(log_tool("check", folder))
    assert (summary["records"], summary["commits"], summary["skipped"]) == (1001, 3, 0)


def test_python_reads_what_java_wrote(tmp_path: Path, log_tool: Tool) -> None:
    site = SiteLog(tmp_path / "logs")
    topic = "größe/+"
    folder = site.folder(topic)
    wanted = [("größe/1", b"x" * 3000), ("größe/2", b"")] * 800
    first = log_tool("append", folder, topic, 7, 3, data=lines(wanted))
    assert first.returncode == 0, first.stderr
    second = log_tool("append", folder, topic, data=lines(records(10)))
    assert site.topics() == [topic]
    reader = site.reader(topic)
    assert reader.committed() == int(second.stdout)
    assert read(folder) == wanted + records(10)
    frames, _ = reader.frames(0, 1 << 30)
    assert [frame.number for frame in frames] == [0, *(f.next_number for f in frames[:-1])]
    assert [frame.last for frame in frames[-3:]] == [False, True, True]
    assert [frame.source for frame in frames[-3:]] == [7, 7, 0]
    assert max(frame.size for frame in frames) < 70_000
    assert reader.last_epoch(7) == 3
    assert read(folder, int(first.stdout)) == records(10)
    with site.writer(topic) as log:
        assert log.last_epoch(7) == 3
        log.append(records(5))
        log.commit()
    assert log_tool("cat", folder, second.stdout.decode().strip()).stdout == lines(records(5))


@pytest.mark.parametrize("text", [b"\xff\0", b"gr\xc3\xb6\xc3\x9fe/*", b"other"])
def test_a_damaged_topic_is_known_by_its_folder(
    tmp_path: Path, log_tool: Tool, text: bytes
) -> None:
    site = SiteLog(tmp_path / "logs", min_free_bytes=0)
    topic = "größe/+"
    file = site.folder(topic) / "topic"
    site.writer(topic).close()
    file.write_bytes(text)
    assert site.topics() == [topic]
    site.writer(topic).close()
    assert file.read_text(encoding="utf-8") == topic
    file.write_bytes(text)
    done = log_tool("append", file.parent, topic, data=lines(records(1)))
    assert done.returncode == 0, done.stderr
    assert file.read_text(encoding="utf-8") == topic


def test_java_repairs_as_python_does(folder: Path, log_tool: Tool) -> None:
    ends = write(folder, [records(3), records(3, start=3), records(2, start=6)])
    only = segments(folder)[0]
    only.write_bytes(only.read_bytes()[:-1] + b"XYZ")
    set_committed(folder, ends[0])
    done = log_tool("append", folder, TOPIC, data=lines(records(2, start=6)))
    assert int(done.stdout) == ends[2]
    assert read(folder) == records(8)


def test_java_never_cuts_off_acknowledged_commits(folder: Path, log_tool: Tool) -> None:
    ends = write(folder, [records(3, start=i) for i in range(0, 30, 3)], segment_bytes=300)
    flip(segments(folder)[1], 60)
    set_committed(folder, ends[0])
    done = log_tool("append", folder, TOPIC, data=lines(records(1)))
    assert int(done.stdout) > ends[-1]
    with LogReader(folder, skip_damage=True) as reader:
        found = follow(reader, 0)
        assert len(found) + reader.lost == 31
        assert found[-2:] == [*records(30)[-1:], *records(1)]


def test_java_reports_or_skips_damage(folder: Path, log_tool: Tool) -> None:
    write(folder, [records(3, start=i) for i in range(0, 30, 3)], segment_bytes=300)
    bad = segments(folder)[1]
    flip(bad, 60)
    done = log_tool("cat", folder)
    assert done.returncode == 1
    assert f"{bad} is damaged at position {int(bad.stem) + 16}".encode() in done.stderr
    summary = told(log_tool("check", folder))
    skipping = LogReader(folder, skip_damage=True)
    found = follow(skipping, 0)
    assert (summary["records"], summary["skipped"]) == (len(found), skipping.skipped)
    assert summary["lost"] == skipping.lost == 30 - len(found) > 0


def test_java_is_turned_away_by_a_python_writer(folder: Path, log_tool: Tool) -> None:
    with writer(folder) as log:
        log.append(records(1))
        log.commit()
        done = log_tool("append", folder, TOPIC, data=lines(records(1)))
        assert done.returncode == 1
        assert b"LogBusy" in done.stderr
    assert read(folder) == records(1)


def test_python_is_turned_away_by_a_java_writer(folder: Path, java: list[str]) -> None:
    command = [*java, "append", str(folder), TOPIC]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None
        deadline = time.monotonic() + 20 * PATIENCE
        while not (folder / "committed").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        with pytest.raises(LogBusy, match="another process"):
            writer(folder)
        child.communicate(lines(records(4)), timeout=20)
    assert read(folder) == records(4)
    writer(folder).close()


def test_both_give_a_topic_the_same_folder(tmp_path: Path, log_tool: Tool) -> None:
    site = SiteLog(tmp_path)
    for topic in ("a/+/b c", "ü" * 40, "ü" * 34, "$SYS/#~%"):
        assert log_tool("folder", tmp_path, topic).stdout.decode().strip() == str(
            site.folder(topic)
        )


def test_java_leaves_a_full_log_as_it_was(folder: Path, java: list[str], log_tool: Tool) -> None:
    end = write(folder, [records(3)])[0]
    data = lines([("city/1", b"x" * 1000)] * 3000)
    command = ["bash", "-c", 'ulimit -f 600; exec "$@"', "-", *java, "append", str(folder), TOPIC]
    done = subprocess.run(command, input=data, capture_output=True, check=False, timeout=60)
    assert done.returncode == 1
    assert b"LogFull" in done.stderr
    assert [path.stat().st_size for path in segments(folder)] == [end]
    assert read(folder) == records(3)
    assert log_tool("append", folder, TOPIC, data=data).returncode == 0
    assert len(read(folder)) == 3003


def test_java_follows_a_python_writer(folder: Path, java: list[str]) -> None:
    wanted = records(600)
    with subprocess.Popen([*java, "follow", str(folder)], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        with writer(folder, segment_bytes=2000) as log:
            for start in range(0, 600, 30):
                log.append(wanted[start : start + 30])
                log.commit()
                found = b"".join(child.stdout.readline() for _ in range(30))
                assert found == lines(wanted[start : start + 30])
        child.kill()


def test_splits_divide_the_log_at_frames(folder: Path, log_tool: Tool) -> None:
    ends = write(folder, [records(3, start=i) for i in range(0, 300, 3)], segment_bytes=1500)
    splits = [int(line) for line in log_tool("splits", folder, 400).stdout.split()]
    boundaries = {0, *ends, *(int(path.stem) + 16 for path in segments(folder))}
    assert set(splits) <= boundaries
    assert all(400 <= b - a < 700 for a, b in pairwise(splits[:-1]))
    reader = LogReader(folder)
    parts = [follow(reader, a, max_bytes=1, stop=b) for a, b in pairwise(splits)]
    assert [record for part in parts for record in part] == records(300)


def test_java_finds_the_last_epochs(folder: Path, log_tool: Tool) -> None:
    with writer(folder, segment_bytes=400) as log:
        for epoch in range(9):
            log.append(records(3), source=2**64 - 1, epoch=epoch)
            log.append(records(3), source=5, epoch=epoch * 10)
            log.commit()
    for path in segments(folder)[:-2]:
        path.unlink()
    found = sorted(log_tool("sources", folder).stdout.decode().splitlines())
    assert found == [f"{2**64 - 1} 8", "5 80"]


def harmed_logs(root: Path, count: int) -> list[Path]:
    """Logs with a few bytes changed, or cut, in one of their files."""
    chance = random.Random(7)
    whole = root / "whole"
    write(whole, [records(4, start=i) for i in range(0, 40, 4)], segment_bytes=500)
    logs = []
    for number in range(count):
        log = copy(whole, root / f"harmed{number}")
        path = chance.choice([*segments(log), segments(log)[-1], log / "committed"])
        data = bytearray(path.read_bytes())
        for _ in range(chance.randint(0, 2)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        path.write_bytes(data[: chance.choice([len(data), chance.randrange(len(data))])])
        logs.append(log)
    return logs


def python_check(folder: Path) -> str:
    with LogReader(folder, skip_damage=True) as reader:
        found = follow(reader, reader.first())
        return f"records={len(found)} skipped={reader.skipped} lost={reader.lost}"


def noted(damage: Damage) -> Damage:
    return replace(damage, found=0, reason="")


def python_repair(folder: Path) -> str:
    with writer(folder) as log:
        return f"to={log.position}"


def test_both_see_a_harmed_log_the_same_way(tmp_path: Path, log_tool: Tool) -> None:
    logs = harmed_logs(tmp_path, 60)
    copies = [copy(log, tmp_path / f"copy{number}") for number, log in enumerate(logs)]
    seen = log_tool("check", *logs).stdout.decode().splitlines()
    assert [re.search(r"records=.* lost=[0-9]+", line)[0] for line in seen] == [
        python_check(log) for log in copies
    ]
    done = log_tool("repair", *logs).stdout.decode().splitlines()
    assert done == [python_repair(log) for log in copies]
    for log, copied in zip(logs, copies, strict=True):
        assert [noted(damage) for damage in load_all(log)] == [
            noted(damage) for damage in load_all(copied)
        ]
        assert [path.name for path in segments(log)] == [path.name for path in segments(copied)]
        assert all((copied / path.name).read_bytes() == path.read_bytes() for path in segments(log))
