"""docs/benchmarks-sites.md and its plots, made from what bench/sites.py measured."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import sites_plots
from machine import describe

DOCS = Path(__file__).parents[1] / "docs"
SECONDS_A_JOB = 1.0
TOLERANCE = 1.1
"""So much longer a job may take in the longest chain and still count as linear."""

_HEAD = """\
# Benchmarks of many sites

<!-- Made by `bench/sites.py --write-docs`; manual edits are overwritten. -->

What `make bench-sites` measures, all on one machine: the coordinator, the sites with a Spark and a
Mosquitto each, and the clients. Times count from the request until the sites or gateways themselves
report that it is done; figures are medians.
"""


def write(found: Mapping[str, Any], folder: Path = DOCS) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    parts = [_HEAD, *(_PARTS[name](found[name]) for name in _PARTS if name in found), _machine()]
    (folder / "benchmarks-sites.md").write_text("\n".join(parts), encoding="utf-8")
    if "chain" in found:
        sites_plots.chain(found["chain"], folder / "sites-chain.png")
    if "gateways" in found:
        sites_plots.gateways(found["gateways"], folder / "sites-gateways.png")


def table(headers: Sequence[str], rows: Sequence[Sequence[object]], cell: str = "---:") -> str:
    """Everything but the first column is a number, unless `cell` says otherwise."""
    line = "|---|" + f"{cell}|" * (len(headers) - 1)
    cells = ["| " + " | ".join(map(str, row)) + " |" for row in (headers, *rows)]
    return "\n".join([cells[0], line, *cells[1:]])


# ── chains ───────────────────────────────────────────────────────────────────────────────────────


def _chain(found: Mapping[str, Any]) -> str:
    return f"""\
## Chains of jobs

Chains of trivial jobs (PySpark that passes records on), one after the other over {found["sites"]}
sites, {_times(found["runs"])}. The sites are warm: one short chain was deployed and deleted before.

{table(("goal", "measured", ""), _chain_goals(found), "---")}

SpecK (Flink and Mosquitto, six instances in three clusters, 18.6 ms apart) publishes these times as
a plot without numbers, and says of them: linear, and modifying many jobs is faster than deploying
them.

![Seconds by number of jobs](sites-chain.png)

### Deploying and deleting

Accepted: all sites have acknowledged the jobs, and keep records for them. Running: Spark has
started them too. Deleted: no site reports them. Ended: no engine has them.

{table(_DEPLOY_HEADERS, _deploy_rows(found))}

{_lines_of(found["fit"])}

{_records(found)}

### Modifying

Another parameter restarts the job's query where it stopped; another sink must leave it running.
*x deploy* is the ratio to the time of deploying a chain of as many jobs on sites that run nothing
else, *x beside* to the time while the long chain runs. Queries that restarted although their job
has only another sink, or no change at all: {found["disturbed"]}.

