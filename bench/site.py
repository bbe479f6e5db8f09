"""A live site measured: latency from MQTT to MQTT, pauses between batches in real time, intake, the
log, an idle site, an hour's load.

python bench/site.py [latency] [pauses] [intake] [log] [idle] [load]
"""

from __future__ import annotations

import json
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import psutil
from rich.console import Console

sys.path.insert(0, str(Path(__file__).parent))

import data
import mqtt_receive
import site_page
from site_latency import latency
from site_pauses import pauses
from site_world import SENSORS, STREAM, AgentProcess, end_on_request, site

from fogline.broker import Message, open_broker
from fogline.log import SiteLog

PARTS = ("latency", "pauses", "intake", "log", "idle", "load")
console = Console(highlight=False)


@click.command()
@click.argument("parts", nargs=-1, type=click.Choice(PARTS))
@click.option(
    "--rate", default=5000, show_default=True, help="Readings a second for latency, pauses."
)
@click.option("--out", type=click.Path(path_type=Path), help="Folder for results and the plot.")
@click.option("--write-docs", is_flag=True, help="Write docs/benchmarks-site.md anew.")
def main(parts: tuple[str, ...], rate: int, out: Path | None, write_docs: bool) -> None:
    end_on_request()
    found: dict[str, Any] = {}
    for part in parts or PARTS:
        run = {"intake": intake, "log": log, "idle": idle, "load": load}
        run |= {"latency": lambda: latency(rate), "pauses": lambda: pauses(rate)}
        found[part] = run[part]()
        console.print(part, json.dumps({k: v for k, v in found[part].items() if k != "samples"}))
    if out:
        out.mkdir(parents=True, exist_ok=True)
        (out / "site.json").write_text(json.dumps(found), encoding="utf-8")
    if write_docs:
        site_page.write(found)


# ── intake ───────────────────────────────────────────────────────────────────────────────────────


def intake() -> dict[str, Any]:
    """MQTT into the log beside a bare subscriber, messages a second."""
    found = mqtt_receive.measure()
    names = ("bare_paho", "subscription", "journal")
    return {k: dict(zip(names, map(round, rates), strict=True)) for k, rates in found.items()}


# ── the log beside a file ────────────────────────────────────────────────────────────────────────


