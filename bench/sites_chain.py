"""Chains of trivial jobs over several sites: deployed, modified, deleted, as the sites tell it.

Nothing counts as done because REST has accepted it. A job runs when its site reports the version
that is wanted as running; one with another parameter when it has also begun another run; one that
is deleted is gone when no site reports it, and ended when no engine has it any more.
"""

from __future__ import annotations

import queue
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion
from sites_watch import fit, jobs_of, problems_in, reported, spread, tell, until

from fogline.demo.world import SiteSpec, World

DEPLOY, PARAMETER, SINK, DELETE, END = "deploy", "parameter", "sink", "delete", "end"
BESIDE = "beside"
OFTEN = 0.01
"""Seconds between looks: what is measured may take a tenth of a second."""
ONE_REPEATED = 7
"""How often one job is modified in a run: that is over so soon that it varies much."""
CHECKED = 25
"""The longest chain that is sent a record."""
CODE = "def run(records, *, step=0):\n    return records\n"
FILE = "pass_on.py"


@dataclass(frozen=True)
class Settings:
    sites: int = 4
    jobs: tuple[int, ...] = (1, 2, 5, 10, 25, 50, 100)
    changed: tuple[int, ...] = (1, 10, 50, 100)
    """How many jobs of the longest chain are modified; of the others all."""
    runs: int = 3
    memory: str = "1g"
    patience: float = 10.0
    """Seconds a job that nothing takes unless it is broken."""


@dataclass(frozen=True)
class Chain:
    """Each job passes on what the one before writes, at the next site."""

    name: str
    sites: tuple[str, ...]
    length: int
    steps: Mapping[int, int] = field(default_factory=dict)
    """The parameter of those jobs that have another one than 0."""
    copied: frozenset[int] = frozenset()
    """Jobs with a second sink."""

    def job(self, number: int) -> str:
        return f"{self.name}-{number:03}"

    @property
    def names(self) -> list[str]:
        return [self.job(number) for number in range(self.length)]

    def site(self, number: int) -> str:
        return self.sites[min(number, self.length - 1) % len(self.sites)]

    def topic(self, number: int) -> str:
        return f"{self.name}/{number}"

    def text(self) -> str:
        return "jobs:\n" + "".join(self._job(number) for number in range(self.length))

    def _job(self, number: int) -> str:
        sinks = [f"{{topic: {self.topic(number + 1)}, site: {self.site(number + 1)}}}"]
        sinks += [f"{self.name}/copy/{number}"] if number in self.copied else []
        return (
            f"- job_name: {self.job(number)}\n"
            f"  site: {self.site(number)}\n"
            f"  job_path: {FILE}\n"
            "  entry: pass_on:run\n"
            f"  source_topic: {self.topic(number)}\n"
            f"  sink_topics: [{', '.join(sinks)}]\n"
            f"  parameters: {{step: {self.steps.get(number, 0)}}}\n"
        )

    def with_parameters(self, count: int, value: int) -> Chain:
        return replace(self, steps={**self.steps, **dict.fromkeys(self.spread(count), value)})

    def with_sinks(self, count: int) -> Chain:
        """The second sink comes, or goes where there is one."""
        return replace(self, copied=self.copied ^ frozenset(self.spread(count)))

    def spread(self, count: int) -> list[int]:
        """So many jobs, evenly over the chain."""
        return [number * self.length // count for number in range(count)]


def measure(settings: Settings) -> dict[str, Any]:
    sites = tuple(f"site-{number + 1}" for number in range(settings.sites))
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="fogline-bench-") as folder:
        tell(f"chain: starting {len(sites)} sites")
        specs = [SiteSpec(name, memory=settings.memory) for name in sites]
        with World(Path(folder) / "world", specs) as world:
            trial = _Trial(world, settings)
            trial.put_code(Path(folder))
            trial.all_of_it(Chain("warm", sites, len(sites)), [])
            for run in range(settings.runs):
                for length in sorted(settings.jobs):
                    chain = Chain(f"c{run}-{length}", sites, length)
                    found = trial.all_of_it(chain, _counts(length, settings))
                    rows += [{"run": run, **row} for row in found]
    return summary(rows, settings)


