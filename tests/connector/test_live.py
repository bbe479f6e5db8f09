"""Real time: insights without EVERY, from a log through Spark's real-time mode into a log."""

from __future__ import annotations

import json
import random
import time
import zlib
from collections.abc import Callable, Iterator
from itertools import count, islice
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from fogline.common.state_files import write_state
from fogline.log import LogBusy, LogWriter, SiteLog
from fogline.model.results import Result, parse_results
from fogline.plan.analysis.build import plan_text
from fogline.plan.lowering.program import lower
from fogline.plan.rules import optimise
from fogline.spark.compile.scan import Input
from fogline.spark.jobs.site_job import JobSpec, SiteJob
from fogline.spark.jobs.site_query import _delay
from fogline.spark.run.engine import run_batch
from tests.agent.kit import payloads
from tests.waiting import PATIENCE, wait_for

pytestmark = pytest.mark.spark

BASE = 1_700_000_000_000
STREAM = (
    's = STREAM FROM mqtt(topic="in", format="json", time="t", schema="room string, x double");\n'
)


@pytest.fixture
def site(tmp_path: Path) -> SiteLog:
    return SiteLog(tmp_path / "log", min_free_bytes=0)


@pytest.fixture
def writer(site: SiteLog) -> Iterator[LogWriter]:
    with site.writer("in") as writer:
        yield writer


@pytest.fixture
def start(spark: SparkSession, site: SiteLog, tmp_path: Path) -> Iterator[Callable[..., SiteJob]]:
    for name in ("allowlistCheck", "asyncProgressTrackingByDefault.enabled"):
        spark.conf.set(f"spark.sql.streaming.realTimeMode.{name}", "false")
    started: list[SiteJob] = []

    def run(
        text: str, live_ms: int = 5000, muted: Path | None = None, first_live_ms: int | None = None
    ) -> SiteJob:
        """Its first batch is as long as the others unless `first_live_ms` says otherwise."""
        plan, _ = optimise(plan_text(STREAM + text))
        spec = JobSpec(
            name="job", plan=plan, life=f"{zlib.crc32(text.encode()):x}",
            folder=tmp_path / "job", logs=site.root,
            log_folder=site.folder, append=lambda *_: None, live_ms=live_ms, muted=muted,
            first_live_ms=first_live_ms or live_ms,
        )  # fmt: skip
        job = SiteJob(spark, spec)
        job.keep_running()
        started.append(job)
        return job

    yield run
    for job in started:
        job.stop()


def send(writer: LogWriter, *readings: tuple[str, float, int]) -> None:
    rows = [{"room": room, "x": x, "t": BASE + t} for room, x, t in readings]
    writer.append([("in", json.dumps(row).encode()) for row in rows])
    writer.commit()


def results(site: SiteLog, insight: str, count: int) -> list[dict[str, Any]]:
    """The results of an insight, once there are so many."""
    return [json.loads(payload) for _, payload in messages(site, f"insights/job/{insight}", count)]


def messages(site: SiteLog, log: str, count: int) -> list[tuple[str, bytes]]:
    """What is in a log, once there is so much."""
    deadline = time.monotonic() + 60 * PATIENCE
    found: list[tuple[str, bytes]] = []
    with site.reader(log) as reader:
        position = 0
        while len(found) < count and time.monotonic() < deadline:
            if reader.wait(position, 0.1):
                records, position = reader.read(position)
                found += records
    assert len(found) >= count, found
    return found


def test_every_reading_gives_the_window_up_to_it(
    start: Callable, writer: LogWriter, site: SiteLog
) -> None:
    start("avg = COMPUTE AVG(x, 10 s) BY room;")
    send(writer, ("a", 1, 0), ("a", 3, 5000), ("b", 7, 6000), ("a", 8, 9000), ("a", 10, 12_000))
    found = results(site, "avg", 5)
    by_room = {r: [x["value"] for x in found if x["keys"]["room"] == r] for r in ("a", "b")}
    assert by_room == {"a": [1.0, 2.0, 4.0, 7.0], "b": [7.0]}
    assert found[0]["count"] == 1


def test_running_functions_and_records(start: Callable, writer: LogWriter, site: SiteLog) -> None:
    start(
        "n = COMPUTE RUNNING_COUNT(x) BY room;\n"
        "hot = COMPUTE x BY room WHEN > 5;\n"
        "step = COMPUTE DIFF(x) BY room;"
    )
    send(writer, ("a", 1, 0), ("a", 9, 1000), ("a", 6, 2000))
    assert [r["value"] for r in results(site, "n", 3)] == [1, 2, 3]
    assert [r["value"] for r in results(site, "hot", 2)] == [9, 6]
    assert [r["value"] for r in results(site, "step", 2)] == [8, -3]


