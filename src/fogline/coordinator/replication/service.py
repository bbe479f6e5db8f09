"""Everything that can be asked about copies; REST calls it. Safe for many threads."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from fogline.common.errors import START_SITE, ConflictError, DataError, NotFoundError
from fogline.coordinator.nodes.replicas import MANUAL, REFUSED, Decision, desired_copies
from fogline.coordinator.nodes.store_reports import Metrics, read_metrics
from fogline.coordinator.reconcile.planner import Nodes
from fogline.coordinator.replication.loop import ReplicaLoop
from fogline.coordinator.replication.stability import Situation
from fogline.coordinator.replication.status import copy_statuses, store_statuses
from fogline.coordinator.repository.store import Entry, Store
from fogline.model.nodes import SITE


class ReplicaService:
    def __init__(
        self,
        loop: ReplicaLoop,
        nodes: Nodes,
        store: Store,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._loop, self._nodes, self._store, self._clock = loop, nodes, store, clock

    def status(self) -> dict[str, Any]:
        loop, now = self._loop, self._clock()
        seen, history = loop.seen, self._nodes.history
        counts = {name: history.counts(name) for name in seen}
        return {
            "enabled": loop.config.enabled,
            "seconds": loop.config.seconds,
            "capacity": loop.config.capacity,
            "rounds": loop.rounds,
            "decided": loop.decided,
            "failures": loop.failures,
            "problem": loop.problem,
            "nodes": store_statuses(seen, history.all(), counts, loop.uncopied, now),
            "copies": copy_statuses(loop.decisions.all(), seen, now),
            "shares": loop.sample_fractions,
        }

    def add_copy(self, origin: str, holder: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Adds a manual copy; what is desired there already for other reasons stays."""
        unknown = sorted(set(body) - {"metrics"})
        if unknown:
            raise DataError(f"unknown: {', '.join(unknown)[:200]}", "metrics is known")
        metrics = read_metrics(body.get("metrics"))
        if metrics == ():
            raise DataError("a copy of no metrics", "name some, or null for all")
        self._check_pair(origin, holder)
        self._check_room(origin, holder, metrics)
        self._loop.decisions.add_manual(origin, holder, metrics, self._clock())
        self._record_change("copy", origin, holder)
        return self._one(origin, holder)

    def refuse(self, origin: str, holder: str) -> dict[str, Any]:
        """Removes a manual copy; one that was decided is refused until it is added manually."""
        self._loop.decisions.refuse(origin, holder, self._clock())
        self._record_change("no copy", origin, holder)
        pairs = {item.pair for item in self._loop.decisions.all() if item.reason == REFUSED}
        answer = {"origin": origin, "holder": holder}
        return answer | {"removed": True, "refused": (origin, holder) in pairs}

    def forgot(self) -> None:
        """A node was forgotten, in the store too."""
        self._loop.decisions.reload()
        self._loop.wake()

    def _check_pair(self, origin: str, holder: str) -> None:
        views = self._nodes.views()
        for name in (origin, holder):
            if name not in views:
                hint = f"fogline sites lists them; {START_SITE}"
                raise NotFoundError(f"there is no node {name!r}", hint)
            if views[name].node.kind != SITE:
                raise ConflictError(f"{name!r} is a gateway: it stores no values")
        if origin == holder:
            raise ConflictError(f"{origin!r} holds its own values already")

    def _check_room(self, origin: str, holder: str, metrics: Metrics) -> None:
        """As far as sizes are known."""
        seen = self._loop.seen
        reports = {name: item.report for name, item in seen.items() if item.report is not None}
        if not {origin, holder} <= reports.keys():
            return
        others = tuple(i for i in self._loop.decisions.all() if i.key != _key(origin, holder))
        manual = Decision(origin, holder, MANUAL, metrics=metrics)
        both = desired_copies((*others, manual))[holder][origin]
        situation = Situation(
            self._clock(), reports, decisions=tuple(i for i in others if i.pair != manual.pair)
        )
        size = situation.copy_size(origin, holder, both)
        room = situation.room(self._loop.config.capacity)[holder]
        if size > room:
            text = f"{holder!r} has room for {max(room, 0):,} bytes of copies, this takes {size:,}"
            raise ConflictError(text, "capacity_megabytes under replicas: is the limit")

    def _one(self, origin: str, holder: str) -> dict[str, Any]:
        found = copy_statuses(self._loop.decisions.all(), self._loop.seen, self._clock())
        return next(i for i in found if (i["origin"], i["holder"]) == (origin, holder))

    def _record_change(self, kind: str, origin: str, holder: str) -> None:
        self._loop.wake()
        body = {"origin": origin, "holder": holder, "reason": MANUAL}
        self._store.log([Entry(self._clock(), kind, body)])


def _key(origin: str, holder: str) -> tuple[str, str, str, str]:
    return origin, holder, MANUAL, ""
