"""From a log into the store, each message exactly once.

The store keeps the position of a log in the same manifest as the values read up to it. A crash
forgets both or neither, and what still waited in memory is read again.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from fogline.log import LogReader, set_position
from fogline.log.files.frames import BadFrame, Frame
from fogline.log.reader import READ_BYTES
from fogline.storage.ingest.columns import decode_batch
from fogline.storage.ingest.decode import ArrivedMessage, FeedSource
from fogline.storage.store import SiteStore

READER = "store"
_WAIT_SECONDS = 0.1


class Feeder:
    """Reads one log; for one thread, until `close`. A store may have many feeders, one per log.

    `step` never loses its place: when it raises, nothing was taken, and it can be called again.
    `rejected` counts the values left out, by reason, and `reader.skipped` the bytes of damage.
    Messages of topics that `leave_out` names come from elsewhere.
    """

    def __init__(
        self,
        store: SiteStore,
        log: Path,
        source: FeedSource,
        leave_out: Callable[[str], bool] | None = None,
    ) -> None:
        self.rejected: Counter[str] = Counter()
        self.reader = LogReader(log, skip_damage=True)
        self._store = store
        self._log = log
        self._name = log.name
        self._source = source
        self._leave_out = leave_out
        self._needed = -1
        self._keep()

    @property
    def position(self) -> int:
        """Up to where the log is in the store, on disk or in memory."""
        return self._store.position(self._name)

    def step(self, max_bytes: int = READ_BYTES) -> int:
        """Takes what comes next in the log; returns how many messages, 0 at its end."""
        start = self.position
        frames, end = self.reader.frames(start, max_bytes)
        messages = [message for frame in frames for message in self._messages(frame)]
        decoded = decode_batch(self._source, messages)
        if end > start:
            self._store.ingest(decoded.table, self._name, end)
            self.rejected.update(decoded.rejected)
        self._keep()
        return sum(frame.count for frame in frames)

    def run(self, stop: threading.Event) -> None:
        """Follows the log until `stop` is set."""
        while not stop.is_set():
            if not self.step():
                self.reader.wait(self.position, _WAIT_SECONDS)

    def close(self) -> None:
        self._keep()
        self.reader.close()

    def _messages(self, frame: Frame) -> list[ArrivedMessage]:
        try:
            records = frame.records()
            if self._leave_out is not None:
                records = [record for record in records if not self._leave_out(record[0])]
            return [(topic, payload, frame.arrival) for topic, payload in records]
        except BadFrame:
            self.rejected["unreadable frame"] += frame.count
            return []

    def _keep(self) -> None:
        """Notes in the log what is still needed: everything that is not in a file of the store."""
        needed = self._store.committed(self._name)
        if needed != self._needed and self._log.exists():
            set_position(self._log, READER, needed)
            self._needed = needed
