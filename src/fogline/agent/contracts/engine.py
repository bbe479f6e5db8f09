"""The contract with the engine process: its configuration and its status."""

from __future__ import annotations

from dataclasses import dataclass

from fogline.common.process.contract import ProcessStatus
from fogline.model.jobs import Assignment
from fogline.model.sites import QueryStatus


@dataclass(frozen=True, slots=True)
class EngineJobConfig:
    assignment: Assignment
    package: str = ""
    """The file with the user's code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineConfig:
    revision: int
    site: str
    folder: str
    logs: str
    """The folder of the site's logs."""
    min_free_bytes: int
    engine: str
    """Spark's master."""
    engine_host: str
    slots: int
    """Task slots of a local engine besides its cores."""
    memory: str
    trigger_ms: int
    live_ms: int
    jobs: tuple[EngineJobConfig, ...]


@dataclass(frozen=True, slots=True)
class EngineJobStatus:
    """A job, with what it counted since it was deployed."""

    name: str
    queries: tuple[QueryStatus, ...]
    state: str
    records_in: int
    records_out: int
    bad: int
    late: int
    run: str
    """What the status is about: see `Assignment.run`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineStatus(ProcessStatus):
    jobs: tuple[EngineJobStatus, ...] | None = None
    """None while Spark starts."""
