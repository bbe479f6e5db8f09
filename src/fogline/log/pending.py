"""Records on their way into the log: the frame that is being filled."""

from __future__ import annotations

from collections.abc import Iterable

from fogline.log.errors import LogError
from fogline.log.files.frames import (
    FRAME_BYTES,
    HEAD,
    MAX_PAYLOAD,
    RECORD,
    SAME_TOPIC,
    FrameBody,
    LogRecord,
)
from fogline.log.files.names import topic_bytes


class Pending:
    """Encoded records of one source and epoch that will be one frame."""

    def __init__(self, source: int, epoch: int, arrival: int) -> None:
        self.source = source
        self.epoch = epoch
        self.arrival = arrival
        self.count = 0
        self._parts: list[bytes] = []
        self._size = HEAD.size
        self._topic = ""

    def fill(self, records: Iterable[LogRecord]) -> LogRecord | None:
        """Takes records until the frame is full; returns the first for which there was no space."""
        parts, size, same, pack = self._parts, self._size, self._topic, RECORD.pack
        start = len(parts)
        left = None
        for record in records:
            if size >= FRAME_BYTES:
                left = record
                break
            topic, payload = record
            length = len(payload)
            if length > MAX_PAYLOAD:
                raise LogError(f"a payload has at most {MAX_PAYLOAD} bytes, not {length}")
            if topic == same:
                head = pack(length, SAME_TOPIC)
            else:
                raw = topic_bytes(topic)
                head, same = pack(length, len(raw)) + raw, topic
            parts += (head, payload, b"\n")
            size += len(head) + length + 1
        self._size, self._topic = size, same
        self.count += (len(parts) - start) // 3
        return left

    def body(self, last: bool) -> FrameBody:
        records = b"".join(self._parts)
        return FrameBody(last, self.arrival, self.source, self.epoch, self.count, records)
