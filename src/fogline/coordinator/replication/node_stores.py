"""Talking with the nodes' stores: each is asked what it holds, and sent what to hold, until both
are the same. Nobody waits: what is asked goes on while others are asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any

from fogline.common.backoff import wait_seconds
from fogline.common.errors import DataError
from fogline.coordinator.nodes.replicas import CopiesByNode, holds
from fogline.coordinator.nodes.store_reports import Metrics, Report, read_report
from fogline.coordinator.pipelines.ports import ControlPort
from fogline.model.nodes import SITE, NodeView
from fogline.model.sample_fractions import SampleFractions

STORE, COPIES = "store", "copies"
ASK_SECONDS = 10.0
SPARE_SECONDS = 2.0
"""A request whose answer is not there so long after its deadline is lost, whatever became of it."""
LONGEST_PROBLEM = 500


@dataclass(frozen=True, slots=True)
class StoreView:
    """A node's store as it is known now; for those who show it."""

    online: bool
    report: Report | None = None
    heard: float = 0.0
    """When the report came, seconds since the epoch."""
    desired: CopiesByNode | None = None
    """What it shall hold, if that is known."""
    sample_fractions: SampleFractions = field(default_factory=dict)
    """What shall be sent to its queries, where that is less than they ask for."""
    problem: str = ""
    bad: int = 0
    """Answers that could not be read."""

    @property
    def settled(self) -> bool:
        if self.report is None or self.desired is None:
            return False
        return (
            holds(self.report, self.desired)
            and self.report.sample_fractions == self.sample_fractions
        )


@dataclass(slots=True)
class _Line:
    seen: StoreView
    instance: str
    fresh: bool = False
    """Whether the report is newer than everything the node was sent."""
    asked: Future[dict[str, Any]] | None = None
    op: str = ""
    expires: float = 0.0
    attempts: int = 0
    due: float = 0.0
    ended: float = float("-inf")
    """When an answer last came, or failed to come."""


class NodeStores:
    """One for each site. Times are of `time.monotonic`; all calls come from one thread.

    `to_hold` gives what a node shall hold, from its name and its report, `to_send` what shall be
    sent to the queries that run there.
    """

    def __init__(
        self,
        control: ControlPort,
        to_hold: Callable[[str, Report], dict[str, Metrics]],
        wake: Callable[[], None],
        seed: int = 0,
        to_send: Callable[[str], SampleFractions] = lambda _: {},
    ) -> None:
        self._control, self._to_hold, self._wake, self._seed = control, to_hold, wake, seed
        self._to_send = to_send
        self._lines: dict[str, _Line] = {}

    def views(self) -> dict[str, StoreView]:
        return {name: line.seen for name, line in self._lines.items()}

    def look(self, views: Mapping[str, NodeView]) -> None:
        """Nodes that are new or back are asked at once; those that nobody knows are dropped."""
        sites = {name: view for name, view in views.items() if view.node.kind == SITE}
        for name in self._lines.keys() - sites.keys():
            del self._lines[name]
        for name, view in sites.items():
            line = self._lines.get(name)
            if line is None:
                self._lines[name] = _Line(StoreView(view.online), view.instance)
            elif view.online and (not line.seen.online or view.instance != line.instance):
                seen = replace(line.seen, online=True)
                self._lines[name] = _Line(seen, view.instance)
            elif view.online != line.seen.online:
                line.seen = replace(line.seen, online=view.online)

    def refresh(self) -> None:
        """Everybody is asked anew."""
        for line in self._lines.values():
            line.fresh, line.due = False, 0.0

    def find_answered(self, since: float) -> frozenset[str] | None:
        """Who has reported what it holds since then; None while somebody may still do."""
        here = {name: line for name, line in self._lines.items() if line.seen.online}
        if any(line.ended < since for line in here.values()):
            return None
        return frozenset(name for name, line in here.items() if line.fresh)

    def turn(self, now: float, at: float) -> None:
        """Takes answers in, and sends what is to be sent. `at` is the time of day."""
        for name, line in self._lines.items():
            self._take(line, now, at, name)
            if line.seen.online and line.asked is None and line.due <= now:
                self._send(line, now, name)

    def _send(self, line: _Line, now: float, name: str) -> None:
        report = line.seen.report
        if not line.fresh or report is None:
            self._ask(line, now, name, STORE, {})
            return
        desired, sample_fractions = self._to_hold(name, report), self._to_send(name)
        if (desired, sample_fractions) != (line.seen.desired, line.seen.sample_fractions):
            line.seen = replace(line.seen, desired=desired, sample_fractions=sample_fractions)
        if line.seen.settled:
            line.attempts = 0
            return
        body = {origin: None if m is None else list(m) for origin, m in sorted(desired.items())}
        more = {} if report.sample_fractions == sample_fractions else {"shares": sample_fractions}
        self._ask(line, now, name, COPIES, {"copies": body, **more})

    def _ask(self, line: _Line, now: float, name: str, op: str, body: dict[str, Any]) -> None:
        line.op, line.expires = op, now + ASK_SECONDS + SPARE_SECONDS
        try:
            line.asked = self._control.send(name, op, body, ASK_SECONDS)
        except Exception as error:
            line.asked = Future()
            line.asked.set_exception(error)
        line.asked.add_done_callback(lambda _: self._wake())

    def _take(self, line: _Line, now: float, at: float, name: str) -> None:
        asked = line.asked
        if asked is None or not (asked.done() or now > line.expires):
            return
        line.asked, line.ended = None, now
        try:
            body = asked.result(0)
            if line.op == STORE:
                line.seen = replace(line.seen, report=read_report(body), heard=at, problem="")
                line.fresh = True
                return
            line.fresh = False
        except DataError as error:
            line.fresh = False
            line.seen = replace(
                line.seen, bad=line.seen.bad + 1, problem=_describe_failure(line.op, error)
            )
        except Exception as error:
            line.fresh = False
            line.seen = replace(line.seen, problem=_describe_failure(line.op, error))
        wait = wait_seconds(f"{self._seed}/{name}", line.attempts)
        line.attempts, line.due = line.attempts + 1, now + wait


def _describe_failure(op: str, error: Exception) -> str:
    text = "it does not answer" if isinstance(error, TimeoutError) else str(error) or repr(error)
    return f"{op}: {text}"[:LONGEST_PROBLEM]
