"""`fogline demo traffic`: its compositions, its arithmetic, and real runs over four sites."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fogline.demo import traffic_devices as devices
from fogline.demo.traffic import EDGES, JOBS, _Run
from fogline.demo.traffic_result import CLOUD, FOG, Measured, compare_runs, differential, keep
from fogline.demo.traffic_table import Progress
from fogline.deploy.resolve.assign import assignments
from fogline.model.jobs import LINK, LOG, Pipeline
from tests.deploy.kit import resolved, site, topology

pytestmark = pytest.mark.site

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "traffic"
SITES = topology(*(site(name, f"10.0.0.{n}") for n, name in enumerate((*EDGES, "cloud"), 1)))

# ── the compositions ─────────────────────────────────────────────────────────────────────────────


def pipeline(variant: str) -> Pipeline:
    text = (EXAMPLES / f"{variant}.yaml").read_text(encoding="utf-8")
    files = {path.name: path.read_text(encoding="utf-8") for path in EXAMPLES.glob("*.ins")}
    found = resolved(text, SITES, files=files)
    assert found.notes == ()
    return found.pipeline


def kind(job: str) -> str:
    return job.partition("-")[0]


@pytest.mark.parametrize("variant", [FOG, CLOUD])
def test_a_variant_has_seventeen_jobs_of_four_kinds(variant: str) -> None:
    jobs = pipeline(variant).jobs
    assert len(jobs) == JOBS
    assert Counter(kind(job.name) for job in jobs) == {
        "clean": 9,
        "forward": 3,
        "local": 4,
        "global": 1,
    }


def test_in_the_fog_only_clean_records_cross_the_network() -> None:
    told = assignments([pipeline(FOG)], SITES)
    nodes = Counter(node for node, _ in told.values())
    assert nodes == {"edge-1": 5, "edge-2": 5, "edge-3": 5, "cloud": 2}
    linked = {name for name, (_, a) in told.items() if any(r.mode == LINK for r in a.routes)}
    assert linked == {"forward-1", "forward-2", "forward-3"}
    assert not any(place.broker for _, a in told.values() for place in a.reads)


def test_in_the_cloud_raw_records_are_read_from_the_edge() -> None:
    told = assignments([pipeline(CLOUD)], SITES)
    assert {node for node, _ in told.values()} == {"cloud"}
    assert {route.mode for _, a in told.values() for route in a.routes} == {LOG}
    afar = {name: a.reads[0].node for name, (_, a) in told.items() if a.reads[0].node}
    assert afar == {f"clean-{e}-{s}": f"edge-{e}" for e in (1, 2, 3) for s in (1, 2, 3)}


# ── detectors ────────────────────────────────────────────────────────────────────────────────────


def test_readings_are_told_apart_and_spoilt_ones_are_no_records() -> None:
    readings = list(devices.site_readings(100, 20, 1_767_225_600_000, seed=3))
    assert len(readings) == 6000
    assert [r.due_ms for r in readings] == sorted(r.due_ms for r in readings)
    assert len({(r.topic, r.text) for r in readings}) == 6000
    assert {r.topic for r in readings} == {"detectors/1", "detectors/2", "detectors/3"}
    counts = Counter(r.kind for r in readings)
    assert counts[devices.MALFORMED] == pytest.approx(120, rel=0.3)
    assert 0 < counts[devices.ERRONEOUS] < 60
    for reading in readings:
        assert is_record(reading.text) == (reading.kind != devices.MALFORMED)


def is_record(text: str) -> bool:
    try:
        return isinstance(json.loads(text)["time"], int)
    except ValueError:
        return False


def test_every_way_to_spoil_a_message_is_taken() -> None:
    rng = random.Random(1)
    texts = {devices.spoil_message(rng, '{"time":1,"site":"site-1"}')[:12] for _ in range(50)}
    assert '{"time":"yes' in texts
    assert '{"time":1,"s' in texts
    assert any(text[0] > "\x7f" for text in texts)


def test_sending_stops_when_asked() -> None:
    stop = threading.Event()
    stop.set()
    readings = devices.site_readings(1000, 1e6, 0, seed=0)
    sent = list(devices.due(_first(readings, 10), stop.wait))
    assert [len(batch) for batch in sent] == [10]
    later = devices.site_readings(1000, 1e6, 1 << 50, seed=0)
    assert list(devices.due(later, stop.wait)) == []


def _first(readings: Any, count: int) -> Any:
    return (reading for _, reading in zip(range(count), readings, strict=False))


class IdleWorld:
    """Sites that tell nothing."""

    sites = (*EDGES, "cloud")

    def broker(self, site: str) -> str:
        return f"memory://{site}"

    def status(self, site: str) -> dict[str, Any]:
        return {}


def test_ctrl_c_before_anything_is_sent_ends_at_once() -> None:
    asked = threading.Event()
    asked.set()
    told = _Run(IdleWorld(), FOG, 10.0, 300, Progress()).measure(asked)  # type: ignore[arg-type]
    assert (told.sent, told.complete, dict(told.jobs)) == (0, False, {})
    assert told.processed == {"local": 0, "global": 0}
    assert told.seconds < 10.0  # of the ten it would last


# ── fog and cloud compared ───────────────────────────────────────────────────────────────────────

FOG_RUN = Measured(
    variant=FOG,
    seconds=10.0,
    rate=900,
    sent=9000,
    malformed=180,
    erroneous=36,
    complete=True,
    jobs={},
    processed={"local": 8000, "global": 5000},
)
CLOUD_RUN = replace(FOG_RUN, variant=CLOUD, processed={"local": 6000, "global": 5500})


def test_the_differential_rate_is_that_of_the_paper() -> None:
    assert differential(FOG_RUN.processed, CLOUD_RUN.processed) == {"local": 25.0, "global": -10.0}
    assert differential({"local": 0, "global": 4}, {"local": 1, "global": 1}) == {"global": 75.0}


def test_the_second_variant_is_compared_with_the_first(tmp_path: Path) -> None:
    assert "D" not in compare_runs(FOG_RUN, tmp_path)
    assert compare_runs(FOG_RUN, tmp_path)["F"] == {"local": 8000, "global": 5000}
    keep(FOG_RUN, tmp_path)
    told = compare_runs(CLOUD_RUN, tmp_path)
    assert told["C"] == {"local": 6000, "global": 5500}
    assert told["D"] == {"local": 25.0, "global": -10.0}
    keep(CLOUD_RUN, tmp_path)
    assert compare_runs(FOG_RUN, tmp_path)["D"] == told["D"]


@pytest.mark.parametrize("other", [{"rate": 901}, {"seconds": 12.0}])
def test_runs_of_another_kind_are_not_compared(other: dict[str, Any], tmp_path: Path) -> None:
    keep(replace(FOG_RUN, **other), tmp_path)
    assert "D" not in compare_runs(CLOUD_RUN, tmp_path)


@pytest.mark.parametrize("kept", ["", "[]", "{}", "{", '{"seconds": 10.0}'])
def test_a_damaged_cache_is_no_cache(kept: str, tmp_path: Path) -> None:
    (tmp_path / "traffic-fog.json").write_text(kept, encoding="utf-8")
    assert "D" not in compare_runs(CLOUD_RUN, tmp_path)


@pytest.mark.parametrize("option", ["--cloud", "--compare"])
def test_other_demos_have_no_variants(fogline: Callable[..., Any], option: str) -> None:
    told = fogline("demo", "city", option)
    assert told.code == 2
    assert "fogline demo traffic" in told.err


# ── all of it ────────────────────────────────────────────────────────────────────────────────────


def test_everything_sent_comes_through_exactly_once(tmp_path: Path) -> None:
    (fog,) = run_demo(tmp_path)
    assert fog["variant"] == FOG
    assert "D" not in fog
    assert json.loads((tmp_path / "fogline" / "traffic-fog.json").read_text()) == fog


@pytest.mark.long
def test_both_variants_are_compared(tmp_path: Path) -> None:
    fog, cloud = run_demo(tmp_path, "--compare")
    assert (fog["variant"], cloud["variant"]) == (FOG, CLOUD)
    assert cloud["F"] == fog["F"]
    assert cloud["D"] == differential(cloud["F"], cloud["C"])


def run_demo(cache: Path, *more: str) -> list[dict[str, Any]]:
    """What the demo prints: for each variant a measurement, which is complete and consistent."""
    command = [sys.executable, "-c", "from fogline.cli.main import main; main()", "demo", "traffic"]
    done = subprocess.run(
        [*command, *more, "--seconds", "5", "--rate", "300", "--json"],
        capture_output=True,
        text=True,
        env=os.environ | {"XDG_CACHE_HOME": str(cache)},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    for told in found:
        assert told["complete"], done.stderr
        assert (told["seconds"], told["rate"]) == (5.0, 300)
        assert told["sent"] == 9 * round(5 * 300 / 9)
        check_counts(told)
    return found


def check_counts(told: dict[str, Any]) -> None:
    jobs, good = told["jobs"], told["sent"] - told["malformed"] - told["erroneous"]
    assert {name: job["site"] for name, job in jobs.items()} == {
        job.name: job.node for job in pipeline(told["variant"]).jobs
    }
    streams = [f"clean-{e}-{s}" for e in (1, 2, 3) for s in (1, 2, 3)]
    for name in streams:
        assert jobs[name]["in"] + jobs[name]["bad"] == told["sent"] // 9
    assert sum(jobs[name]["bad"] for name in streams) == told["malformed"] > 0
    assert sum(jobs[name]["in"] - jobs[name]["out"] for name in streams) == told["erroneous"]
    for edge in (1, 2, 3):
        cleaned = sum(jobs[f"clean-{edge}-{s}"]["out"] for s in (1, 2, 3))
        assert jobs[f"forward-{edge}"]["in"] == jobs[f"forward-{edge}"]["out"] == cleaned
        assert jobs[f"local-{edge}"]["in"] == cleaned
    assert jobs["global"]["in"] == jobs["local-cloud"]["in"] == good
    others = [job for name, job in jobs.items() if name not in streams]
    assert not any(job["bad"] for job in others)
    processed = told["F"] if told["variant"] == FOG else told["C"]
    assert 0 <= processed["global"] <= good
    assert 0 <= processed["local"] <= good
