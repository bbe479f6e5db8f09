"""A log that takes records from several sides and threads: one commit at a time."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Sequence

from fogline.broker.topics import matches, split_share
from fogline.links.receiver import Delivery, LogPart, Rejected, missing_parts
from fogline.log import LogError, LogFull, LogWriter, SiteLog
from fogline.log.files.idleness import Silence

BAD_LOG = "bad/links"
_RETRY_SECONDS = 0.2


class Inlet:
    """The one writer of a log, for all who feed it."""

    def __init__(self, pattern: str, log: LogWriter, source: int = 0) -> None:
        """`source` is the number of those who feed it directly."""
        self.state = "starting"
        self.messages = 0
        self.repeated = 0
        self.bytes = 0
        self._pattern = split_share(pattern)[1]
        self._log = log
        self._guard = threading.Lock()
        self._silence = Silence(log.folder)
        self.relayed = bool(log.sources - {0, source})
        """Others pass records on to it, in copies or over links: if they are held up on their way
        it only seems to be silent."""

    def accepts(self, topic: str) -> bool:
        return matches(self._pattern, topic)

    def write(self, parts: Sequence[LogPart], deliveries: Sequence[Delivery] = ()) -> None:
        """All parts, and of the deliveries what is new, in one commit. Raises what writing a log
        does, `LogFull` among it; then nothing is written."""
        with self._guard:
            self.relayed |= bool(deliveries)
            missing = [*parts, *missing_parts(deliveries, self._log.last_epoch)]
            for part in missing:
                self._log.append(part.records, part.source, part.epoch, part.arrival)
            self._log.commit()
            self.messages += sum(len(part.records) for part in missing)
            self.bytes += sum(len(payload) for part in missing for _, payload in part.records)

    def persist(
        self, parts: Sequence[LogPart], deliveries: Sequence[Delivery], stop: threading.Event
    ) -> bool:
        """Like `write`, and waits for space where there is none. False when it is to end."""
        while True:
            try:
                self.write(parts, deliveries)
                return True
            except LogFull as error:
                self.state = f"no space: {error}"
                if stop.wait(_RETRY_SECONDS):
                    return False

    def listen(self, hears: bool) -> None:
        """Called again and again by one thread, so that readers know silence from nobody being
        there. `hears`: everything that was sent so far has been written."""
        listening = hears and not self.relayed and self._log.has_space()
        self._silence.note(self._log.position, listening)

    def close(self) -> None:
        with self._guard:
            self._log.close()


class BadLinks:
    """What came by a link and cannot be read: counted, and kept in a log for people to look at.

    It never stops the intake: what cannot be kept is only counted.
    """

    def __init__(self, logs: SiteLog) -> None:
        self.count = 0
        self._logs = logs
        self._log: LogWriter | None = None
        self._guard = threading.Lock()

    def keep(self, rejected: Sequence[Rejected]) -> None:
        if not rejected:
            return
        with self._guard:
            self.count += len(rejected)
            with contextlib.suppress(LogError):
                self._log = self._log or self._logs.writer(BAD_LOG)
                self._log.append([(bad.topic, bad.payload) for bad in rejected])
                self._log.commit()

    def close(self) -> None:
        with self._guard:
            if self._log is not None:
                self._log.close()
                self._log = None
