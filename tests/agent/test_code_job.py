"""The user's own PySpark as a job: records in, their function, a log out."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import zipfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from fogline.common.errors import UsageError
from fogline.log import SiteLog
from fogline.spark.jobs.checkpoints import committed_positions
from fogline.spark.jobs.code_job import CodeJob, CodeSpec, source_options
from fogline.spark.jobs.user_code import load_function
from tests.agent.kit import payloads
from tests.waiting import wait_for

pytestmark = pytest.mark.spark

PASS = "def run(records):\n    return records\n"
FAST = """
from pyspark.sql import functions as F

LIMIT = 10.0


def scaled(speed):
    return None if speed is None else speed * LIMIT


def run(records, *, least=0.0):
    times = F.udf(scaled, "double")
    return records.where(F.col("speed") > least).select("road", times("speed").alias("speed"))
"""


def package(folder: Path, name: str, text: str) -> tuple[Path, str]:
    data = text.encode()
    path = folder / hashlib.sha256(data).hexdigest()
    path.write_bytes(data)
    return path, path.name


@pytest.fixture
def logs(tmp_path: Path) -> SiteLog:
    return SiteLog(tmp_path / "log", min_free_bytes=1)


@pytest.fixture
def started(tmp_path: Path, logs: SiteLog, spark: SparkSession) -> Iterator[Any]:
    jobs = []

    def start(text: str, entry: str = "job:run", **more: Any) -> CodeJob:
        path, sha = package(tmp_path, "job.py", text)
        spec = CodeSpec(
            name="j",
            function=partial(load_function, path, "job.py", sha, entry),
            parameters=more.get("parameters", {}),
            input=more.get("input", {}),
            reads=more.get("reads", ("t",)),
            starts=more.get("starts", {}),
            folder=tmp_path / "job",
            life=more.get("life", "c1"),
            logs=logs.root,
            log_folder=logs.folder,
            trigger_ms=50,
        )
        jobs.append(CodeJob(spark, spec))
        jobs[-1].keep_running()
        return jobs[-1]

    yield start
    for job in jobs:
        job.stop()


def fill(logs: SiteLog, topic: str, messages: list[Any]) -> None:
    with logs.writer(topic) as writer:
        raw = [m if isinstance(m, bytes) else json.dumps(m).encode() for m in messages]
        writer.append([(topic, m) for m in raw])
        writer.commit()


def written(logs: SiteLog, count: int) -> list[bytes]:
    def found() -> list[bytes]:
        with logs.reader("out/j") as reader:
            return list(payloads(reader))

    return wait_for(lambda: (f := found()) and len(f) >= count and f, 60, f"{count} records")


def test_raw_messages_pass_as_they_are(logs: SiteLog, started: Any) -> None:
    messages = [b"\xff\x00\x01", b"", b"text", b'{"a": 1}']
    fill(logs, "t", messages)
    job = started(PASS)
    assert written(logs, 4) == messages
    status = job.status()
    assert status.state == "running"
    assert status.queries[0].run


def test_typed_records_with_a_function_of_its_own_and_parameters(
    logs: SiteLog, started: Any
) -> None:
    rows = [{"road": f"r{i}", "speed": i / 2, "at": 1_700_000_000 + i} for i in range(10)]
    fill(logs, "t", [*rows, b"not json"])
    form = {"format": "json", "time": "at", "schema": "road string, speed double"}
    job = started(FAST, input=form, parameters={"least": 3.9, "unused": 1})
    found = [json.loads(p) for p in written(logs, 2)]
    assert found == [{"road": "r8", "speed": 40.0}, {"road": "r9", "speed": 45.0}]
    wait_for(lambda: job.status().queries[0].bad == 1, 30, "counted bad message")


def test_it_goes_on_where_it_was(logs: SiteLog, started: Any) -> None:
    fill(logs, "t", [b"1", b"2"])
    first = started(PASS)
    written(logs, 2)
    first.stop()
    fill(logs, "t", [b"3"])
    started(PASS)
    assert written(logs, 3) == [b"1", b"2", b"3"]


def test_with_other_parameters_it_goes_on_with_what_it_reads(logs: SiteLog, started: Any) -> None:
    adds = """
from pyspark.sql import functions as F

def run(records, *, sign="a"):
    return records.withColumn("payload", F.concat(F.col("payload"), F.lit(sign.encode())))
