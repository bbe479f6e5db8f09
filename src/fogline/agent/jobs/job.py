"""Jobs of a site and what its processes must do for them: subscribe, copy, send, publish."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from fogline.agent.contracts.ingest import Subscription
from fogline.agent.contracts.publish import OutgoingRoute
from fogline.common.errors import DataError, UsageError
from fogline.common.settings import Settings
from fogline.fabric.contract import FabricLog
from fogline.links.copier import Copy
from fogline.links.start_position import END, START
from fogline.log.files.names import folder_name
from fogline.model.broker_url import BrokerUrl
from fogline.model.jobs import FIRST, LOG, SECOND, Assignment, Code, Place, Query, Route, Steps
from fogline.model.question import Question
from fogline.model.sample_fractions import SampleFractions
from fogline.model.sites import bad_log, command_log, insight_log, late_log, out_log, stream_log
from fogline.model.streams import FABRIC, MQTT, StreamSource
from fogline.plan.analysis.query_file import LoadedQuery, check_text
from fogline.plan.lowering.split import choose_insights
from fogline.plan.operators import Emit, Scan, walk_plan


@dataclass(frozen=True)
class AgentJob:
    """An assignment, with its query checked where it is one."""

    assignment: Assignment
    loaded: LoadedQuery | None = None
    local: bool = False
    """From the site's own configuration: no coordinator's business."""
    ending: bool = False
    """It no longer computes; what it has computed is still on its way."""

    @property
    def name(self) -> str:
        return self.assignment.job

    @cached_property
    def version(self) -> str:
        return self.assignment.version

    @cached_property
    def run(self) -> str:
        return self.assignment.run

    @property
    def running(self) -> bool:
        return self.assignment.running and not self.ending

    @property
    def computes(self) -> bool:
        """Whether Spark has anything to do for it; one that does not only passes messages on."""
        return not isinstance(self.assignment.work, Steps)

    @property
    def stage(self) -> str:
        work = self.assignment.work
        return work.stage if isinstance(work, Query) else ""

    def streams(self) -> list[StreamSource]:
        """The streams of a query that reads messages itself."""
        if self.loaded is None or self.stage == SECOND:
            return []
        scans = [op.stream for op in walk_plan(self.loaded.plan) if isinstance(op, Scan)]
        return list(dict.fromkeys(scans))

    def places(self) -> list[Place]:
        """The topics of a job that is not a query."""
        return [] if self.streams() else list(self.assignment.reads)

    def logs(self) -> list[str]:
        """The logs it reads."""
        streams = [stream_log(s) for s in self.streams() if s.in_log]
        return [*streams, *(read_log(place) for place in self.places())]

    def results(self) -> list[str]:
        """The logs of what it computes, or passes on."""
        if not self.computes:
            return [read_log(place) for place in self.assignment.reads]
        dropped = self.dropped_logs()
        return [log for log in self.computed_logs() if log not in dropped]

    def computed_logs(self) -> list[str]:
        """The logs of what it computes, also of what is muted."""
        if self.loaded is None or self.stage == FIRST:
            return [out_log(self.name)]
        return [insight_log(self.assignment.outlet, emit.name) for emit in self._visible_emits()]

    def visible_insights(self) -> list[Emit]:
        """The insights of a query that anybody gets to know."""
        return [emit for emit in self._visible_emits() if emit.name not in self.assignment.muted]

    def dropped_logs(self) -> list[str]:
        """The logs that its query would write and must not: those of muted insights."""
        muted = [emit for emit in self._visible_emits() if emit.name in self.assignment.muted]
        own = [insight_log(self.assignment.outlet, emit.name) for emit in muted]
        return [*own, *self._commands(muted)]

    def _visible_emits(self) -> list[Emit]:
        if self.loaded is None or self.stage == FIRST:
            return []
        return [emit for emit in self.loaded.plan.emits if not emit.hidden]

    def _commands(self, emits: Iterable[Emit]) -> list[str]:
        return [command_log(self.name, emit.name) for emit in emits if emit.to is not None]

    def published_logs(self) -> list[str]:
        """The logs whose records everybody may see on the site's broker."""
        if not self.computes:
            return []
        if self.loaded is None:
            return [bad_log(self.name, read_log(p)) for p in self.places()]
        rejected = [name(self.name, s.name) for s in self.streams() for name in (bad_log, late_log)]
        if self.stage == FIRST:
            return rejected
        return [*self.results(), *self._commands(self.visible_insights()), *rejected]


def make_job(assignment: Assignment, settings: Settings, local: bool = False) -> AgentJob:
    """Raises FoglineError when this site cannot run it."""
    if isinstance(assignment.work, Query):
        loaded = check_text(assignment.work.text, settings)
        loaded = replace(loaded, plan=choose_insights(loaded.plan, assignment.work.insights))
        job = AgentJob(assignment, loaded, local)
        for stream in job.streams():
            if not stream.in_log and stream.provider != "file":
                text = f"stream {stream.name} comes from {stream.provider}"
                hint = "use mqtt(…), storageFabric(…) or file(…)"
                raise UsageError(f"{text}, which a site cannot read", hint)
        return job
    if isinstance(assignment.work, Code):
        if not assignment.reads:
            raise UsageError(f"job {assignment.job} reads nothing", "give it a source_topic")
        return AgentJob(assignment, None, local)
    if assignment.work.steps:
        raise DataError("steps run on gateways, not on sites", "give the job an entry or a query")
    return AgentJob(assignment, None, local)


