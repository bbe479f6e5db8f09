"""Jobs and pipelines: what people want to run, and what a node is assigned for it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fogline.common.errors import DataError

Scalar = str | float | int | bool

canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode
"""The same text for the same JSON."""

WHOLE, FIRST, SECOND = "whole", "first", "second"
"""Which part of a query's plan a job computes: everything, panes of records, windows of panes."""


@dataclass(frozen=True, slots=True)
class Place:
    """A topic at a node of ours, or at a broker that belongs to no node."""

    topic: str
    node: str = ""
    broker: str = ""
    """mqtt://host:port; only where there is no node."""

    def __str__(self) -> str:
        return f"{self.topic} at {self.node or self.broker}"


@dataclass(frozen=True, slots=True)
class Code:
    """The user's own PySpark: `entry` is module:function, `package` the SHA-256 of its file."""

    entry: str
    package: str
    file: str
    """The file's name: a .py file or a .whl."""


@dataclass(frozen=True, slots=True)
class Query:
    """Insights of a query text. `insights` empty: all of them."""

    text: str
    stage: str = WHOLE
    insights: tuple[str, ...] = ()
    outlet: str = ""
    """The job under whose name its results are published, where that is another one: see
    `outlet_of`."""


@dataclass(frozen=True, slots=True)
class Steps:
    """Light operators, one after the other, each a mapping with `op` and what it needs."""

    steps: tuple[Mapping[str, Any], ...]


Work = Code | Query | Steps


@dataclass(frozen=True, slots=True)
class Job:
    """One job of a pipeline. Names are unique among all jobs of a coordinator."""

    name: str
    node: str
    work: Work
    reads: tuple[Place, ...] = ()
    writes: tuple[Place, ...] = ()
    parameters: Mapping[str, Scalar] = field(default_factory=dict)
    """For the user's code and for steps; changing one does not end the computation."""
    input: Mapping[str, str] = field(default_factory=dict)
    """How the user's code gets its records (format, time, schema …); empty: raw messages."""
    publish: bool = False
    """Publish what it writes on the brokers too when other jobs read it through the logs."""
    running: bool = True
    muted: tuple[str, ...] = ()
    """Insights that it goes on computing for nobody: their results are dropped."""

    @property
    def outlet(self) -> str:
        """Under whose name its results are published."""
        return outlet_of(self.name, self.work)

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "node": self.node,
            "work": work_as_json(self.work),
            "reads": [place_as_json(place) for place in self.reads],
            "writes": [place_as_json(place) for place in self.writes],
            "parameters": dict(self.parameters),
            "input": dict(self.input),
            "publish": self.publish,
            "running": self.running,
            **({"muted": list(self.muted)} if self.muted else {}),
        }

    @classmethod
    def from_json(cls, data: Any) -> Job:
        try:
            return cls(
                name=str(data["name"]),
                node=str(data["node"]),
                work=work_from_json(data["work"]),
                reads=tuple(Place(**place) for place in data.get("reads", ())),
                writes=tuple(Place(**place) for place in data.get("writes", ())),
                parameters=dict(data.get("parameters", {})),
                input=dict(data.get("input", {})),
                publish=bool(data.get("publish", False)),
                running=bool(data.get("running", True)),
                muted=tuple(map(str, data.get("muted", ()))),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"this does not describe a job: {error}") from error


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A graph of jobs: what one writes and another reads is an edge."""

    name: str
    jobs: tuple[Job, ...]

    def job(self, name: str) -> Job | None:
        return next((job for job in self.jobs if job.name == name), None)


# ── what a node is assigned ───────────────────────────────────────────────────────────────────────

LOG, LINK, PUBLISH = "log", "link", "publish"


@dataclass(frozen=True, slots=True)
class Route:
    """Where a job's records go: into the log of a topic at the same site (`log`), batched into that
    of another site by way of its broker (`link`), or one by one to a broker (`publish`)."""

    mode: str
    topic: str
    broker: str = ""
    """Address for `link` and `publish`; empty for `publish`: the node's own broker."""
    node: str = ""
    """For `link`: the node behind the broker. Without a broker: a node whose address is not known
    yet; what is for it is kept until it is."""

    def __post_init__(self) -> None:
        if self.mode not in (LOG, LINK, PUBLISH):
            raise DataError(f"no route {self.mode!r}", "log, link or publish")

    @property
    def waits(self) -> bool:
        """Whether nobody knows yet where it leads."""
        return bool(self.node) and not self.broker


