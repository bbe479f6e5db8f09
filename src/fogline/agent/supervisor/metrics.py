"""What a site measures about itself, as records like any sensor's."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import psutil

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


def job_metrics(site: str, status: dict[str, Any]) -> list[dict[str, Any]]:
    """One record per query of each job."""
    return [
        {"site": site, "time": _now_ms(), "job": job["name"], "query": query["name"]}
        | {key: value for key, value in query.items() if key not in ("name", "problem")}
        for job in status.get("engine", {}).get("jobs", [])
        for query in job["queries"]
    ]


def broker_metrics(site: str, seen: dict[str, str]) -> dict[str, Any] | None:
    """From the broker's own `$SYS` topics; nothing where it has none."""
    found = {name: float(seen[topic]) for name, topic in _SYS.items() if topic in seen}
    return {"site": site, "time": _now_ms(), **found} if found else None


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def prometheus(status: dict[str, Any], node: dict[str, Any]) -> str:
    """The text that Prometheus reads."""
    site = status["site"]
    lines = [_line("fogline_healthy", {"site": site}, int(status["healthy"]))]
    for name, value in node.items():
        if isinstance(value, int | float):
            lines.append(_line(f"fogline_node_{name}", {"site": site}, value))
    for name in (n for n in ("ingest", "engine", "publish", "store", "broker") if n in status):
        labels = {"site": site, "process": name}
        lines.append(_line("fogline_process_restarts", labels, status[name].get("restarts", 0)))
        lines.append(_line("fogline_process_up", labels, int(status[name]["state"] == "running")))
    for name, value in status["broker"].get("metrics", {}).items():
        if isinstance(value, int | float) and name != "time":
            lines.append(_line(f"fogline_broker_{name}", {"site": site}, value))
    damage = status["damage"]
    lines.append(
        _line("fogline_log_damage_unacknowledged", {"site": site}, len(damage["unacknowledged"]))
    )
    for log, records in damage["lost_records"].items():
        lines.append(_line("fogline_log_lost_records", {"site": site, "log": log}, records))
    for item in status["ingest"].get("subscriptions", []):
        labels = {"site": site, "pattern": item["pattern"]}
        for name in ("messages", "repeated", "bytes"):
            lines.append(_line(f"fogline_ingest_{name}", labels, item[name]))
    for item in status["publish"].get("topics", []):
        labels = {"site": site, "topic": item["topic"]}
        lines.append(_line("fogline_published_messages", labels, item["messages"]))
        lines.append(_line("fogline_publish_lag_bytes", labels, item["lag"]))
        lines.append(_line("fogline_publish_left_out", labels, item["left_out"]))
        lines.append(_line("fogline_publish_refused", labels, item["refused"]))
    for record in job_metrics(site, status):
        labels = {"site": site, "job": record["job"], "query": record["query"]}
        for name, value in record.items():
            if isinstance(value, int | float) and name != "time":
                lines.append(_line(f"fogline_job_{name}", labels, value))
    return "\n".join(lines) + "\n"


def _line(name: str, labels: dict[str, str], value: float) -> str:
    inside = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
    return f"{name}{{{inside}}} {value}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