def log(events: int = 2_000_000) -> dict[str, Any]:
    """Records a second through the source from a log: raw, and into a tumbling average."""
    from workloads import insights

    from fogline.common.settings import load
    from fogline.plan.analysis.build import plan_text
    from fogline.plan.lowering.program import lower
    from fogline.plan.rules import optimise
    from fogline.spark.compile.program import compile_program
    from fogline.spark.compile.scan import Input
    from fogline.spark.session.session import open_session

    made = data.make(events, 10_000, data.default_cache())
    spark = open_session(load(), "fogline-bench")
    program = lower(optimise(plan_text(insights("tumbling", "typed")))[0])
    with tempfile.TemporaryDirectory(prefix="fogline-bench-") as folder:
        store = _as_log(made, Path(folder))

        def raw() -> None:
            fields = '[{"name": "_raw", "type": "string"}]'
            reader = spark.read.format("fogline").option("format", "json").option("log", "true")
            frame = reader.option("fields", fields).option("splitBytes", 32 << 20).load(str(store))
            frame.write.format("noop").mode("overwrite").save()

        def tumbling(given: Input) -> Callable[[], None]:
            def run() -> None:
                inputs = {scan.stream.name: given for scan in program.scans}
                compiled = compile_program(spark, program, inputs, streaming=False)
                frame = compiled.frames["windows"].select("insight", "key", "value", "count")
                frame.write.format("noop").mode("overwrite").save()

            return run

        from_log, from_file = tumbling(Input(store, log=True)), tumbling(Input(made.events))
        runs = {"raw": raw, "from_log": from_log, "from_file": from_file}
        times: dict[str, list[float]] = {name: [] for name in runs}
        for number in range(12):
            for name, run in runs.items():
                begun = time.perf_counter()
                run()
                if number >= 5:
                    times[name].append(time.perf_counter() - begun)
    spark.stop()
    middle = {name: sorted(values)[len(values) // 2] for name, values in times.items()}
    return {
        "raw_per_second": round(events / middle["raw"]),
        "tumbling_from_log_per_second": round(events / middle["from_log"]),
        "tumbling_from_file_per_second": round(events / middle["from_file"]),
        "log_to_file": round(middle["from_file"] / middle["from_log"], 2),
    }


def _as_log(made: data.DataSet, folder: Path) -> Path:
    store = SiteLog(folder)
    with store.writer("events") as writer:
        for part in sorted(made.events.iterdir()):
            lines = part.read_bytes().splitlines()
            for start in range(0, len(lines), 2000):
                writer.append([("events", line) for line in lines[start : start + 2000]])
                writer.commit()
    return store.folder("events")


# ── an idle site ─────────────────────────────────────────────────────────────────────────────────


def idle(seconds: float = 60.0) -> dict[str, Any]:
    """Memory and processor time of a site with one job and nothing to do."""
    with site({"q": STREAM + "v = COMPUTE AVG(x, 10 s) BY sensor EVERY 10 s;"}) as agent:
        time.sleep(30)
        before = _processor(agent)
        time.sleep(seconds)
        used = _processor(agent) - before
        assert agent.process
        processes = psutil.Process(agent.process.pid).children(True)
        everyone = [psutil.Process(agent.process.pid), *processes]
        found = {f"{p.name()} {p.pid}": p.memory_full_info() for p in everyone}
    return {
        "memory_mib": round(sum(memory.pss for memory in found.values()) / 2**20),
        "resident_mib": round(sum(memory.rss for memory in found.values()) / 2**20),
        "processes_mib": {name: round(memory.pss / 2**20) for name, memory in found.items()},
        "core_percent": round(100 * used / seconds, 1),
    }


# ── an hour's readings ───────────────────────────────────────────────────────────────────────────


def load(readings: int = 3_600_000) -> dict[str, Any]:
    """An hour at 1,000 a second, as fast as it goes: rates, and whether memory stays as it is."""
    query = STREAM + "v = COMPUTE AVG(x, 60 s) BY sensor EVERY 10 s;"
    with site({"q": query}) as agent:
        begun = time.monotonic()
        thread = threading.Thread(target=_pour, args=(agent.mqtt_port, readings), daemon=True)
        thread.start()
        memory: list[tuple[float, int]] = []
        while not _is_through(agent, readings):
            memory.append((time.monotonic() - begun, _resident(agent)))
            console.print(f"{memory[-1][0]:6.0f} s  {memory[-1][1]} MiB  {_progress(agent)}")
            time.sleep(5)
        seconds = time.monotonic() - begun
    half = [m for at, m in memory if at > seconds / 2] or [0]
    return {
        "readings": readings,
        "seconds": round(seconds, 1),
        "per_second": round(readings / seconds),
        "memory_mib_middle": half[0],
        "memory_mib_most_after": max(half),
        "memory_mib_end": half[-1],
    }


def _pour(port: int, readings: int) -> None:
    """As fast as the broker confirms; mosquitto_pub gives up in the middle of so many lines."""
    start = 1_735_689_600_000
    with open_broker(f"mqtt://127.0.0.1:{port}") as broker:
        broker.connect()
        for first in range(0, readings, 1000):
            lines = [
                f'{{"sensor":"s{n % SENSORS}","x":{n % 97},"t":{start + n},"n":{n}}}'
                for n in range(first, first + 1000)
            ]
            delivery = broker.publish([Message("s/all", line.encode()) for line in lines], 600)
        delivery.wait(600)


def _is_through(agent: AgentProcess, readings: int) -> bool:
    queries = [q for j in agent.status()["engine"].get("jobs", []) for q in j["queries"]]
    return bool(queries) and min(q["records"] for q in queries) >= readings


def _progress(agent: AgentProcess) -> str:
    status = agent.status()
    taken = sum(s["messages"] for s in status["ingest"].get("subscriptions", []))
    queries = [q for j in status["engine"].get("jobs", []) for q in j["queries"]]
    done = min((q["records"] for q in queries), default=0)
    return f"{taken:,} taken in, {done:,} computed"


def _resident(agent: AgentProcess) -> int:
    assert agent.process
    top = psutil.Process(agent.process.pid)
    return round(sum(p.memory_info().rss for p in [top, *top.children(True)]) / 2**20)


def _processor(agent: AgentProcess) -> float:
    assert agent.process
    top = psutil.Process(agent.process.pid)
    times = [p.cpu_times() for p in [top, *top.children(True)]]
    return sum(t.user + t.system for t in times)


if __name__ == "__main__":
    main()
