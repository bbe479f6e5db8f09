"""Why the data of nodes that have failed is not safe elsewhere yet, for people to read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from fogline.adapt.replication.stability import (
    NodeHistory,
    Replicas,
    RoundLimits,
    instability,
    is_recent,
    most_stable,
)

_MEBIBYTE = 1 << 20


def find_uncopied(
    histories: Mapping[str, NodeHistory], replicas: Replicas, limits: RoundLimits, now: float
) -> dict[str, str]:
    """The reason for each node that has failed, stores something and has no replica of all of it.

    `replicas` are those after a round: who was to get one has it by then.
    """
    found = {}
    for name, history in sorted(histories.items()):
        size = replicas.sizes.get(name, 0)
        sizes = [c.size for c in replicas.copies if c.origin == name and c.outgoing]
        if size and instability(history, now) > 0 and max(sizes, default=0) < size:
            why = _why(name, histories, replicas, limits, now)
            found[name] = f"only a part has a copy: {why}" if sizes else f"no copy: {why}"
    return found


def _why(
    name: str,
    histories: Mapping[str, NodeHistory],
    replicas: Replicas,
    limits: RoundLimits,
    now: float,
) -> str:
    if name in replicas.offline:
        return "it cannot be reached"
    if not limits.nodes or not limits.outgoing:
        return "the settings allow none by stability"
    everybody = replace(limits, nodes=len(histories))
    able = [other for other in most_stable(histories, replicas, everybody, now) if other != name]
    if not able:
        hours = limits.recent / 3600
        text = (
            "every other site is offline, has failed more than once, or has failed or been chosen"
        )
        return f"{text} within {hours:g} h"
    able = [other for other in able if (name, other) not in replicas.refused]
    if not able:
        return "it is refused at all sites that could hold one"
    rest, other = min(
        (
            replicas.sizes[name] - replicas.held_bytes(name, other) - replicas.space(other, limits),
            other,
        )
        for other in able
    )
    if rest > 0:
        space, needed = replicas.space(other, limits), replicas.sizes[name]
        text = f"it stores {_size(needed)}, and no site can take more than {_size(space)}"
        return f"{text} of copies (capacity_megabytes)"
    if is_recent(replicas.chosen.get(name), limits, now):
        return f"it was chosen within {limits.recent / 3600:g} h and rests"
    return "others come first in this round"


def _size(size: int) -> str:
    return f"{size / _MEBIBYTE:,.1f} MB" if size >= _MEBIBYTE / 10 else f"{size:,} bytes"
