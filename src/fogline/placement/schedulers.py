"""The schedulers, by name: each chooses a site for a task among those that may take it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fogline.model.nodes import Node


@dataclass(frozen=True, slots=True)
class Task:
    """Insights that are computed together, and the nodes that what they read comes from."""

    insights: tuple[str, ...]
    origins: tuple[str, ...]


Scheduler = Callable[[Task, Sequence[Node]], Node]
"""Gets at least one site, in the order of their names."""


def baseline(task: Task, sites: Sequence[Node]) -> Node:
    """Where all the data is, if that is one site; else the cloud, or the site with most memory."""
    if len(task.origins) == 1:
        local = [site for site in sites if site.name == task.origins[0]]
        if local:
            return local[0]
    return max(sites, key=lambda site: (is_cloud(site), site.memory_mb, site.cores))


def is_cloud(node: Node) -> bool:
    return node.labels.get("tier", "") == "cloud"


def is_edge(node: Node) -> bool:
    return node.labels.get("tier", "") == "edge"


SCHEDULERS: dict[str, Scheduler] = {"baseline": baseline}


def scheduler_named(name: str | None) -> Scheduler:
    """Names for which there is no scheduler of their own yet mean the baseline."""
    return SCHEDULERS.get((name or "baseline").lower(), baseline)
