"""A run as messages ready to be written or sent: encoded, then disturbed as asked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fogline.common.errors import UsageError
from fogline.simulate import disturb
from fogline.simulate.disturb import DueMessage
from fogline.simulate.encode import FORMATS, encode_batch
from fogline.simulate.schema import FormatName
from fogline.simulate.streams import Run, batches


@dataclass(frozen=True, slots=True)
class Wire:
    """How the events of a run look on the wire: format, disorder in seconds, fraction of malformed
    messages."""

    format: FormatName
    shuffle: float = 0.0
    bad: float = 0.0

    def __post_init__(self) -> None:
        if self.format not in FORMATS:
            known = ", ".join(FORMATS)
            raise UsageError(f"unknown format {self.format!r}", f"one of {known}")
        if not 0 <= self.shuffle < float("inf"):
            raise UsageError(f"shuffle must be 0 seconds or more, not {self.shuffle:g}")
        if not 0 <= self.bad <= 0.9:
            raise UsageError(f"bad must be a fraction from 0 to 0.9, not {self.bad:g}")


def messages(run: Run, wire: Wire) -> Iterator[list[DueMessage]]:
    """All messages in the order they are to be sent, in lists of some thousand."""
    chunks = _encode_run(run, wire.format)
    if wire.shuffle:
        chunks = disturb.shuffle(chunks, wire.shuffle, run.seed)
    if wire.bad:
        chunks = disturb.rubbish(chunks, wire.bad, run.seed, wire.format)
    return chunks


def _encode_run(run: Run, format: FormatName) -> Iterator[list[DueMessage]]:
    for batch in batches(run):
        yield list(map(DueMessage, batch.times, encode_batch(batch, format)))
