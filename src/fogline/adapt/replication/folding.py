"""Keeps a node's history small: its earliest events become sums, and its scores stay the same.

`stability` counts failures and restarts, so it never changes. `instability` needs of failures over
a week old only how many they are and Σ 1 / (tᵢ - tᵢ₋₁), so it does not change either as long as no
more than the history may hold lie within the last week. Of a node that fails more often than that,
the earliest of the week weigh as if they were older, until they are.
"""

from __future__ import annotations

from dataclasses import replace

from fogline.adapt.replication.stability import SHORTEST_GAP, NodeHistory, Past


def fold_history(history: NodeHistory, most: int) -> NodeHistory:
    """The same history with at most so many failures and restarts by their times."""
    fails = max(len(history.fails) - most, 0)
    restarts = max(len(history.restarts) - most, 0)
    past = history.past
    sums = Past(
        past.fails + fails,
        past.restarts + restarts,
        past.closeness + sum(1 / max(gap, SHORTEST_GAP) for gap in history.gaps[:fails]),
        history.fails[fails - 1] if fails else past.last,
    )
    return replace(
        history, fails=history.fails[fails:], restarts=history.restarts[restarts:], past=sums
    )
