"""The status of a whole site; `as_json` is what `GET /status` answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from fogline.agent.broker.site_broker import BrokerStatus
from fogline.agent.contracts.engine import EngineJobStatus, EngineStatus
from fogline.agent.contracts.ingest import IngestStatus
from fogline.agent.contracts.publish import PublishStatus
from fogline.agent.damage.watch import DamageStatus
from fogline.common.process.children import Child
from fogline.common.process.contract import ProcessStatus, to_json
from fogline.fabric.contract import StoreStatus

S = TypeVar("S", bound=ProcessStatus)
_DAMAGED_HINT = "fogline fsck FOLDER says what is lost; remove these files to acknowledge"


@dataclass(frozen=True)
class ChildStatus(Generic[S]):
    """A child process as the supervisor sees it, with what it reported last."""

    state: str
    pid: int = 0
    restarts: int = 0
    died: str = ""
    report: S | None = None

    @classmethod
    def read(cls, child: Child[S]) -> ChildStatus[S]:
        return cls(child.state, child.pid, max(child.restarts, 0), child.died, child.status)

    def as_json(self) -> dict[str, Any]:
        return {
            **(to_json(self.report) if self.report is not None else {}),
            "state": self.state,
            "pid": self.pid,
            "restarts": self.restarts,
            **({"died": self.died} if self.died else {}),
        }


@dataclass(frozen=True, kw_only=True)
class SiteStatus:
    site: str
    healthy: bool
    ingest: ChildStatus[IngestStatus]
    engine: ChildStatus[EngineStatus]
    publish: ChildStatus[PublishStatus]
    store: ChildStatus[StoreStatus] | None
    broker: BrokerStatus
    broker_metrics: Mapping[str, Any]
    damage: DamageStatus
    retention_problems: Sequence[str] = ()
    damaged_files: Sequence[str] = ()
    control: str | None = None
    """Of the connection to the control broker; None without one."""

    @property
    def processes(self) -> dict[str, ChildStatus[Any]]:
        found: dict[str, ChildStatus[Any]] = {"ingest": self.ingest, "engine": self.engine}
        found["publish"] = self.publish
        if self.store is not None:
            found["store"] = self.store
        return found

    @property
    def jobs(self) -> tuple[EngineJobStatus, ...]:
        """What the engine reports about them."""
        report = self.engine.report
        return (report.jobs or ()) if report is not None else ()

    def as_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {"site": self.site, "healthy": self.healthy}
        found |= {name: child.as_json() for name, child in self.processes.items()}
        found["broker"] = to_json(self.broker) | {"metrics": dict(self.broker_metrics)}
        found["damage"] = to_json(self.damage)
        if self.retention_problems:
            found["retention"] = {"problems": list(self.retention_problems)}
        if self.damaged_files:
            found["damaged"] = {"files": list(self.damaged_files), "hint": _DAMAGED_HINT}
        return found | ({"control": self.control} if self.control is not None else {})
