"""docs/benchmarks-site.md and its plot, made from what bench/site.py measured and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
from machine import describe

mpl.use("Agg")

import matplotlib.pyplot as plt

DOCS = Path(__file__).parents[1] / "docs"
_HEAD = """\
# Benchmarks of a live site

<!-- Made by `bench/site.py --write-docs`; manual edits are overwritten. -->

What `make bench-site` measures, all on one machine: broker, ingest, Spark, publishing, and the
clients that send and receive.
"""


def write(found: dict[str, Any], folder: Path = DOCS) -> None:
    parts = [_HEAD, *(_PARTS[name](value) for name, value in found.items()), _machine()]
    (folder / "benchmarks-site.md").write_text("\n".join(parts), encoding="utf-8")
    if "latency" in found:
        plot(found["latency"]["samples"], folder / "latency.png")


def _latency(found: dict[str, Any]) -> str:
    rows = [
        f"| {mode} | {found[mode]['n']:,} | {found[mode]['p50_ms']} | {found[mode]['p95_ms']} "
        f"| {found[mode]['p99_ms']} |"
        for mode in ("real time", "micro-batch")
    ]
    return f"""\
## Latency, MQTT to MQTT

5,000 readings a second from 788 sensors, a windowed average by sensor; milliseconds from
publishing a reading to receiving the result that includes it. In micro-batches the time counts from
the end of the window. Measured after Java has compiled the code, which in real time takes five
minutes: for {found["seconds"]["real time"]:g} s in real time, with the pauses in which Spark plans
the next batch, and for {found["seconds"]["micro-batch"]:g} s in
micro-batches. The subscriber is mosquitto_sub. Goal: p50 under 30 ms, p99 under 500 ms, ten times
lower p50 than micro-batch (measured: {found["times_lower_p50"]:g} times).

| mode | results | p50 | p95 | p99 |
|---|---:|---:|---:|---:|
{chr(10).join(rows)}

![Share of results by latency](latency.png)
"""


def _pauses(found: dict[str, Any]) -> str:
    rows = [
        f"| {number} | {b['after_s']:g} | {b['worst_ms']:,} | {b['planner_ms']} "
        f"| {b['others_percent']} % |"
        for number, b in enumerate(found["boundaries"], 1)
    ]
    later, elsewhere = found["later_half"], found["elsewhere"]
    return f"""\
## Pauses between batches in real time

The same query, {found["rate"]:,} readings a second from the start of the site on, batches of up to
{found["live_seconds"]} s, so that there are many: how long the slowest reading around each end of a
batch took, what the thread that plans the next one needed of a processor, and how much of the
machine others than the site took meanwhile. Goal: half a second. Median of the later half:
{later["worst_ms"]:g} ms, planning {later["planner_ms"]:g} ms. Elsewhere: p50
{elsewhere["p50_ms"]}, p95 {elsewhere["p95_ms"]}, p99 {elsewhere["p99_ms"]} ms.
[Why](design/real-time.md#between-two-batches).

| batch | ends after (s) | slowest (ms) | planning (ms of a processor) | others |
|---:|---:|---:|---:|---:|
{chr(10).join(rows)}
"""


def _intake(found: dict[str, Any]) -> str:
    rows = [
        f"| {kind} | {r['bare_paho']:,} | {r['subscription']:,} "
        f"({r['subscription'] / r['bare_paho']:.1f}x) "
        f"| {r['journal']:,} ({r['journal'] / r['bare_paho']:.1f}x) |"
        for kind, r in found.items()
    ]
    return f"""\
## MQTT into the log

Messages of 150 bytes a second at QoS 1. Bare paho counts them and does nothing else; a subscription
is how a site reads a broker that is not its own; the journal is how it reads its own, on disk
included. Live: while a client publishes, whose speed then counts too. Goal: 0.6 of bare paho.

| | bare paho | subscription | journal |
|---|---:|---:|---:|
{chr(10).join(rows)}
"""


def _log(found: dict[str, Any]) -> str:
    return f"""\
## From the log into Spark

2 million readings, in batch. Goal: a million records a second raw, and 0.9 of a file.

| | records a second |
|---|---:|
| raw | {found["raw_per_second"]:,} |
| tumbling average, from the log | {found["tumbling_from_log_per_second"]:,} |
| tumbling average, from a file | {found["tumbling_from_file_per_second"]:,} |

The log reaches {found["log_to_file"]} of the file.
"""


def _idle(found: dict[str, Any]) -> str:
    return f"""\
## An idle site

One job, no input: {found["memory_mib"]} MiB of memory in all processes, what several of them
share counted once ({found["resident_mib"]} MiB when it is counted for each),
{found["core_percent"]} % of a core. Goal: 700 MB and 5 %.
"""


def _load(found: dict[str, Any]) -> str:
    return f"""\
## An hour's readings

{found["readings"]:,} readings (an hour at 1,000 a second) as fast as they went, over MQTT at QoS 1
into windows of a minute every 10 s: {found["seconds"]:.0f} s, {found["per_second"]:,} a second.
Memory of all processes: {found["memory_mib_middle"]} MiB in the middle, at most
{found["memory_mib_most_after"]} MiB after that, {found["memory_mib_end"]} MiB at the end.
"""


_PARTS = {
    "latency": _latency,
    "pauses": _pauses,
    "intake": _intake,
    "log": _log,
    "idle": _idle,
    "load": _load,
}


def _machine() -> str:
    rows = "\n".join(f"| {key} | {value} |" for key, value in describe(False).items())
    return f"## Machine\n\n| | |\n|---|---|\n{rows}\n"


def plot(samples: dict[str, list[float]], path: Path) -> None:
    figure, panel = plt.subplots(figsize=(7, 3.2), layout="constrained")
    for (mode, values), colour in zip(samples.items(), ("#0b7a75", "#d9822b"), strict=True):
        ordered = sorted(values)
        share = [i / len(ordered) for i in range(len(ordered))]
        panel.plot(ordered, share, label=mode, color=colour)
    panel.set_xscale("log")
    panel.set_xlabel("milliseconds from publish to receive")
    panel.set_ylabel("share of results")
    panel.grid(alpha=0.3)
    panel.legend()
    figure.savefig(path, dpi=110, metadata={"Software": None})
    plt.close(figure)