def test_a_straggler_counts_as_of_the_newest(
    start: Callable, writer: LogWriter, site: SiteLog
) -> None:
    start("total = COMPUTE SUM(x, 10 s) BY room;")
    send(writer, ("a", 1, 0), ("a", 2, 9000), ("a", 4, 5000))
    found = results(site, "total", 3)
    assert [r["value"] for r in found] == [1, 3, 7]
    assert found[2]["window"]["end"] == found[1]["window"]["end"]


def test_commands_go_to_the_topic_of_their_key(
    start: Callable, writer: LogWriter, site: SiteLog
) -> None:
    start('hot = COMPUTE x BY room WHEN > 5 TO mqtt(topic="cmd/{room}/fan");')
    send(writer, ("a", 9, 0), ("b/#", 8, 0))
    topics = {topic for topic, _ in messages(site, "to/job/hot", 2)}
    assert topics == {"cmd/a/fan", "cmd/b__/fan"}


def test_what_is_muted_while_a_batch_runs_is_dropped(
    start: Callable, writer: LogWriter, site: SiteLog, tmp_path: Path
) -> None:
    muted, numbers = tmp_path / "muted", count(1)
    text = "n = COMPUTE RUNNING_COUNT(x) BY room;\nm = COMPUTE RUNNING_MAX(x) BY room;"
    start(text, live_ms=600_000, muted=muted)

    def counted() -> list[float]:
        with site.reader("insights/job/n") as reader:
            return [json.loads(payload)["value"] for payload in payloads(reader)]

    def send_one() -> int:
        """Returns how many that makes, once it is computed."""
        number = next(numbers)
        send(writer, ("a", number, 1000 * number))
        return len(results(site, "m", number))

    send_one()
    wait_for(counted, 60, "the first count")
    write_state(muted, "insights/job/n\n")
    wait_for(lambda: send_one() > len(counted()) + 3, 60, "counts that are dropped")
    assert is_free(site, "insights/job/n"), "another process may write it"
    muted.unlink()
    before = len(counted())
    wait_for(lambda: send_one() and len(counted()) > before, 60, "counts that are told again")
    assert counted()[before] > before + 3, "it was computed on"


def test_goes_on_after_a_restart_with_its_state(
    start: Callable, writer: LogWriter, site: SiteLog
) -> None:
    text = "n = COMPUTE RUNNING_COUNT(x) BY room;"
    job = start(text)
    send(writer, *[("a", 1.0, n) for n in range(100)])
    results(site, "n", 100)
    job.stop()
    send(writer, *[("a", 1.0, 100 + n) for n in range(100)])
    start(text)
    deadline = time.monotonic() + 60 * PATIENCE
    last = 0.0
    while last < 200 and time.monotonic() < deadline:
        last = results(site, "n", 1)[-1]["value"]
    assert last == 200


def test_stops_and_starts_again_in_one_engine(
    start: Callable, writer: LogWriter, site: SiteLog
) -> None:
    """A task that is interrupted while it writes lets go of the log."""
    for turn in range(5):
        job = start("hot = COMPUTE x BY room;")
        send(writer, *[("a", float(turn), 100 * turn + n) for n in range(100)])
        results(site, "hot", 100 * (turn + 1))
        job.stop()
    wait_for(lambda: is_free(site, "insights/job/hot"), 20, "log that is free")


def test_counts_are_told_while_a_batch_runs(
    start: Callable, writer: LogWriter, site: SiteLog
) -> None:
    """Spark tells of a batch when it has ended; in real time that takes minutes."""
    job = start("n = COMPUTE RUNNING_COUNT(x) BY room;", live_ms=600_000)
    send(writer, *[("a", 1.0, n) for n in range(100)])
    writer.append([("in", b"not json")])
    writer.commit()
    found = wait_for(lambda: [q for q in job.status().queries if q.bad], 60, "counts")[0]
    assert (found.batches, found.records, found.bad, found.delay_ms) == (0, 100, 1, 0)
    assert found.bytes > 1000
    assert abs(time.time() * 1000 - BASE - found.latency_ms) < 600_000


def test_a_job_begins_with_short_batches(start: Callable, writer: LogWriter, site: SiteLog) -> None:
    """Java compiles what Spark does between two batches when it has run some times."""
    text = "n = COMPUTE RUNNING_COUNT(x) BY room;\nhot = COMPUTE x BY room;"
    job = start(text, live_ms=600_000, first_live_ms=500)
    sent = count(1)

    def three_batches() -> bool:
        send(writer, *[("a", float(number), number) for number in islice(sent, 10)])
        return all(query.batches >= 3 for query in job.status().queries)

    wait_for(three_batches, 60, "three batches of each query")
    wanted = list(range(1, next(sent)))
    for insight in ("n", "hot"):
        found = results(site, insight, len(wanted))
        assert [r["value"] for r in found] == wanted, "none is lost or doubled between batches"


