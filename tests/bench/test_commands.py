"""The benchmark of whole commands: Fogline's is run, and results are compared as they should be."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

BENCH = Path(__file__).parents[2] / "bench"
_PEER = """
import json, sys
readings, results = sys.argv[1:]
sums = {}
for line in open(readings):
    reading = json.loads(line)
    sums.setdefault((reading["time"] // 5000, reading["sensor"]), []).append(reading["temperature"])
with open(results, "w") as file:
    for (window, sensor), values in sums.items():
        start, end = (f"2025-01-01T00:00:{5 * (window + n - 347137920):02}.000Z" for n in (0, 1))
        for name, value in (
            ("mean", sum(values) / len(values)), ("peak", max(values)), ("readings", len(values))
        ):
            print(json.dumps({"insight": name, "window": {"start": start, "end": end},
                "keys": {"sensor": sensor}, "value": value, "count": len(values)}), file=file)
"""


@pytest.fixture(scope="module")
def bench() -> Iterator[SimpleNamespace]:
    """Its modules, which import each other by their bare names."""
    before = set(sys.modules)
    sys.path.insert(0, str(BENCH))
    try:
        import command_lines
        import command_workloads
        import commands
        import commands_page
        import page
        import startup

        yield SimpleNamespace(
            lines=command_lines,
            workloads=command_workloads.WORKLOADS,
            commands=commands,
            startup=startup,
            section=commands_page,
            page=page,
        )
    finally:
        sys.path.remove(str(BENCH))
        for name in set(sys.modules) - before:
            file = getattr(sys.modules[name], "__file__", None)
            if file and Path(file).parent == BENCH:
                del sys.modules[name]


@pytest.mark.site
def test_the_smallest_form_runs_and_gives_what_another_program_computes(
    bench: SimpleNamespace, tmp_path: Path
) -> None:
    script = tmp_path / "peer.py"
    script.write_text(_PEER, encoding="utf-8")
    peer = bench.commands.CommandSubject(
        "peer", "Peer", lambda g: [sys.executable, str(script), str(g.readings), str(g.results)]
    )
    found = bench.commands.measure_commands(
        bench.workloads[1],
        (bench.commands.SUBJECTS[0], peer),
        1000,
        100,
        1,
        tmp_path / "cache",
        tmp_path,
        lambda _: None,
    )
    fogline, other = found["commands"]
    assert (fogline["problem"], other["problem"]) == (None, None)
    assert fogline["count"] == other["count"] == 3 * 788
    (cost,) = fogline["large"]
    assert cost["processor_seconds"] > 0
    assert cost["peak_bytes"] > 50 << 20


@pytest.mark.site
def test_every_phase_of_a_start_up_is_found(bench: SimpleNamespace, tmp_path: Path) -> None:
    found = bench.startup.measure_startup(1, tmp_path / "cache", lambda _: None)
    assert tuple(found["phases"]) == bench.startup.PHASES
    assert min(found["phases"].values()) >= 0
    assert found["inside"]["imports in Python"] > 0
    assert found["inside"]["code generation, all threads"] > 0


@pytest.mark.site
def test_a_command_that_fails_or_gives_other_results_counts_as_failed(
    bench: SimpleNamespace, tmp_path: Path
) -> None:
    def printing(text: str) -> Any:
        return lambda _: [sys.executable, "-c", f"print({text!r})"]

    right, wrong = _line(value=1.5), _line(value=1.6)
    subjects = [
        bench.commands.CommandSubject("right", "right", printing(right)),
        bench.commands.CommandSubject("wrong", "wrong", printing(wrong)),
        bench.commands.CommandSubject("none", "none", lambda _: [sys.executable, "-c", "exit(3)"]),
    ]
    found = bench.commands.measure_commands(
        bench.workloads[0], subjects, 20, 10, 2, tmp_path / "cache", tmp_path, lambda _: None
    )
    problems = [command["problem"] for command in found["commands"]]
    assert problems[0] is None
    assert "1.6 of 2, expected 1.5 of 2" in problems[1]
    assert problems[2].startswith("exit code 3")


def test_the_page_gets_the_figures_and_the_goals_that_were_missed(
    bench: SimpleNamespace, tmp_path: Path
) -> None:
    page = tmp_path / "benchmarks.md"
    page.write_text("# Benchmarks\n\n## How it is measured\n\nWarm.\n", encoding="utf-8")
    bench.page.write(_results(seconds=9.0, peak=1_600_000_000, to_bytewax=0.5), tmp_path)
    assert "| Fogline | 123 | 0.50 |" in page.read_text(encoding="utf-8")
    for goal in ("0.50 x Bytewax", "1.60 GB, goal 1.5 GB", "start-up 9.0 s, goal 7 s"):
        assert f"- filter: {goal}\n" in page.read_text(encoding="utf-8")

    bench.page.write(_results(seconds=5.0, peak=1_400_000_000, to_bytewax=2.0), tmp_path)
    text = page.read_text(encoding="utf-8")
    assert "| Fogline | 123 | 2.0 |" in text
    assert "Goals missed" not in text
    assert text.count("## The whole command\n") == 1
    assert text.startswith("# Benchmarks\n")
    assert text.endswith("## How it is measured\n\nWarm.\n")


@pytest.mark.parametrize(
    ("other", "difference"),
    [
        (['{"value": 1.5000000000000002}', '{"sensor": "b"}'], None),
        (['{"sensor": "b"}', "{}"], None),
        (['{"value": 1.500001}', '{"sensor": "b"}'], "1.500001 of 2, expected 1.5 of 2"),
        (['{"count": 3}', '{"sensor": "b"}'], "1.5 of 3, expected 1.5 of 2"),
        (["{}"], "b: nothing, expected 1.5 of 2"),
        (["{}", '{"sensor": "b"}', '{"sensor": "c"}'], "c: 1.5 of 2, expected nothing"),
        (["{}", '{"sensor": "b"}', "{}"], "twice: mean"),
        (["{}", '{"sensor": "b"}', '{"value": null}'], "not a result"),
        ([], "not a result"),
    ],
)
def test_results_are_compared_as_a_set(
    bench: SimpleNamespace, tmp_path: Path, other: list[str], difference: str | None
) -> None:
    expected, actual = tmp_path / "expected", tmp_path / "actual"
    expected.write_text(_line() + "\n" + _line(sensor="b") + "\n", encoding="utf-8")
    actual.mkdir()
    for number, changes in enumerate(other):
        text = _line(**json.loads(changes))
        (actual / f"part-{number}").write_text(text + "\n", encoding="utf-8")
    (actual / "_SUCCESS").touch()
    if difference is None:
        assert bench.lines.check_results(actual, expected) == 2
    else:
        with pytest.raises(bench.lines.ResultError, match=re.escape(difference)):
            bench.lines.check_results(actual, expected)


@pytest.mark.parametrize("text", ["{}", "nonsense", '{"insight": "mean"}'])
def test_a_line_that_is_no_result_is_reported(
    bench: SimpleNamespace, tmp_path: Path, text: str
) -> None:
    path = tmp_path / "results"
    path.write_text(f"{_line()}\n{text}\n", encoding="utf-8")
    with pytest.raises(bench.lines.ResultError, match="not a result"):
        bench.lines.check_results(path, path)


def _results(seconds: float, peak: int, to_bytewax: float) -> dict[str, Any]:
    cost = {"seconds": seconds, "processor_seconds": 1.0, "peak_bytes": peak}
    command = {
        "label": "Fogline",
        "readings": 2000,
        "small": [cost],
        "large": [cost],
        "count": 1980,
        "problem": None,
        "readings_per_second": 123_000.0,
        "to_bytewax": to_bytewax,
        "to_pyspark": None,
        "to_flink": None,
    }
    workload = {
        "name": "filter",
        "title": "Parse and filter",
        "readings": 2000,
        "small_readings": 20,
        "bytes": 274_000,
        "commands": [command],
    }
    return {
        "machine": {"cores": "2", "Fogline": "0.1.0"},
        "load_at_start": 0.1,
        "repeats": 1,
        "workloads": [],
        "checking": None,
        "commands": [workload],
        "startup": None,
    }


def _line(sensor: str = "a", value: float | None = 1.5, count: int = 2) -> str:
    return json.dumps(
        {
            "insight": "mean",
            "window": {"start": "2025-01-01T00:00:00.000Z", "end": "2025-01-01T00:00:05.000Z"},
            "keys": {"sensor": sensor},
            "value": value,
            "count": count,
        }
    )
