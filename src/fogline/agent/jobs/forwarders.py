"""How jobs that only pass messages on are: by the status of ingest and publish, not the engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fogline.agent.contracts.ingest import CopyStatus
from fogline.agent.contracts.publish import RouteStatus
from fogline.agent.contracts.site_status import SiteStatus
from fogline.agent.jobs.job import AgentJob, route_reader
from fogline.model.nodes import Observed


def observe_forwarder(job: AgentJob, status: SiteStatus, more: Mapping[str, Any]) -> Observed:
    """Records count since the process that sends them was started, again
    where they were sent again."""
    sent = [
        _count_sent(status, route_reader(job.name, i)) for i in range(len(job.assignment.routes))
    ]
    return Observed(
        job.name,
        job.version,
        "running",
        records_in=max((messages for messages, _ in sent), default=0),
        records_out=sum(messages for messages, _ in sent),
        lag_bytes=max((lag for _, lag in sent), default=0),
        more=more,
    )


def _count_sent(status: SiteStatus, reader: str) -> tuple[int, int]:
    """Messages and bytes to go, over all logs of a route."""
    publish, ingest = status.publish.report, status.ingest.report
    found: list[RouteStatus | CopyStatus] = []
    found += publish.routes if publish is not None else ()
    found += ingest.copies if ingest is not None else ()
    ours = [item for item in found if item.reader == reader]
    return sum(item.messages for item in ours), sum(item.lag for item in ours)