def test_what_several_queries_read_counts_once(
    start: Callable, writer: LogWriter, site: SiteLog, tmp_path: Path
) -> None:
    rejects = tmp_path / "job" / "rejects"
    job = start(
        "every = COMPUTE AVG(x, 1 s) BY room EVERY 1 s;\n"
        "total = COMPUTE SUM(x, 5 s) BY room;\n"
        "hot = COMPUTE x BY room WHEN > 5;"
    )
    send(writer, *[("a", 9.0, 100 * n) for n in range(100)])
    writer.append([("in", b"not json")])
    writer.commit()
    wait_for(lambda: list(rejects.glob("*.ndjson")), 60, "reject")
    send(writer, ("a", 1.0, -60_000))
    results(site, "total", 101)
    results(site, "hot", 100)
    wait_for(lambda: counted(job)[2], 60, "late record")
    names = {q.name for q in job.status().queries}
    assert names == {"windows", "live", "live-records"}
    wait_for(lambda: all(q.batches for q in job.status().queries), 60, "batch of each query")
    assert counted(job) == (101, 1, 1)
    lines = [line for file in rejects.glob("*.ndjson") for line in file.open(encoding="utf-8")]
    assert sorted(json.loads(line)["kind"] for line in lines) == ["bad", "late"]


def counted(job: SiteJob) -> tuple[int, int, int]:
    """Records, bad and late ones of a job."""
    found = job.status().queries
    return sum(q.records for q in found), sum(q.bad for q in found), sum(q.late for q in found)


def test_a_long_batch_is_no_delay() -> None:
    before = {"batchId": 0, "numInputRows": 5, "batchDuration": 142_000,
              "timestamp": "2026-01-01T00:00:00.000Z"}  # fmt: skip
    now = before | {"batchId": 1, "timestamp": "2026-01-01T00:02:22.400Z"}
    assert _delay(before, now, None) == 400
    assert _delay(before, now, 1000) == 141_400


def is_free(site: SiteLog, log: str) -> bool:
    """Whether nobody writes a log."""
    try:
        site.writer(log).close()
    except LogBusy:
        return False
    return True


FUNCTIONS = [
    "RUNNING_MEAN(x)", "RUNNING_STD(x)", "DIFF(x)", "EWMA[0.3](x)", "PEWMA[0.4](x)",
    "KALMAN[0.01, 0.5](x)", "MEDIAN(x, 5 EVENTS)", "AVG(x, 10 s)", "SDEV(x, 10 s)", "MAX(x, 10 s)",
    "COUNT(x, 10 s)", "FIRST(x, 10 s)", "SLOPE(x, 10 s)", "SUM(x, 5 s, 5 s)", "MEDIAN(x, 10 s)",
    "AVG(x, 10 s) - RUNNING_MEAN(x)",
]  # fmt: skip


def test_real_time_gives_what_a_batch_gives(
    start: Callable, writer: LogWriter, site: SiteLog, spark: SparkSession, tmp_path: Path
) -> None:
    """In order, and on the grain of the windows, the two agree to the last value."""
    rng = random.Random(5)
    text = "\n".join(f"i{n} = COMPUTE {f} BY room;" for n, f in enumerate(FUNCTIONS))
    readings = [(rng.choice("ab"), round(rng.gauss(5, 2), 2), 500 * n) for n in range(150)]
    path = tmp_path / "in.json"
    rows = [{"room": room, "x": x, "t": BASE + t} for room, x, t in readings]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    wanted: list[Result] = []
    run_batch(
        spark,
        lower(optimise(plan_text(STREAM + text))[0]),
        {"s": Input(path)},
        lambda lines: wanted.extend(parse_results(lines)),
    )
    start(text)
    send(writer, *readings)
    for n, function in enumerate(FUNCTIONS):
        expected = [json.loads(r.record) for r in wanted if r.insight == f"i{n}"]
        found = results(site, f"i{n}", len(expected))
        assert values(found) == pytest.approx(values(expected), rel=1e-9, abs=1e-9), function


def values(found: list[dict[str, Any]]) -> dict[tuple[str, str], float]:
    return {(r["keys"]["room"], r["window"]["end"]): r["value"] for r in found}


def test_more_keys_than_are_kept_at_hand(
    start: Callable[..., SiteJob], site: SiteLog, writer: LogWriter
) -> None:
    rooms = [f"r{n}" for n in range(5000)]
    start("n = COMPUTE RUNNING_COUNT(x) BY room;", live_ms=600_000)
    for turn in range(2):
        send(writer, *[(room, 1.0, turn) for room in rooms])
    found = results(site, "n", 2 * len(rooms))
    assert {r["keys"]["room"] for r in found} == set(rooms)
    assert sorted(r["value"] for r in found) == [1.0] * len(rooms) + [2.0] * len(rooms)