def _counts(length: int, settings: Settings) -> list[int]:
    longest = length == max(settings.jobs)
    wanted = {*settings.changed, length} if longest else {length}
    return sorted(count for count in wanted if count <= length)


class _Trial:
    """One world, in which one chain after the other comes and goes."""

    def __init__(self, world: World, settings: Settings) -> None:
        self._world, self._client = world, world.client
        self._settings = settings

    def put_code(self, folder: Path) -> None:
        file = folder / FILE
        file.write_text(CODE, encoding="utf-8")
        self._client.put_package(FILE, file)

    def all_of_it(self, chain: Chain, counts: Sequence[int]) -> list[dict[str, Any]]:
        rows = [self._change(chain, DEPLOY, chain.length, {})]
        if chain.length <= CHECKED:
            rows.append(self._check(chain))
        repeated = [count for count in counts for _ in range(ONE_REPEATED if count == 1 else 1)]
        for value, count in enumerate(repeated, 1):
            chain = chain.with_parameters(count, value)
            rows.append(self._change(chain, PARAMETER, count, self._runs(chain)))
            chain = chain.with_sinks(count)
            rows.append(self._change(chain, SINK, count, self._runs(chain)))
            if count < chain.length:
                rows.append(self._deploy_beside(chain, count, value))
        return rows + self._delete(chain)

    def _deploy_beside(self, chain: Chain, count: int, number: int) -> dict[str, Any]:
        """A short chain, while the long one runs: what is compared with modifying that one."""
        other = Chain(f"{chain.name}-and-{number}", chain.sites, count)
        row = self._change(other, BESIDE, count, {})
        self._delete(other)
        return row | {"jobs": chain.length}

    def _runs(self, chain: Chain) -> dict[str, list[str]]:
        return {name: job["runs"] for name, job in jobs_of(self._client, chain.name).items()}

    def _change(
        self, chain: Chain, what: str, count: int, before: Mapping[str, list[str]]
    ) -> dict[str, Any]:
        """`before` are the runs until now: others for another parameter, else the same."""
        fresh = {chain.job(n) for n in chain.spread(count)} if what == PARAMETER else set()
        told: dict[str, float] = {}
        begun = time.perf_counter()
        self._client.put_pipeline(chain.name, chain.text(), "yaml")
        told["answered"] = time.perf_counter() - begun

        def done() -> bool:
            """The short answer is asked for again and again; the long one, which proves it, when
            that is right. It takes a while and is no part of what is measured."""
            now = self._client.progress()
            told["seconds"] = time.perf_counter() - begun
            if "waiting" not in now["states"]:
                told.setdefault("accepted", told["seconds"])
            if now["states"] != {"running": now["jobs"]}:
                return False
            jobs = jobs_of(self._client, chain.name)
            return len(jobs) == chain.length and all(
                job["state"] == "running" and (name not in fresh or _other(job, before[name]))
                for name, job in jobs.items()
            )

        self._until(done, chain, what)
        return self._row(chain, what, count, told) | self._disturbed(chain, before, fresh)

    def _disturbed(
        self, chain: Chain, before: Mapping[str, list[str]], fresh: set[str]
    ) -> dict[str, int]:
        """Jobs that began another run although what they compute has not changed."""
        after = self._runs(chain)
        return {"disturbed": sum(before[n] != after[n] for n in before.keys() - fresh)}

    def _delete(self, chain: Chain) -> list[dict[str, Any]]:
        begun = time.perf_counter()
        self._client.delete_pipeline(chain.name)
        told = {"answered": time.perf_counter() - begun}
        self._until(lambda: not reported(self._client, chain.names), chain, DELETE)
        gone = told | {"seconds": time.perf_counter() - begun}
        self._until(lambda: self._ended(chain), chain, END)
        ended = told | {"seconds": time.perf_counter() - begun}
        return [
            self._row(chain, DELETE, chain.length, gone),
            self._row(chain, END, chain.length, ended),
        ]

    def _ended(self, chain: Chain) -> bool:
        """No site's engine has any of its jobs; one that does not tell may have them."""
        engines = [self._world.status(site).get("engine", {}) for site in chain.sites]
        names = {job["name"] for engine in engines for job in engine.get("jobs", ())}
        return all("jobs" in engine for engine in engines) and not names & set(chain.names)

    def _check(self, chain: Chain) -> dict[str, Any]:
        """A record that is sent to the first topic arrives at the end."""
        first, last = chain.site(0), chain.site(chain.length)
        with arrivals(self._world.ports[last], chain.topic(chain.length)) as arrived:
            begun = time.perf_counter()
            with connected(self._world.ports[first]) as client:
                client.publish(chain.topic(0), b"through the chain", qos=1).wait_for_publish(10)
            payload = arrived.get(timeout=30 + self._settings.patience * chain.length)
        assert payload == b"through the chain"
        told = {"seconds": time.perf_counter() - begun}
        return self._row(chain, "record", chain.length, told)

    def _until(self, done: Any, chain: Chain, what: str) -> None:
        limit = 60 + self._settings.patience * chain.length
        try:
            until(done, limit, f"{what} of {chain.name}", OFTEN)
        except Exception:
            tell(f"chain: {problems_in(jobs_of(self._client, chain.name))}")
            raise

    def _row(
        self, chain: Chain, what: str, count: int, told: Mapping[str, float]
    ) -> dict[str, Any]:
        tell(f"chain of {chain.length}: {what} {count} in {told['seconds']:.2f} s")
        times = {name: round(value, 3) for name, value in told.items()}
        return {"what": what, "jobs": chain.length, "changed": count, **times}


