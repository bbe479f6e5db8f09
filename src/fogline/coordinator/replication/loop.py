"""Decides copies again and again, and sends them to the nodes; goes on whatever happens.

A thread beside the control loop. Every round asks all nodes what they hold, decides, and writes the
decisions down in one transaction; between rounds they are sent until nodes hold what is desired.
Nothing but time is lost when it is killed.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from fogline.common.errors import FoglineError
from fogline.coordinator.nodes.replicas import (
    QUERY,
    STABILITY,
    Decision,
    desired_copies,
    refused_pairs,
    to_hold,
)
from fogline.coordinator.nodes.store_reports import Metrics, Report
from fogline.coordinator.pipelines.ports import ControlPort
from fogline.coordinator.reconcile.planner import Nodes, Planner
from fogline.coordinator.replication.config import ReplicaConfig
from fogline.coordinator.replication.decisions import Decisions, Settled
from fogline.coordinator.replication.fabric_jobs import FabricJob, fabric_job
from fogline.coordinator.replication.node_stores import (
    ASK_SECONDS,
    SPARE_SECONDS,
    NodeStores,
    StoreView,
)
from fogline.coordinator.replication.queries import by_queries
from fogline.coordinator.replication.sampling import find_sample_fractions
from fogline.coordinator.replication.stability import Situation, by_stability, without_copy
from fogline.coordinator.repository.store import Entry, Store
from fogline.model.nodes import NodeView
from fogline.model.sample_fractions import SampleFractions

TICK_SECONDS = 0.5

_say = logging.getLogger(__name__)


class ReplicaLoop:
    """`start`, then `stop`. It may be woken, and its properties read, from any thread."""

    def __init__(
        self,
        control: ControlPort,
        nodes: Nodes,
        planner: Planner,
        store: Store,
        config: ReplicaConfig | None = None,
        clock: Callable[[], float] = time.time,
        seed: int = 0,
    ) -> None:
        self.config = config or ReplicaConfig()
        self.decisions = Decisions(store)
        self.rounds = 0
        self.decided: float | None = None
        """When the last round was."""
        self.failures = 0
        self.problem = ""
        self.uncopied: Mapping[str, str] = {}
        """Nodes that have failed and whose values are not safe elsewhere, with the reason."""
        self.sample_fractions: SampleFractions = {}
        """What is sent to queries, where that is less than they ask for."""
        self.seen: Mapping[str, StoreView] = {}
        """As of the last turn."""
        self._nodes, self._planner, self._store, self._clock = nodes, planner, store, clock
        self._woken, self._ended = threading.Event(), threading.Event()
        self._homes: Mapping[str, str] = {}
        """Where the jobs run that `sample_fractions` names."""
        self._lines = NodeStores(control, self._to_hold, self._woken.set, seed, self._to_send)
        self._views: Mapping[str, NodeView] = {}
        self._asked: float | None = None
        self._next = 0.0
        self._thread = threading.Thread(target=self._run, name="replicas", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        self._woken.set()

    def stop(self) -> None:
        self._ended.set()
        self._woken.set()
        if self._thread.is_alive():
            self._thread.join()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    # ── the thread ───────────────────────────────────────────────────────────────────────────────

    def _run(self) -> None:
        while not self._ended.is_set():
            self._woken.clear()
            try:
                self.turn(time.monotonic())
            except Exception as error:
                self._note_failure(error)
            self._woken.wait(TICK_SECONDS)

    def turn(self, now: float) -> None:
        """One look at all nodes; a round of decisions when it is time for one."""
        self._views = self._nodes.views()
        self._lines.look(self._views)
        if self._asked is None and now >= self._next:
            self._asked = now
            self._lines.refresh()
        self._lines.turn(now, self._clock())
        if self._asked is not None:
            self._maybe_decide(now)
        self.seen = self._lines.views()

    def _maybe_decide(self, now: float) -> None:
        assert self._asked is not None
        here = self._lines.find_answered(self._asked)
        if here is None and now < self._asked + ASK_SECONDS + SPARE_SECONDS:
            return
        self._asked, self._next = None, now + self.config.seconds
        before = self.failures
        if self.config.enabled:
            self._decide(here or frozenset())
        if self.failures == before:
            self.problem = ""
        self.rounds += 1
        self._woken.set()

    def _note_failure(self, error: Exception) -> None:
        self.failures += 1
        text = str(error) if isinstance(error, FoglineError) else repr(error)
        if text != self.problem:
            _say.error("the loop of copies goes on after: %s", text, exc_info=error)
        self.problem = text

    # ── deciding ─────────────────────────────────────────────────────────────────────────────────

    def _decide(self, here: frozenset[str]) -> None:
        situation = self._situation(here)
        stable = by_stability(situation, self.config.limits)
        others = tuple(item for item in situation.decisions if item.reason != STABILITY)
        situation = replace(situation, decisions=(*others, *stable))
        self.uncopied = without_copy(situation, self.config.limits)
        jobs = self._fabric_jobs()
        queries = self._for_queries(situation, jobs)
        settled = self.decisions.settle((*stable, *queries))
        self._sample(replace(situation, decisions=self.decisions.all()), jobs)
        self.decided = self._clock()
        self._log(settled)

    def _situation(self, here: frozenset[str]) -> Situation:
        seen = self._lines.views()
        reports = {name: item.report for name, item in seen.items() if item.report is not None}
        links = {
            (name, other): link
            for name, view in self._views.items()
            for other, link in view.links.items()
        }
        return Situation(
            self._clock(),
            reports,
            here & reports.keys(),
            self._nodes.history.all(),
            self.decisions.all(),
            {pair: link.latency_ms for pair, link in links.items()},
            {pair: link.mbit_s for pair, link in links.items() if link.mbit_s is not None},
        )

    def _fabric_jobs(self) -> list[FabricJob]:
        plan = self._planner.plan(self._views)
        jobs = []
        for name, (_, job) in plan.jobs.items():
            node = plan.desired[name].node if name in plan.desired else job.node
            found = fabric_job(job, node)
            if found is not None:
                jobs.append(found)
        return jobs

    def _for_queries(self, situation: Situation, jobs: list[FabricJob]) -> tuple[Decision, ...]:
        """When it fails, what was decided before stays."""
        try:
            return by_queries(situation, jobs, self.config)
        except FoglineError as error:
            self._note_failure(error)
            return tuple(item for item in situation.decisions if item.reason == QUERY)

    def _sample(self, situation: Situation, jobs: list[FabricJob]) -> None:
        """The second step for where the queries read now; when it fails, all is sent."""
        try:
            self.sample_fractions = find_sample_fractions(
                situation, jobs, self.config, self.sample_fractions
            )
        except FoglineError as error:
            self.sample_fractions = {}
            self._note_failure(error)
        self._homes = {job.name: job.node for job in jobs}

    def _log(self, settled: Settled) -> None:
        at = self._clock()
        entries = [Entry(at, "copy", _about(item)) for item in settled.added]
        entries += [Entry(at, "no copy", _about(item)) for item in settled.dropped]
        self._store.log(entries)

    # ── sending ──────────────────────────────────────────────────────────────────────────────────

    def _to_send(self, node: str) -> SampleFractions:
        return {
            job: fractions
            for job, fractions in self.sample_fractions.items()
            if self._homes.get(job) == node
        }

    def _to_hold(self, holder: str, report: Report) -> dict[str, Metrics]:
        decisions = self.decisions.all()
        refused, forgotten = refused_pairs(decisions), self._nodes.history.forgotten_nodes()
        may_drop = {
            origin: (
                origin in forgotten
                or (origin, holder) in refused
                or (origin in self._views and self._views[origin].online)
            )
            for origin in report.copies
        }
        return to_hold(desired_copies(decisions).get(holder, {}), report, may_drop, holder)


def _about(item: Decision) -> dict[str, Any]:
    row = {"origin": item.origin, "holder": item.holder, "reason": item.reason}
    return row | ({"job": item.job} if item.job else {})
