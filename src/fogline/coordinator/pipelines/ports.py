"""What the coordinator needs of others: the nodes, and the meaning of pipeline texts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Protocol

from fogline.control.coordinator import OnOutcomes
from fogline.control.envelope import NodePart
from fogline.coordinator.pipelines.packages import PackageLike
from fogline.deploy.manifest.problems import Where
from fogline.model.jobs import Job, Pipeline, Scalar
from fogline.model.nodes import NodeView

YAML, PLAN, INSIGHTS = "yaml", "plan", "ins"
FORMATS = (YAML, PLAN, INSIGHTS)

UPDATE, UNINSTALL, START, STOP = "update", "uninstall", "start", "stop"


class ControlPort(Protocol):
    """The way to the nodes. A request that `send` began fails with a FoglineError."""

    @property
    def connected(self) -> bool: ...
    @property
    def problem(self) -> str: ...
    def views(self) -> Mapping[str, NodeView]: ...
    def send(
        self, node: str, op: str, body: dict[str, Any], timeout: float
    ) -> Future[dict[str, Any]]: ...
    def send_each(
        self,
        op: str,
        body: NodePart,
        parts: Mapping[str, NodePart],
        timeout: float,
        on_outcomes: OnOutcomes,
    ) -> None:
        """Like `send` to each of these nodes, with the body and its own part, all at once.
        `on_outcomes` is called by any thread, as often as it takes to report on every node once."""
        ...

    def is_refusal(self, error: BaseException) -> bool:
        """Whether the node itself said no; else the request or its answer got lost."""
        ...

    def forget(self, name: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Action:
    """What a deployment plan asks to be done with a job that exists."""

    kind: str
    job: str
    parameters: Mapping[str, Scalar] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CompileContext:
    """What a text is read against."""

    views: Mapping[str, NodeView]
    code: Mapping[str, PackageLike]
    """Packages by the names job descriptions use."""
    text_of: Callable[[str], str | None]
    """The text of a query file that was handed in."""
    check: Callable[[PackageLike, str, Mapping[str, Scalar]], str | None]
    """Why an entry of a package cannot be used with these parameters, or None."""
    existing: Mapping[str, str]
    """The pipeline of every job there is."""
    bound: Pipeline | None = None
    """What the text was deployed as: its jobs keep their packages and query files."""
    before: Pipeline | None = None
    """What a query file was deployed as last: what has not changed since goes on."""


@dataclass(frozen=True, slots=True)
class CompiledPipeline:
    """What a text means."""

    pipeline: Pipeline
    notes: tuple[str, ...] = ()
    actions: tuple[Action, ...] = ()
    """For jobs that exist already."""
    partial: bool = False
    """Jobs of the pipeline that are not mentioned stay."""
    where: Where = field(default_factory=Where)
    """Where its jobs are in the text."""


class Compiler(Protocol):
    """Pure functions over pipeline texts. They raise PipelineError or QueryError with everything
    that is wrong."""

    def compile(
        self, name: str, text: str, format: str, world: CompileContext
    ) -> CompiledPipeline: ...
    def compile_job(
        self, description: Mapping[str, Any], world: CompileContext
    ) -> CompiledPipeline: ...
    def check_job(self, job: Job, world: CompileContext) -> None:
        """Raises DataError where a job's parameters are not for what it computes."""
        ...

    def check_whole(
        self, new: Pipeline, others: Iterable[Pipeline], world: CompileContext, where: Where
    ) -> None:
        """Raises PipelineError where a pipeline does not go with the others."""
        ...
