"""How a query whose results pass through Python puts a batch into a log, once."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path

Append = Callable[[str, int, int, Sequence[tuple[str, bytes]]], None]
"""Appends the (topic, payload) of a batch to a log: its name, who writes, the batch's number. Does
nothing if the log has that batch of that writer."""


def writer_of(checkpoint: Path) -> int:
    """Who a query is in the logs it writes: the same as long as its checkpoint lives, which is what
    counts its batches. Only while the query runs."""
    query = json.loads((checkpoint / "metadata").read_text(encoding="utf-8"))["id"]
    return int.from_bytes(sha256(query.encode()).digest()[:8], "big") >> 1 | 1
