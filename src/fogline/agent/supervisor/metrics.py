"""What a site measures about itself, as records like any sensor's."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil

from fogline.agent.contracts.site_status import SiteStatus
from fogline.common.process.contract import to_json

NODE, JOB, BROKER = "metrics/node", "metrics/job", "metrics/broker"
_SYS = {
    "messages_received": "$SYS/broker/messages/received",
    "messages_sent": "$SYS/broker/messages/sent",
    "bytes_received": "$SYS/broker/bytes/received",
    "bytes_sent": "$SYS/broker/bytes/sent",
    "clients_connected": "$SYS/broker/clients/connected",
    "messages_stored": "$SYS/broker/store/messages/count",
    "subscriptions": "$SYS/broker/subscriptions/count",
}


def node_metrics(site: str, folder: Path) -> dict[str, Any]:
    """CPU, memory, disk and network of the machine."""
    memory, disk = psutil.virtual_memory(), psutil.disk_usage(str(folder))
    net = psutil.net_io_counters()
    return {
        "site": site,
        "time": _now_ms(),
        "cpu_percent": psutil.cpu_percent(None),
        "load": psutil.getloadavg()[0],
        "memory_percent": memory.percent,
        "memory_used_bytes": memory.used,
        "disk_percent": disk.percent,
        "disk_free_bytes": disk.free,
        "net_sent_bytes": net.bytes_sent if net else 0,
        "net_received_bytes": net.bytes_recv if net else 0,
    }


def job_metrics(status: SiteStatus) -> list[dict[str, Any]]:
    """One record per query of each job."""
    return [
        {"site": status.site, "time": _now_ms(), "job": job.name, "query": query.name}
        | {key: value for key, value in to_json(query).items() if key not in ("name", "problem")}
        for job in status.jobs
        for query in job.queries
    ]


def broker_metrics(site: str, seen: dict[str, str]) -> dict[str, Any] | None:
    """From the broker's own `$SYS` topics; nothing where it has none."""
    found = {name: float(seen[topic]) for name, topic in _SYS.items() if topic in seen}
    return {"site": site, "time": _now_ms(), **found} if found else None


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def prometheus(status: SiteStatus, node: dict[str, Any]) -> str:
    """The text that Prometheus reads."""
    site = status.site
    lines = [_line("fogline_healthy", {"site": site}, int(status.healthy))]
    lines += _number_lines("fogline_node_", {"site": site}, node)
    states = {name: (child.state, child.restarts) for name, child in status.processes.items()}
    states["broker"] = (status.broker.state, status.broker.restarts or 0)
    for name, (state, restarts) in states.items():
        labels = {"site": site, "process": name}
        lines.append(_line("fogline_process_restarts", labels, restarts))
        lines.append(_line("fogline_process_up", labels, int(state == "running")))
    lines += _number_lines("fogline_broker_", {"site": site}, _without_time(status.broker_metrics))
    damage = status.damage
    lines.append(
        _line("fogline_log_damage_unacknowledged", {"site": site}, len(damage.unacknowledged))
    )
    for log, records in damage.lost_records.items():
        lines.append(_line("fogline_log_lost_records", {"site": site, "log": log}, records))
    for subscription in status.ingest.report.subscriptions if status.ingest.report else ():
        labels = {"site": site, "pattern": subscription.pattern}
        lines.append(_line("fogline_ingest_messages", labels, subscription.messages))
        lines.append(_line("fogline_ingest_repeated", labels, subscription.repeated))
        lines.append(_line("fogline_ingest_bytes", labels, subscription.bytes))
    for topic in status.publish.report.topics if status.publish.report else ():
        labels = {"site": site, "topic": topic.topic}
        lines.append(_line("fogline_published_messages", labels, topic.messages))
        lines.append(_line("fogline_publish_lag_bytes", labels, topic.lag))
        lines.append(_line("fogline_publish_left_out", labels, topic.left_out))
        lines.append(_line("fogline_publish_refused", labels, topic.refused))
    for record in job_metrics(status):
        labels = {"site": site, "job": record["job"], "query": record["query"]}
        lines += _number_lines("fogline_job_", labels, _without_time(record))
    return "\n".join(lines) + "\n"


def _number_lines(prefix: str, labels: dict[str, str], values: Mapping[str, Any]) -> list[str]:
    numbers = {name: value for name, value in values.items() if isinstance(value, int | float)}
    return [_line(f"{prefix}{name}", labels, value) for name, value in numbers.items()]


def _without_time(record: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name != "time"}


def _line(name: str, labels: dict[str, str], value: float) -> str:
    inside = ",".join(f'{key}="{_escape(text)}"' for key, text in labels.items())
    return f"{name}{{{inside}}} {value}"


def _escape(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
