"""Which records of what arrives a log still needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from fogline.links.batch import PREFIX, BadBatchError, Piece, decode
from fogline.links.identity import source_of
from fogline.log import LogRecord

_PORTION_BYTES = 16 << 20


class LogPart(NamedTuple):
    """Records of one source and epoch, as a log stores them."""

    source: int
    epoch: int
    arrival: int | None
    """Microseconds since the epoch; nothing: now."""
    records: Sequence[LogRecord]


class Delivery(NamedTuple):
    """Pieces of another log for a topic."""

    topic: str
    source: int
    pieces: Sequence[Piece]
    arrival: int | None = None

    @property
    def size(self) -> int:
        return sum(len(payload) for piece in self.pieces for payload in piece.payloads)


class Rejected(NamedTuple):
    """A message on a link's topic that is no batch."""

    topic: str
    payload: bytes
    reason: str


def missing_parts(
    deliveries: Iterable[Delivery], last_epoch: Callable[[int], int]
) -> list[LogPart]:
    """What a log does not have yet, where `last_epoch` says how far it is with each source.

    Deliveries of one source may overlap; what is in two of them is needed once.
    """
    known: dict[int, int] = {}
    parts = []
    for topic, source, pieces, arrival in deliveries:
        last = known[source] if source in known else last_epoch(source)
        fresh = [piece for piece in pieces if piece.end > last]
        if fresh:
            known[source] = fresh[-1].end
            records = [(topic, payload) for piece in fresh for payload in piece.payloads]
            parts.append(LogPart(source, fresh[-1].end, arrival, records))
    return parts


def unpack(topic: str, payload: bytes, arrival: int | None = None) -> Delivery | Rejected:
    """A message on a link's topic."""
    target = topic.removeprefix(PREFIX)
    try:
        if not target:
            raise BadBatchError("it is for no topic")
        batch = decode(payload)
    except BadBatchError as error:
        return Rejected(topic, payload, str(error))
    return Delivery(target, source_of(batch.origin, target), batch.pieces, arrival)


def in_portions(found: Iterable[Delivery | Rejected]) -> Iterator[list[Delivery | Rejected]]:
    """Some at a time, so that memory holds no more than a little of what unpacks to very much."""
    portion: list[Delivery | Rejected] = []
    size = 0
    for item in found:
        portion.append(item)
        size += item.size if isinstance(item, Delivery) else len(item.payload)
        if size >= _PORTION_BYTES:
            yield portion
            portion, size = [], 0
    if portion:
        yield portion