@dataclass(frozen=True, slots=True)
class Assignment:
    """A job as its node gets it: nothing left to decide, nothing to look up elsewhere."""

    job: str
    pipeline: str
    work: Work
    reads: tuple[Place, ...] = ()
    """`node` is empty for the node's own topics; else `broker` says where to subscribe."""
    routes: tuple[Route, ...] = ()
    parameters: Mapping[str, Scalar] = field(default_factory=dict)
    input: Mapping[str, str] = field(default_factory=dict)
    running: bool = True
    made: tuple[str, ...] = ()
    """Of code: the topics it reads that other jobs compute. They are stored where they arise."""
    muted: tuple[str, ...] = ()
    """Of a query: insights that are computed on, but whose results are dropped."""
    signed: Mapping[str, str] = field(default_factory=dict)
    """The topics it reads of insights that others sign, and the key that reading them needs."""

    @property
    def outlet(self) -> str:
        """Under whose name its results are published."""
        return outlet_of(self.job, self.work)

    @property
    def version(self) -> str:
        """The same for the same assignment, and for no other."""
        return _digest(self.as_json())

    @property
    def computation(self) -> str:
        """The same as long as what is computed from what is the same: state may go on."""
        fields = self.as_json()
        return _digest({key: fields[key] for key in ("work", "reads", "input")})

    def computes_like(self, other: Assignment) -> bool:
        return self.computation == other.computation

    @property
    def run(self) -> str:
        """The same as long as the engine has nothing to start anew."""
        fields = self.as_json()
        return _digest({key: fields[key] for key in ("work", "reads", "input", "parameters")})

    def as_json(self) -> dict[str, Any]:
        return {
            "job": self.job,
            "pipeline": self.pipeline,
            "work": work_as_json(self.work),
            "reads": [place_as_json(place) for place in self.reads],
            "routes": [_drop_empty(vars_of(route)) for route in self.routes],
            "parameters": dict(self.parameters),
            "input": dict(self.input),
            "running": self.running,
            **({"made": list(self.made)} if self.made else {}),
            **({"muted": list(self.muted)} if self.muted else {}),
            **({"signed": dict(self.signed)} if self.signed else {}),
        }

    @classmethod
    def from_json(cls, data: Any) -> Assignment:
        """Raises DataError for anything that is none."""
        try:
            return cls(
                job=str(data["job"]),
                pipeline=str(data.get("pipeline", "")),
                work=work_from_json(data["work"]),
                reads=tuple(Place(**place) for place in data.get("reads", ())),
                routes=tuple(Route(**route) for route in data.get("routes", ())),
                parameters=dict(data.get("parameters", {})),
                input=dict(data.get("input", {})),
                running=bool(data.get("running", True)),
                made=tuple(map(str, data.get("made", ()))),
                muted=tuple(map(str, data.get("muted", ()))),
                signed={str(k): str(v) for k, v in data.get("signed", {}).items()},
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DataError(f"invalid assignment: {error!r}") from error


def name_assignments(assignments: Any, jobs: Any) -> Any:
    """Assignments that came without names, with those of their jobs; all of them as JSON. What is
    not of that form is left as it is."""
    if not isinstance(assignments, list) or not isinstance(jobs, list):
        return assignments
    if len(assignments) != len(jobs) or not all(isinstance(item, dict) for item in assignments):
        raise DataError(f"there are {len(assignments)} assignments and {len(jobs)} names of jobs")
    return [{**item, "job": job} for item, job in zip(assignments, jobs, strict=True)]


def outlet_of(job: str, work: Work) -> str:
    """An insight keeps its topic when another job computes it from now on: that job publishes its
    results under the name of the one before."""
    return (work.outlet if isinstance(work, Query) else "") or job


def work_as_json(work: Work) -> dict[str, Any]:
    if isinstance(work, Code):
        return {"entry": work.entry, "package": work.package, "file": work.file}
    if isinstance(work, Query):
        fields = {"query": work.text, "stage": work.stage, "insights": list(work.insights)}
        return fields | ({"outlet": work.outlet} if work.outlet else {})
    return {"steps": [dict(step) for step in work.steps]}


def work_from_json(data: Any) -> Work:
    if "entry" in data:
        return Code(str(data["entry"]), str(data["package"]), str(data["file"]))
    if "query" in data:
        insights = tuple(str(name) for name in data.get("insights", ()))
        stage, outlet = str(data.get("stage", WHOLE)), str(data.get("outlet", ""))
        return Query(str(data["query"]), stage, insights, outlet)
    if "steps" in data:
        return Steps(tuple(dict(step) for step in data["steps"]))
    raise DataError("a job has an entry into code, a query or steps")


def place_as_json(place: Place) -> dict[str, Any]:
    return _drop_empty({"topic": place.topic, "node": place.node, "broker": place.broker})


def vars_of(item: Any) -> dict[str, Any]:
    return {name: getattr(item, name) for name in item.__dataclass_fields__}


def _drop_empty(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value != ""}


def _digest(data: Any) -> str:
    return hashlib.sha256(canonical(data).encode()).hexdigest()[:16]
