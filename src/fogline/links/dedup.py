"""Which messages were stored lately: a message that is delivered again is recognised."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from hashlib import blake2b

from fogline.log import LogReader

REMEMBERED = 200_000


class Recent:
    """Remembers the last messages by topic and content."""

    def __init__(self, remembered: int = REMEMBERED) -> None:
        self._remembered = remembered
        self._seen: OrderedDict[bytes, None] = OrderedDict()

    def is_new(self, topic: str, payload: bytes) -> bool:
        """Whether it was not seen lately; from now on it was."""
        digest = _digest(topic, payload)
        if digest in self._seen:
            return False
        self._add(digest)
        return True

    def note(self, messages: Iterable[tuple[str, bytes]]) -> None:
        for topic, payload in messages:
            self._add(_digest(topic, payload))

    def note_tail(self, reader: LogReader) -> None:
        """What the end of a log holds: it may be delivered again."""
        position = reader.tail()
        while position < reader.committed():
            records, position = reader.read(position)
            self.note(records[-self._remembered :])

    def _add(self, digest: bytes) -> None:
        self._seen[digest] = None
        if len(self._seen) > self._remembered:
            self._seen.popitem(last=False)


def _digest(topic: str, payload: bytes) -> bytes:
    """Of all of both: the topic's length comes first, so nothing of one counts as the other's."""
    name = topic.encode()
    return blake2b(b"%d " % len(name) + name + payload, digest_size=12).digest()
