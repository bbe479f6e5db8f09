"""How jobs that only pass messages on are: told by the processes that do it, not by the engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fogline.agent.jobs.job import AgentJob, route_reader
from fogline.model.nodes import Observed


def observed_forwarder(
    job: AgentJob, status: Mapping[str, Any], more: Mapping[str, Any]
) -> Observed:
    """`status`: the site's. Records count since the process that sends them was started, again
    where they were sent again."""
    sent = [_sent(status, route_reader(job.name, i)) for i in range(len(job.assignment.routes))]
    return Observed(
        job.name,
        job.version,
        "running",
        records_in=max((messages for messages, _ in sent), default=0),
        records_out=sum(messages for messages, _ in sent),
        lag_bytes=max((lag for _, lag in sent), default=0),
        more=more,
    )


def _sent(status: Mapping[str, Any], reader: str) -> tuple[int, int]:
    """Messages and bytes to go, over all logs of a route."""
    parts = (("publish", "routes"), ("ingest", "copies"))
    told = [item for part, key in parts for item in status.get(part, {}).get(key, ())]
    ours = [item for item in told if item["reader"] == reader]
    return sum(item["messages"] for item in ours), sum(item["lag"] for item in ours)
