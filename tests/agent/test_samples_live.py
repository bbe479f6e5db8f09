"""Public sample streams published over MQTT: a live site gives what a batch over the file gives.

The samples are not part of the project; without them beside it these tests are skipped.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from fogline.model.results import Result, parse_results
from fogline.plan.analysis.build import plan_text
from fogline.plan.lowering.program import lower
from fogline.plan.rules import optimise
from fogline.spark.compile.scan import Input
from fogline.spark.run.engine import run_batch
from tests.agent.kit import AgentProcess
from tests.waiting import wait_for

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT.parent / "shared" / "data"
FILES = {"city": "SYS", "taxi": "TAXI"}
DAY_MS = 86_400_000

pytestmark = [
    pytest.mark.site,
    pytest.mark.skipif(not SAMPLES.is_dir(), reason="the sample streams are not here"),
]

Found = dict[tuple[str, str, str], Any]


def batch(spark: SparkSession, name: str, path: Path) -> Found:
    text = (ROOT / "examples" / name / f"{name}.ins").read_text(encoding="utf-8")
    program = lower(optimise(plan_text(text))[0])
    found: list[Result] = []
    streams = {s.stream.name for s in (*program.scans, *program.record_scans)}
    run_batch(
        spark,
        program,
        dict.fromkeys(streams, Input(path)),
        lambda lines: found.extend(parse_results(lines)),
    )
    windowed = {o.name for o in program.outputs if o.trigger is not None}
    return by_window(json.loads(r.record) for r in found if r.insight in windowed)


def by_window(records: Any) -> Found:
    return {
        (r["insight"], r["window"]["end"], json.dumps(r["keys"])): (r["value"], r["count"])
        for r in records
    }


@pytest.mark.parametrize("name", FILES)
def test_live_gives_what_a_batch_gives(name: str, spark: SparkSession, tmp_path: Path) -> None:
    path = SAMPLES / f"{FILES[name]}_sample_data_senml.csv"
    wanted = batch(spark, name, path)
    assert wanted
    text = (ROOT / "examples" / name / f"{name}.ins").read_text(encoding="utf-8")
    agent = AgentProcess(tmp_path, {name: text})
    agent.start()
    try:
        agent.wait_healthy()
        lines = path.read_bytes().splitlines()
        newest = max(json.loads(line.split(b",", 1)[1])["bt"] for line in lines)
        closing = json.dumps({"e": [{"n": "closing", "sv": "x"}], "bt": int(newest) + DAY_MS})
        publish(agent, f"{name}/devices", b"\n".join([*lines, closing.encode()]))
        names = {insight for insight, _, _ in wanted}

        def found() -> Found:
            records = [r for n in names for r in agent.records(f"insights/{name}/{n}")]
            return by_window(records)

        wait_for(lambda: len(found()) >= len(wanted), 120, "all windows")
        assert rounded(found()) == rounded(wanted)
        assert agent.records(f"bad/{name}/{name}") == []
    finally:
        agent.end()


def publish(agent: AgentProcess, topic: str, payloads: bytes) -> None:
    command = ["mosquitto_pub", "-p", str(agent.mqtt_port), "-q", "1", "-t", topic, "-l"]
    subprocess.run(command, input=payloads, check=True, timeout=60)


def rounded(found: Found) -> Found:
    """Sums depend on their order in the last digits."""

    def near(value: Any) -> Any:
        if isinstance(value, float):
            return float(f"{value:.9g}")
        if isinstance(value, list):
            return [near(v) for v in value]
        return {k: near(v) for k, v in value.items()} if isinstance(value, dict) else value

    return {key: (near(value), count) for key, (value, count) in found.items()}