def _other(job: Mapping[str, Any], before: Sequence[str]) -> bool:
    return bool(job["runs"]) and not set(job["runs"]) & set(before)


# ── MQTT ─────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def connected(port: int) -> Iterator[paho.Client]:
    client = paho.Client(CallbackAPIVersion.VERSION2)
    client.connect("127.0.0.1", port)
    client.loop_start()
    try:
        yield client
    finally:
        client.disconnect()
        client.loop_stop()


@contextmanager
def arrivals(port: int, topic: str) -> Iterator[queue.SimpleQueue[bytes]]:
    """What is published on a topic from now on."""
    arrived: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    ready: queue.SimpleQueue[bool] = queue.SimpleQueue()
    with connected(port) as client:
        client.on_message = lambda _client, _data, message: arrived.put(bytes(message.payload))
        client.on_subscribe = lambda *_: ready.put(True)
        client.subscribe(topic, qos=1)
        ready.get(timeout=10)
        yield arrived


# ── sums ─────────────────────────────────────────────────────────────────────────────────────────


def summary(rows: list[dict[str, Any]], settings: Settings) -> dict[str, Any]:
    kinds = (DEPLOY, PARAMETER, SINK, BESIDE, DELETE, END, "record")
    tables = {what: _table(rows, what) for what in kinds}
    deploys = {row["jobs"]: row["median"] for row in tables[DEPLOY]}
    beside = {row["changed"]: row["median"] for row in tables[BESIDE]}
    for row in (*tables[PARAMETER], *tables[SINK]):
        if row["changed"] in deploys:
            row["to_deploy"] = round(row["median"] / deploys[row["changed"]], 3)
        if row["changed"] in beside and row["changed"] < row["jobs"]:
            row["to_beside"] = round(row["median"] / beside[row["changed"]], 3)
    lines = {
        what: fit([(row["jobs"], row["median"]) for row in tables[what]])
        for what in (DEPLOY, DELETE)
    }
    disturbed = sum(row.get("disturbed", 0) for row in rows)
    return {
        "sites": settings.sites,
        "runs": settings.runs,
        "fit": lines,
        "disturbed": disturbed,
        **tables,
        "rows": rows,
    }


def _table(rows: list[dict[str, Any]], what: str) -> list[dict[str, Any]]:
    groups: dict[tuple[int, int], list[dict[str, Any]]] = {}
    for row in rows:
        if row["what"] == what:
            groups.setdefault((row["jobs"], row["changed"]), []).append(row)
    return [_group(jobs, changed, found) for (jobs, changed), found in sorted(groups.items())]


def _group(jobs: int, changed: int, found: list[dict[str, Any]]) -> dict[str, Any]:
    seconds = spread(row["seconds"] for row in found)
    more = {
        name: spread(row[name] for row in found)["median"]
        for name in ("answered", "accepted")
        if all(name in row for row in found)
    }
    each = {"seconds_a_job": round(seconds["median"] / changed, 3)}
    return {"jobs": jobs, "changed": changed, **seconds, **each, **more}
