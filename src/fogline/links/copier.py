"""Copies: a log of the site into the logs of the same site that take its topic."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from fogline.links.batch import pieces_of
from fogline.links.identity import number_of, source_of
from fogline.links.inlet import Inlet
from fogline.links.receiver import Delivery
from fogline.links.start_position import START, starting_position
from fogline.log import Claim, LogError, LogFull, SiteLog, claim_reader, set_position

_READ_BYTES = 2 << 20
_RETRY_SECONDS = 0.2
_WAITING = "waiting for what is under way elsewhere"


@dataclass(frozen=True, slots=True)
class Copy:
    log: str
    topic: str
    """Records get this topic and go to every log that takes it."""
    reader: str
    begin: str = field(default=START, compare=False)
    """Where to begin the first time."""


class Copier:
    """One copy at work. For one thread; the logs it writes are guarded.

    It begins when nobody else reads the log as its reader: who sent it elsewhere before has then
    noted how far that went.
    """

    def __init__(self, copy: Copy, logs: SiteLog) -> None:
        self.copy = copy
        self.state = _WAITING
        self.messages = 0
        self.lag = 0
        """Bytes of the log that are not copied yet."""
        self._logs = logs
        self._folder = logs.folder(copy.log)
        self._position = self._noted = 0
        self._claim: Claim | None = None
        self._reader = logs.reader(copy.log, skip_damage=True)
        self._inlets: list[Inlet] = []
        self._source = 0
        self._due = 0.0
        self._may_read()

    def _may_read(self) -> bool:
        if self._claim is None and (claim := claim_reader(self._folder, self.copy.reader)):
            begin = self.copy.begin
            self._position = starting_position(self._logs, self.copy.log, self.copy.reader, begin)
            self._noted, self._claim, self.state = self._position, claim, "running"
        return self._claim is not None

    def feed(self, inlets: Sequence[Inlet]) -> None:
        """These logs are there now. New ones get what is read from now on, also after a crash."""
        self.note()
        self._inlets = [inlet for inlet in inlets if inlet.accepts(self.copy.topic)]
        for inlet in self._inlets:
            inlet.relayed = True

    def step(self) -> int:
        """Copies what is there; returns how many bytes that was."""
        if not self._may_read():
            return 0
        start = self._position
        self.lag = self._reader.committed() - start
        if self.lag <= 0 or time.monotonic() < self._due:
            return 0
        frames, end = self._reader.frames(start, _READ_BYTES)
        pieces = list(pieces_of(frames))
        if pieces and self._inlets:
            self._source = self._source or source_of(number_of(self._folder), self.copy.topic)
            if not self._deliver(Delivery(self.copy.topic, self._source, pieces)):
                return 0
        self._position = end
        self.messages += sum(len(piece.payloads) for piece in pieces)
        return end - start

    def _deliver(self, delivery: Delivery) -> bool:
        """Those that have it already when another has no space leave it out the next time."""
        try:
            for inlet in self._inlets:
                inlet.write((), (delivery,))
        except LogFull as error:
            self.state = f"no space: {error}"
            self._due = time.monotonic() + _RETRY_SECONDS
            return False
        self.state = "running"
        return True

    def note(self) -> None:
        """Retention may remove what is copied."""
        if self._position == self._noted:
            return
        try:
            set_position(self._folder, self.copy.reader, self._position)
            self._noted = self._position
        except LogError as error:
            self.state = f"cannot note how far it is copied: {error}"

    def close(self) -> None:
        self.note()
        self._reader.close()
        if self._claim is not None:
            self._claim.release()
