"""From a composition to a pipeline: everything looked up and checked, all problems reported at
once, those of reading it too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fogline.deploy.manifest.manifest import (
    DEPLOY,
    UNINSTALL,
    Composition,
    WrittenJob,
    WrittenPlace,
)
from fogline.deploy.manifest.problems import Problems
from fogline.deploy.manifest.tree import START, Spot, Word, shorten
from fogline.deploy.resolve.flow import FlowKey, describe_cycle, key_of
from fogline.deploy.resolve.places import PlaceResolver
from fogline.deploy.resolve.query_topics import redirect_stream, stream_topics
from fogline.deploy.resolve.topology import Topology
from fogline.deploy.resolve.unfed_topics import note_of
from fogline.deploy.resolve.validate_flow import Together
from fogline.deploy.resolve.workloads import (
    CodeCheck,
    Computed,
    Inventory,
    Package,
    StepsCheck,
    Works,
    any_steps,
)
from fogline.language.ast import QueryFile
from fogline.model.jobs import Job, Pipeline, Place, Query, Scalar, Work
from fogline.model.nodes import Node, is_name
from fogline.plan.analysis.analyse import refuse_functions
from fogline.plan.analysis.catalog import FunctionLoader

__all__ = ["JobAction", "Package", "Resolved", "resolve"]

DEFAULT_NAME = "pipeline"


@dataclass(frozen=True, slots=True)
class JobAction:
    """What a plan asks to be done to a job that exists: update, uninstall, start or stop it."""

    kind: str
    job: str
    parameters: Mapping[str, Scalar]


@dataclass(frozen=True, slots=True)
class Resolved:
    """The pipeline has every job that is described. `actions` says besides what a plan asks
    of jobs that exist; with any, the plan is about a part of the pipeline and the rest stays."""

    pipeline: Pipeline
    notes: tuple[str, ...] = ()
    """What is worth knowing but not wrong."""
    actions: tuple[JobAction, ...] = ()


def resolve(
    composition: Composition,
    topology: Topology,
    code: Mapping[str, Package],
    check: CodeCheck,
    existing: Mapping[str, str],
    *,
    name: str = DEFAULT_NAME,
    files: Mapping[str, str] | None = None,
    functions: FunctionLoader = refuse_functions,
    check_steps: StepsCheck = any_steps,
) -> Resolved:
    """The pipeline a composition describes; raises PipelineError with everything wrong in it.

    `code` has packages by path as it is written, `files` the texts of .ins files by their name,
    `existing` the pipeline of every job that is known; `name` is for a composition without one.
    """
    problems = composition.problems.copy()
    known = Inventory(code, check, files or {}, functions, check_steps)
    together = Together(composition)
    named = composition.name or name
    resolver = _Resolver(composition, topology, known, problems, together, named)
    pipeline = resolver.pipeline(existing)
    problems.raise_if_any()
    return Resolved(pipeline, tuple(dict.fromkeys(resolver.notes)), tuple(resolver.actions))


class _Resolver:
    def __init__(
        self,
        composition: Composition,
        topology: Topology,
        known: Inventory,
        problems: Problems,
        together: Together,
        name: str,
    ) -> None:
        self.notes: list[str] = []
        self.actions: list[JobAction] = []
        self._composition = composition
        self._topology = topology
        self._problems = problems
        self._name = name
        self._places = PlaceResolver(topology, composition.brokers, problems)
        self._works = Works(known, problems)
        self._together = together
        self._spots: dict[str, Spot] = {}
        self._read_spots: dict[FlowKey, Spot] = {}

    def pipeline(self, existing: Mapping[str, str]) -> Pipeline:
        if not is_name(self._name):
            message = f"invalid pipeline name {shorten(self._name)!r}"
            self._problems.add("NAME", message, START)
        jobs: list[Job] = []
        for written in self._composition.jobs:
            self._check_name(written, existing)
            job = None if written.is_brief else self._job(written)
            if job is not None:
                jobs.append(job)
            if written.action != DEPLOY and written.name.text in existing:
                parameters = job.parameters if job else written.parameters
                self.actions.append(JobAction(written.action, written.name.text, parameters))
        self._check_flow()
        return Pipeline(self._name, tuple(jobs))

    def _check_name(self, job: WrittenJob, existing: Mapping[str, str]) -> None:
        name, at = job.name.text, job.name.at
        owner = existing.get(name)
        if not name and not job.is_sure("name"):
            return
        if not is_name(name):
            message = f"invalid job name {shorten(name)!r}"
            self._problems.add("NAME", message, at, "no / + # $, at most 120 bytes")
        elif name in self._spots:
            message = f"there are two jobs {name}: the first is in line {self._spots[name].line}"
            self._problems.add("DUPLICATE", message, at)
        elif not job.is_brief and owner not in (None, self._name):
            message = f"there is a job {name} already, in pipeline {owner}"
            self._problems.add("EXISTS", message, at, "names are unique among all jobs")
        elif job.action == UNINSTALL and owner is None:
            self.notes.append(f"{name} is not there: nothing to uninstall")
        elif job.action != DEPLOY and owner is None:
            message = f"there is no job {name} to {job.action}"
            self._problems.add("ACTION", message, at, "deploy it first")
        self._spots.setdefault(name, at)

    # ── one job ─────────────────────────────────────────────────────────────────────────────────

    def _job(self, written: WrittenJob) -> Job | None:
        node = self._places.node(written)
        computed = self._works.work(written, node)
        writes = self._all_places(written.writes, node, reading=False)
        work, reads = self._reads(written, node, computed)
        computed_parameters = computed.parameters if computed else None
        if node is None or work is None or reads is None or writes is None:
            where = node.name if node else ""
            self._together.add_unfinished(written, computed, reads, writes, where)
            return None
        self._note(written, node, work, writes)
        job = Job(
            name=written.name.text,
            node=node.name,
            work=work,
            reads=reads,
            writes=writes,
            parameters=written.parameters if computed_parameters is None else computed_parameters,
            input=written.input,
            publish=written.publish,
            running=written.running,
        )
        self._together.add(job, written)
        return job

    def _reads(
        self, written: WrittenJob, node: Node | None, computed: Computed | None
    ) -> tuple[Work | None, tuple[Place, ...] | None]:
        given = self._all_places(written.reads, node, reading=True)
        if computed is None or node is None:
            return None, given
        if computed.query is not None:
            return self._query_reads(written, node, computed.work, computed.query, given)
        if not written.reads and written.is_sure("source"):
            message = f"{written.label} reads nothing"
            self._problems.add("TOPIC", message, written.at(), "add source_topic")
        return computed.work, given

    def _query_reads(
        self,
        written: WrittenJob,
        node: Node,
        work: Work,
        query: QueryFile,
        given: tuple[Place, ...] | None,
    ) -> tuple[Work | None, tuple[Place, ...] | None]:
        """A query names its topics itself; of its only stream the job may name another one."""
        streams = stream_topics(query)
        if not written.reads:
            at = (written.query or written.binary or written.name).at
            places = tuple(
                WrittenPlace(Word(s.topic, at), None, Word(s.broker, at) if s.broker else None)
                for s in streams
            )
            return work, self._all_places(places, node, reading=True)
        if len(streams) != 1 or len(written.reads) != 1:
            message = f"the query reads {len(streams)} topics and names them itself"
            at = written.reads[0].topic.at
            self._problems.add("TOPIC", message, at, "source_topic is for a query with one stream")
            return None, None
        if not given:
            return None, None
        broker = given[0].broker or self._topology.broker_of(given[0].node)
        own = given[0].node == node.name
        text = redirect_stream(query, streams[0].stream, given[0].topic, "" if own else broker)
        return Query(text), given

    def _all_places(
        self, written: tuple[WrittenPlace, ...], node: Node | None, reading: bool
    ) -> tuple[Place, ...] | None:
        """All of them, or None when one is wrong."""
        found: list[Place] = []
        for place in written:
            known = self._places.place(place, node, reading)
            if known is not None:
                found.append(known)
                if reading:
                    self._read_spots.setdefault(key_of(known), place.topic.at)
        if len(found) < len(written):
            return None
        return tuple(dict.fromkeys(found)) if len(found) > 1 else tuple(found)

    def _note(self, written: WrittenJob, node: Node, work: Work, writes: tuple[Place, ...]) -> None:
        name = written.name.text
        if node.name in self._topology.offline:
            self.notes.append(f"{node.name} is not online: {name} begins when it is back")
        if isinstance(work, Query) and (written.parameters or written.input):
            self.notes.append(f"{name}: parameters and input mean nothing to a query")
        if not isinstance(work, Query) and not writes:
            self.notes.append(f"{name} writes to no topic: its results stay at {node.name}")

    # ── all jobs together ───────────────────────────────────────────────────────────────────────

    def _check_flow(self) -> None:
        cycle = self._together.cycle()
        if cycle:
            self._problems.add("CYCLE", describe_cycle(cycle), self._spots.get(cycle[0], START))
        fed_by_devices: dict[str, list[str]] = {}
        for finding in self._together.find_unfed(self._topology.nodes, self._inputs()):
            if finding.wrong:
                at = self._read_spots.get((finding.topic, finding.place), START)
                self._problems.add("UNWRITTEN", finding.wrong, at, finding.hint)
            else:
                fed_by_devices.setdefault(finding.topic, []).append(finding.place)
        self.notes += [note_of(topic, places) for topic, places in fed_by_devices.items()]

    def _inputs(self) -> list[FlowKey] | None:
        """What devices publish; an input without a place may come anywhere."""
        if self._composition.inputs is None:
            return None
        found: list[FlowKey] = []
        for written in self._composition.inputs:
            anywhere = written.site is None and written.broker is None
            if not anywhere:
                place = self._places.place(written, None, reading=True)
                found += [key_of(place)] if place else []
                if place is None:
                    self._together.note_doubtful(written)
            elif self._places.usable(written.topic, reading=True):
                found.append((written.topic.text, ""))
        return found
