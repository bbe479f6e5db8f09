"""What goes wrong on the way: messages out of order, and rubbish between them.

Both are seeded. Neither changes or drops a message: `shuffle` reorders, `rubbish` adds, so what a
query computes from the good messages must stay the same.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from fogline.simulate.schema import FormatName


class DueMessage(NamedTuple):
    """A message that is due at `due_ms`. `text` is ASCII, or Latin-1 to carry rubbish bytes."""

    due_ms: int
    text: str

    def payload(self) -> bytes:
        return self.text.encode("latin-1")


def shuffle(
    chunks: Iterator[list[DueMessage]], seconds: float, seed: int
) -> Iterator[list[DueMessage]]:
    """Delays each message by less than `seconds`, so none is later than that behind the newest."""
    rng = random.Random(f"shuffle {seed}")
    pending: list[tuple[float, int, str]] = []
    number = 0
    for chunk in chunks:
        for message in chunk:
            pending.append((message.due_ms + rng.random() * seconds * 1000, number, message.text))
            number += 1
        pending.sort()
        # Nothing still to come is due before the newest message so far.
        ready = bisect_right(pending, (float(chunk[-1].due_ms), -1, ""))
        yield [DueMessage(int(due), text) for due, _, text in pending[:ready]]
        del pending[:ready]
    yield [DueMessage(int(due), text) for due, _, text in pending]


def rubbish(
    chunks: Iterator[list[DueMessage]], fraction: float, seed: int, format: FormatName
) -> Iterator[list[DueMessage]]:
    """Adds malformed messages until they are about `fraction` (below 1) of all."""
    rng = random.Random(f"rubbish {seed}")
    for chunk in chunks:
        mixed = []
        for message in chunk:
            mixed.append(message)
            while rng.random() < fraction:
                mixed.append(DueMessage(message.due_ms, make_malformed(rng, message.text, format)))
        yield mixed


def make_malformed(rng: random.Random, text: str, format: FormatName) -> str:
    """A one-line message that no reader of the format can take for a record."""
    kind = rng.randrange(4)
    if kind == 0:
        return "".join(chr(rng.randrange(0x80, 0x100)) for _ in range(rng.randrange(4, 40)))
    if kind == 1:
        return "not a record"
    if kind == 2:
        return '{"time": "yesterday"' if format == "json" else "?" + text
    return "?" if format == "csv" else text[: rng.randrange(1, len(text) - 1)]