"""
    fill(logs, "t", [b"1"])
    first = started(adds)
    assert written(logs, 1) == [b"1a"]
    second = first.with_parameters({"sign": "b"})
    first.stop()
    assert second._frame is first._frame
    fill(logs, "t", [b"2"])
    second.keep_running()
    try:
        assert written(logs, 2) == [b"1a", b"2b"]
    finally:
        second.stop()


def test_other_code_goes_on_behind_what_was_done(
    tmp_path: Path, logs: SiteLog, started: Any
) -> None:
    fill(logs, "t", [b"1", b"2"])
    first = started(PASS)
    written(logs, 2)
    wait_for(lambda: committed_positions(tmp_path / "job/checkpoints/c1"), 60, "committed batch")
    first.stop()
    done = committed_positions(tmp_path / "job/checkpoints/c1")
    with logs.reader("t") as reader:
        assert done == {"t": reader.committed()}
    fill(logs, "t", [b"3"])
    started(PASS, life="c2", starts=done)
    assert written(logs, 3) == [b"1", b"2", b"3"]


def test_several_topics_are_one_stream(logs: SiteLog, started: Any) -> None:
    fill(logs, "a", [b"1"])
    fill(logs, "b", [b"2"])
    started(PASS, reads=("a", "b"))
    assert sorted(written(logs, 2)) == [b"1", b"2"]


@pytest.mark.parametrize(
    ("text", "entry", "says"),
    [
        ("raise ValueError('no luck')", "job:run", "no luck"),
        ("x = 1", "job:run", "no function 'run'"),
        ("def run(records):\n    return 1", "job:run", "not a DataFrame"),
        ("def run(records):\n    return records.nothing", "job:run", "nothing"),
        ("def run(r):\n    return r.sparkSession.range(3)", "job:run", "not made from its records"),
        ("import sys\nsys.exit(3)", "job:run", "SystemExit(3)"),
    ],
)
def test_code_that_fails_is_told(
    logs: SiteLog, started: Any, text: str, entry: str, says: str
) -> None:
    fill(logs, "t", [b"1"])
    job = started(text, entry)
    query = job.status().queries[0]
    assert query.state == "failed"
    assert says in query.problem


def test_a_wheel_with_modules_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / ("a" * 64)
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("roads/__init__.py", "")
        wheel.writestr("roads/tools.py", "NAME = 'tools'\n")
        wheel.writestr(
            "roads/jobs.py", "from roads.tools import NAME\n\ndef run(r):\n    return NAME\n"
        )
    function = load_function(path, "roads-1.0-py3-none-any.whl", "a" * 64, "roads.jobs:run")
    assert function(None) == "tools"
    other = tmp_path / ("b" * 64)
    with zipfile.ZipFile(other, "w") as wheel:
        wheel.writestr("roads/__init__.py", "")
        wheel.writestr("roads/jobs.py", "def run(r):\n    return 'newer'\n")
    function = load_function(other, "roads-1.1-py3-none-any.whl", "b" * 64, "roads.jobs:run")
    assert function(None) == "newer"


def roads(folder: Path, version: int) -> tuple[Path, str, str, str]:
    """A wheel whose results, of the function and of what it runs in workers, tell its version."""
    path = folder / (f"{version:x}" * 64)
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("roads/__init__.py", "")
        wheel.writestr("roads/late.py", f"VERSION = {version}\n")
        wheel.writestr("roads/tools.py", f"def mark(x):\n    return f'{version} {{x}}'\n")
        wheel.writestr("marks.py", f"import roads.tools\nMARK = 'v{version}'\n")
        wheel.writestr("roads/jobs.py", ROADS)
    return path, f"roads-{version}.0-py3-none-any.whl", path.name, "roads.jobs:run"


ROADS = """
from pyspark.sql import functions as F
import marks
import roads.tools


def run(frame):
    from roads.late import VERSION

    udf = F.udf(lambda x: f"{marks.MARK} {roads.tools.mark(x)}")
    return frame.select(udf("id").alias("said"), F.lit(VERSION).alias("version"))
"""


def test_two_versions_of_a_wheel_do_not_meet(tmp_path: Path, spark: SparkSession) -> None:
    wheels = {version: roads(tmp_path, version) for version in (1, 2)}

    def said(version: int) -> list[Any]:
        frame = load_function(*wheels[version])(spark.range(1, 2))
        return [tuple(row) for row in frame.collect()]

    for version in (1, 2, 1, 2, 2, 1):
        assert said(version) == [(f"v{version} {version} 1", version)]
    assert not any(name.partition(".")[0] in ("roads", "marks") for name in sys.modules)


def test_a_wheel_that_was_half_unpacked_is_unpacked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def half(archive: zipfile.ZipFile, folder: Path) -> None:
        archive.extract("roads/__init__.py", folder)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(zipfile.ZipFile, "extractall", half)
        patch.setattr(shutil, "rmtree", lambda *_, **__: None)
        with pytest.raises(UsageError):
            load_function(*roads(tmp_path, 3))
    assert callable(load_function(*roads(tmp_path, 3)))


def test_an_archive_that_leads_out_of_its_folder_is_refused(tmp_path: Path) -> None:
    path = tmp_path / ("c" * 64)
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("../evil.py", "x = 1\n")
    with pytest.raises(UsageError, match="leads out"):
        load_function(path, "evil.whl", "c" * 64, "evil:run")
    path.write_bytes(b"nothing")
    with pytest.raises(UsageError, match="neither"):
        load_function(path, "evil.whl", "c" * 64, "evil:run")


@pytest.mark.parametrize(
    "given",
    [
        {"colour": "red"},
        {"format": "json"},
        {"format": "json", "schema": "a blob"},
        {"format": "json", "schema": ","},
    ],
)
def test_inputs_that_make_no_sense(given: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        source_options(given)
