"""The user's own PySpark of the road-traffic application: cleaning and forwarding."""

from __future__ import annotations

from typing import Any

CHECKED = "speed BETWEEN 0 AND {fastest} AND occupancy BETWEEN 0 AND 100 AND count >= 0"
KEPT = ("segment", "road", "lane", "vehicle", "speed", "occupancy", "count")


def clean(records: Any, *, edge: str = "", fastest: float = 250.0) -> Any:
    """Job 1. What is badly formatted never gets here (it is told on `bad/<job>/#`); what is missing
    or impossible is left out, and the edge site's name is added."""
    good = records.where(CHECKED.format(fastest=float(fastest)))
    return good.selectExpr("unix_millis(time) AS time", *KEPT, f"'{edge}' AS edge")


def forward(records: Any) -> Any:
    """Job 2: every message as it stands."""
    return records
