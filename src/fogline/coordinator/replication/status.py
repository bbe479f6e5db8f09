"""What people see of copies: which are desired, why, which are there, how far behind they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fogline.adapt.replication.stability import NodeHistory
from fogline.coordinator.nodes.replicas import REFUSED, Decision, covers, desired_copies
from fogline.coordinator.nodes.store_reports import Held, Metrics
from fogline.coordinator.reconcile.histories import scores
from fogline.coordinator.replication.node_stores import StoreView

HELD, DESIRED, KEPT, LEAVING = "held", "wanted", "kept", "leaving"


def copy_statuses(
    decisions: Iterable[Decision], seen: Mapping[str, StoreView], now: float
) -> list[dict[str, Any]]:
    """One for each origin and holder that a decision or a node names."""
    reasons: dict[tuple[str, str], list[Decision]] = {}
    for item in decisions:
        reasons.setdefault(item.pair, []).append(item)
    targets = desired_copies(item for items in reasons.values() for item in items)
    held = {
        (origin, holder): copy
        for holder, node in seen.items()
        for origin, copy in (node.report.copies.items() if node.report else ())
    }
    return [
        _copy(pair, reasons.get(pair, []), targets, held.get(pair), seen.get(pair[1]), now)
        for pair in sorted({*reasons, *held})
    ]


def _copy(
    pair: tuple[str, str],
    reasons: list[Decision],
    targets: Mapping[str, Mapping[str, Metrics]],
    held: Held | None,
    holder: StoreView | None,
    now: float,
) -> dict[str, Any]:
    origin, name = pair
    is_desired = origin in targets.get(name, {})
    metrics = targets[name][origin] if is_desired else held.metrics if held else ()
    if is_desired:
        complete = held is not None and held.until is not None and covers(held.metrics, metrics)
        state = HELD if complete else DESIRED
    elif held is None:
        state = REFUSED
    else:
        state = KEPT if holder and holder.desired and origin in holder.desired else LEAVING
    until = held.until if held else None
    return {
        "origin": origin,
        "holder": name,
        "state": state,
        "metrics": None if metrics is None else list(metrics),
        "reasons": [_reason(item) for item in reasons],
        "bytes": held.bytes if held else 0,
        "until": until,
        "behind_seconds": None if until is None else round(max(now - until, 0.0), 3),
    }


def _reason(item: Decision) -> dict[str, Any]:
    row: dict[str, Any] = {"reason": item.reason, "since": item.since}
    if item.job:
        row["job"] = item.job
    if item.reason != REFUSED:
        row["metrics"] = None if item.metrics is None else list(item.metrics)
    return row | dict(item.detail)


def store_statuses(
    seen: Mapping[str, StoreView],
    histories: Mapping[str, NodeHistory],
    counts: Mapping[str, Mapping[str, int]],
    uncopied: Mapping[str, str],
    now: float,
) -> list[dict[str, Any]]:
    """Every site: its store's size, what it holds of others, its scores, why it has no copy."""
    found = []
    for name, node in sorted(seen.items()):
        report = node.report
        found.append(
            {
                "node": name,
                "online": node.online,
                "bytes": report.bytes if report else None,
                "metrics": len(report.metrics) if report else None,
                "held_bytes": sum(c.bytes for c in report.copies.values()) if report else None,
                "told_at": node.heard if report else None,
                **counts.get(name, {}),
                **scores(histories.get(name, NodeHistory(now)), now),
                "uncopied": uncopied.get(name, ""),
                "problem": node.problem,
                "bad_answers": node.bad,
            }
        )
    return found