{table(_MODIFY_HEADERS, _modify_rows(found))}
"""


_DEPLOY_HEADERS = (
    *("jobs", "REST answers", "accepted", "running", "lowest to highest", "a job"),
    *("deleted", "ended"),
)
_MODIFY_HEADERS = (
    *("of jobs", "modified", "parameter", "x deploy", "x beside"),
    *("sink", "x deploy", "x beside"),
)


def _times(runs: int) -> str:
    return "measured once" if runs == 1 else f"measured {runs} times"


def _chain_goals(found: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    longest = found["deploy"][-1]
    each = longest["seconds_a_job"]
    rows = [
        (
            f"at most {SECONDS_A_JOB:g} s a job",
            f"{each:.2f} s a job in the chain of {longest['jobs']}",
            _met(each <= SECONDS_A_JOB),
        )
    ]
    if len(found["deploy"]) > 1:
        rows += [_linear_goal(found[kind], told) for kind, told in _LINEAR.items()]
    return rows + [
        _modify_goal(found, kind, ratio)
        for kind in ("parameter", "sink")
        for ratio in _DEPLOYED
        if _ratios(found, kind, ratio)
    ]


_LINEAR = {
    "deploy": "deploying",
    "parameter": "another parameter for all",
    "sink": "another sink for all",
    "end": "deleting, until no engine has them",
}


def _linear_goal(rows: Sequence[Mapping[str, Any]], told: str) -> tuple[str, str, str]:
    """By the two longest chains."""
    before, longest = [row for row in rows if row["changed"] == row["jobs"]][-2:]
    text = f"{longest['seconds_a_job']:.3f} s a job in the chain of {longest['jobs']}, "
    text += f"{before['seconds_a_job']:.3f} s in that of {before['jobs']}"
    linear = longest["seconds_a_job"] <= before["seconds_a_job"] * TOLERANCE
    return f"{told}: linear or better", text, _met(linear)


_DEPLOYED = {"to_beside": "n beside them", "to_deploy": "n on sites that run nothing else"}


def _modify_goal(found: Mapping[str, Any], kind: str, ratio: str) -> tuple[str, str, str]:
    ratios = _ratios(found, kind, ratio)
    text = ", ".join(f"{share:.2f} of it for {count}" for count, share in ratios.items())
    jobs = found["deploy"][-1]["jobs"]
    name = f"another {kind} for n of {jobs} faster than deploying {_DEPLOYED[ratio]}"
    return name, text, _met(all(share < 1 for share in ratios.values()))


def _ratios(found: Mapping[str, Any], kind: str, ratio: str) -> dict[int, float]:
    longest = found["deploy"][-1]["jobs"]
    rows = [row for row in found[kind] if row["jobs"] == longest and ratio in row]
    return {row["changed"]: row[ratio] for row in rows}


def _deploy_rows(found: Mapping[str, Any]) -> list[tuple[object, ...]]:
    deleted = {row["jobs"]: row for row in found["delete"]}
    ended = {row["jobs"]: row for row in found["end"]}
    return [
        (
            row["jobs"],
            *(f"{row[name]:.2f}" for name in ("answered", "accepted", "median")),
            f"{row['low']:.2f} to {row['high']:.2f}",
            f"{row['seconds_a_job']:.2f}",
            f"{deleted[row['jobs']]['median']:.2f}",
            f"{ended[row['jobs']]['median']:.2f}",
        )
        for row in found["deploy"]
    ]


def _modify_rows(found: Mapping[str, Any]) -> list[tuple[object, ...]]:
    return [
        (first["jobs"], first["changed"], *_modified(first), *_modified(second))
        for first, second in zip(found["parameter"], found["sink"], strict=True)
    ]


def _modified(row: Mapping[str, Any]) -> tuple[str, ...]:
    ratios = (f"{row[name]:.2f}" if name in row else "" for name in ("to_deploy", "to_beside"))
    return f"{row['median']:.2f}", *ratios


def _lines_of(fits: Mapping[str, Mapping[str, float]]) -> str:
    names = {"deploy": "Deploying", "delete": "Deleting"}
    told = [
        f"{names[what]}: {line['seconds_at_0']:.2f} s and {line['seconds_each']:.3f} s a job"
        + (f" (R² {line['r_squared']:.3f})" if "r_squared" in line else "")
        for what, line in fits.items()
        if line
    ]
    return _wrapped(f"Straight lines through them. {'. '.join(told)}.") if told else ""


def _records(found: Mapping[str, Any]) -> str:
    told = [f"{row['jobs']}: {row['median']:.1f} s" for row in found["record"]]
    text = "A record sent to the first topic came out at the end of every chain that was tried"
    return _wrapped(f"{text} (jobs: seconds on its way): {', '.join(told)}.") if told else ""


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 100)


def _met(met: bool) -> str:
    return "met" if met else "**not met**"


# ── gateways ─────────────────────────────────────────────────────────────────────────────────────


def _gateways(found: Mapping[str, Any]) -> str:
    here, away = found["here"], found["away"]
    goals = [*_gateway_goals(here, "here"), *_gateway_goals(away, "away")]
    most = here["install"][-1]["gateways"]
    return f"""\