def read_log(place: Place) -> str:
    """The log of a topic: its name, behind the broker if that is not the site's."""
    return f"{BrokerUrl.parse(place.broker)}/{place.topic}" if place.broker else place.topic


# ── what the processes do for them ───────────────────────────────────────────────────────────────


def subscriptions(jobs: Iterable[AgentJob]) -> list[Subscription]:
    """One for each log that no job of this site writes itself; `broker` is empty for the site's."""
    jobs = list(jobs)
    written = {log for job in jobs if job.computes for log in job.results()}
    found: dict[str, Subscription] = {}
    for needed in (item for job in jobs for item in _needed_subscriptions(job)):
        if needed.log not in written:
            before = found.get(needed.log, needed)
            deduplicate = needed.deduplicate and before.deduplicate
            found[needed.log] = replace(needed, deduplicate=deduplicate)
    return list(found.values())


def _needed_subscriptions(job: AgentJob) -> Iterator[Subscription]:
    if job.ending:
        return
    for stream in job.streams():
        if stream.provider == MQTT:
            pattern, broker = str(stream.parameter("topic")), str(stream.parameter("broker") or "")
            timed = stream.time_field is not None or stream.format == "senml"
            yield Subscription(pattern, stream_log(stream), broker, deduplicate=timed)
    for place in job.places():
        timed = "time" in job.assignment.input
        yield Subscription(place.topic, read_log(place), place.broker, deduplicate=timed)


def fabric_logs(
    jobs: Iterable[AgentJob], sample_fractions: SampleFractions | None = None
) -> list[FabricLog]:
    """What the store process writes into logs for jobs: one for each question to the fabric.

    With `sample_fractions` some nodes send less; of jobs with the same question, what the most
    needs.
    """
    asked = [(job.name, s) for job in jobs for s in job.streams() if s.provider == FABRIC]
    questions: dict[str, Question] = {}
    sent: dict[str, list[Mapping[str, float]]] = {}
    for name, stream in asked:
        log = stream_log(stream)
        questions[log] = stream.question
        sent.setdefault(log, []).append((sample_fractions or {}).get(name, {}).get(stream.name, {}))
    return [FabricLog(log, question, _least(sent[log])) for log, question in questions.items()]


def _least(sent: list[Mapping[str, float]]) -> dict[str, float]:
    """What every job of a log can do with less of."""
    common = set.intersection(*(set(nodes) for nodes in sent))
    return {node: max(nodes[node] for nodes in sent) for node in sorted(common)}


@dataclass(frozen=True, slots=True)
class Sending:
    """One log of a job on one of its routes."""

    log: str
    reader: str
    """Who reads it, as the log knows it."""
    route: Route
    alone: bool
    """Nothing of the log is to be left out, also when it is older than the route."""

    @property
    def key(self) -> tuple[str, str]:
        return self.log, self.reader


def copies(jobs: Iterable[AgentJob]) -> list[Copy]:
    """What the ingest process takes from jobs of this site into the logs of topics."""
    found = ((item, begin) for item, begin in _active_sendings(jobs) if item.route.mode == LOG)
    return [Copy(item.log, item.route.topic, item.reader, begin) for item, begin in found]


def routes(
    jobs: Iterable[AgentJob], address: Callable[[Route], str] = lambda route: route.broker
) -> list[OutgoingRoute]:
    """What the publishing process sends to the `address` of each route; what leads nowhere yet
    waits in its log."""
    return [
        OutgoingRoute(item.log, address(route), route.mode, route.topic, item.reader, begin)
        for item, begin in _active_sendings(jobs)
        if (route := item.route).mode != LOG and not route.waits
    ]


def _active_sendings(jobs: Iterable[AgentJob]) -> Iterator[tuple[Sending, str]]:
    """Each with where it begins."""
    for job in jobs:
        if not job.computes and not job.assignment.running:
            continue  # its routes are all it does
        for item in sendings(job):
            yield item, START if item.alone or not job.computes else END


def sendings(job: AgentJob) -> list[Sending]:
    """A route takes all results of its job. One to the topic of an insight of it takes that insight
    alone, or nothing while it is muted."""
    found = []
    results, dropped = job.results(), job.dropped_logs()
    for index, route in enumerate(job.assignment.routes):
        if job.computes and route.topic in (*results, *dropped):
            alone = [log for log in results if log == route.topic]
            found += [Sending(log, insight_reader(route), route, True) for log in alone]
        else:
            reader = route_reader(job.name, index)
            found += [Sending(log, reader, route, index == 0) for log in results]
    return found


def route_reader(job: str, index: int) -> str:
    return f"route {job} {index}"


def insight_reader(route: Route) -> str:
    """By where it leads: whichever job computes the insight, it goes on where it was."""
    return f"route to {route.node or route.broker}"


def job_reader(job: str) -> str:
    return f"job {job}"


def job_folder(folder: Path, job: str) -> Path:
    """Where a job keeps its checkpoints."""
    return folder / "jobs" / folder_name(job)