## Gateways

One operator job on each of n gateways, its publishing rate changed, and the job removed
again, {_times(found["runs"])} after one round to warm up. The job is one operation of a deployment
plan that is placed on these gateways. All {most} of them are there from the beginning, and every
round goes through all numbers: a machine that is slow for a while is slow for each of them. One
coordinator, one broker; after every installation readings of a device are sent through one of the
gateways. `GET /progress?settle=10` answers when the desired state is reached.

Real gateways are separate machines; here they share two processes, and two cores with the
coordinator. *Here* means without network latency: the time in which two cores do the work of all.
*Away* means with a simulated network between gateways and coordinator, which takes
{found["round_trip_ms"]:g} ms for a round trip, as between SpecK's clusters. Asking one gateway
after the other would cost this once for each.

{table(("goal", "measured", ""), goals, "---")}

A thesis on IoT deployment over Kura, which asks gateways one after the other, gives 10.47 s for
installing on 50 gateways, each a machine of its own; its other figures are plots without numbers.

![Seconds by number of gateways](sites-gateways.png)

Here:

{table(_GATEWAY_HEADERS, _gateway_rows(here))}

Away:

{table(_GATEWAY_HEADERS, _gateway_rows(away))}
"""


def _gateway_goals(found: Mapping[str, Any], where: str) -> list[tuple[str, str, str]]:
    numbers = [row["gateways"] for row in found["install"]]
    goal = f"{numbers[-1]} gateways take less than twice the time of {numbers[0]}"
    return [
        (f"{what}, {where}: {goal}", f"{ratio:.2f} times", _met(ratio < 2))
        for what, ratio in found["most_to_fewest"].items()
    ]


_GATEWAY_HEADERS = (
    *("gateways", "install, s", "lowest to highest", "update, s", "lowest to highest"),
    *("uninstall, s", "lowest to highest"),
)


def _gateway_rows(found: Mapping[str, Any]) -> list[tuple[object, ...]]:
    tables = [found[what] for what in ("install", "update", "uninstall")]
    return [
        (rows[0]["gateways"], *(cell for row in rows for cell in _cells(row)))
        for rows in zip(*tables, strict=True)
    ]


def _cells(row: Mapping[str, Any]) -> tuple[str, str]:
    return f"{row['median']:.3f}", f"{row['low']:.3f} to {row['high']:.3f}"


# ── the store ────────────────────────────────────────────────────────────────────────────────────


def _store(found: Mapping[str, Any]) -> str:
    diffs = found["diff_seconds"]
    jobs = found["jobs"]
    rows = [
        ("store on disk", f"{found['store_bytes'] / 1000:,.0f} KB"),
        ("of that with no pipeline in it", f"{found['empty_store_bytes'] / 1000:,.0f} KB"),
        ("text of the pipeline", f"{found['text_bytes'] / 1000:,.0f} KB"),
        ("putting it, until REST answers", f"{found['put_seconds']:.2f} s"),
        ("diff with itself", f"{diffs['same']['median']:.2f} s"),
        (f"diff with {found['changed']} jobs changed", f"{diffs['changed']['median']:.2f} s"),
        ("until all are accepted", f"{found['deploy_seconds']:.1f} s"),
        ("until all are deleted", f"{found['delete_seconds']:.1f} s"),
    ]
    return f"""\
## The store

A chain of {jobs:,} jobs. Its sites are simulated and accept everything at once, so the last two
figures are the coordinator's and the control broker's own. SpecK's store takes 754 KB for 1,000
jobs.

{table((f"{jobs:,} jobs", ""), rows)}
"""


_PARTS = {"chain": _chain, "gateways": _gateways, "store": _store}


def _machine() -> str:
    rows = list(describe(False).items())
    return "## Machine\n\n" + table(("", ""), rows, "---") + "\n"
