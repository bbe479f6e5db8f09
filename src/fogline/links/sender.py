"""A log on its way to a broker, in order: record by record, or in batches for another site.

The position of a log moves on when the broker has confirmed everything before it, so nothing is
left out after a restart; what was sent and not yet noted when the process died is sent again. Who
gets batches recognises that.

What there is is sent at once: alone when little comes, in large batches when there is more. Several
batches are under way at a time, but only one until the broker has taken one: a broker that refuses
for some time must not take a batch behind one that it refused, as that would look like the past.

Records on topics of their own do not hold each other up: one that the broker will never take is
counted and reported, stays in its log, and the others go on.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from fogline.broker import (
    Broker,
    BrokerError,
    BrokerForbiddenError,
    BrokerTimeoutError,
    DeliveryFuture,
    Message,
    TopicError,
)
from fogline.broker.topics import check_topic
from fogline.links.batch import PREFIX, encode, group_pieces, pieces_of
from fogline.links.identity import number_of
from fogline.links.start_position import starting_position
from fogline.log import Frame, LogError, SiteLog, get_position, set_position
from fogline.log.files.frames import MAX_PAYLOAD, BadFrame

PUBLISHER = "publisher"
READ_BYTES = 256 << 10
MUCH_BYTES = 64 << 10
MOST_DELIVERIES = 16
_RETRY_SECONDS = 1.0
_CONFIRM_SECONDS = 60.0


# ── how records become messages ──────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Packed:
    """Messages, how many records they hold, and how many cannot be sent at all."""

    messages: list[Message]
    records: int
    left_out: int = 0
    trouble: str = ""
    """Why the last of these cannot be sent."""


Packing = Callable[[list[Frame]], Packed]


def plain(frames: list[Frame]) -> Packed:
    """Every record on its own topic."""
    records = [record for frame in frames for record in _records(frame)]
    problems = {topic: _problem(topic) for topic in {topic for topic, _ in records}}
    messages = [Message(topic, payload) for topic, payload in records if not problems[topic]]
    trouble = max(problems.values(), default="")
    return Packed(messages, len(messages), len(records) - len(messages), trouble)


def pack_renamed(topic: str) -> Packing:
    """Every record on one topic."""

    def pack(frames: list[Frame]) -> Packed:
        messages = [Message(topic, payload) for frame in frames for _, payload in _records(frame)]
        return Packed(messages, len(messages))

    return pack


def pack_batches(folder: Path, topic: str) -> Packing:
    """Batches of the log in `folder`, for the logs of `topic` at the other side."""

    def pack(frames: list[Frame]) -> Packed:
        origin = number_of(folder)
        messages, records, left_out = [], 0, 0
        for group in group_pieces(pieces_of(frames)):
            count = sum(len(piece.payloads) for piece in group)
            payload = encode(origin, group)
            if len(payload) > MAX_PAYLOAD:
                left_out += count
                continue
            messages.append(Message(PREFIX + topic, payload))
            records += count
        return Packed(messages, records, left_out, "it is too large for a message")

    return pack


def _records(frame: Frame) -> Iterable[tuple[str, bytes]]:
    try:
        return frame.records()
    except BadFrame:
        return ()


def _problem(topic: str) -> str:
    """Why nothing can be published to it, if so."""
    try:
        check_topic(topic)
    except TopicError as error:
        return str(error)
    return ""


# ── sending ──────────────────────────────────────────────────────────────────────────────────────


class Outlet:
    """One log on its way to one broker, which need not be there yet. For one thread.

    With `begin` a reader without a position begins there, and keeps that; without, at the start.
    """

    def __init__(
        self,
        log: str,
        logs: SiteLog,
        broker: Broker,
        pack: Packing = plain,
        reader: str = PUBLISHER,
        begin: str = "",
    ) -> None:
        self.log = log
        self.messages = 0
        """Records that were sent, again where they were sent again."""
        self.left_out = 0
        self.refused = 0
        """Records that the broker will not have."""
        self.trouble = ""
        """Why the last record was left out or not taken; it stays when others are sent again."""
        self.problem = ""
        self._folder = logs.folder(log)
        self._name = reader
        self._reader = logs.reader(log, skip_damage=True)
        self._broker = broker
        self._pack = pack
        if begin:
            self._position = starting_position(logs, log, reader, begin)
        else:
            self._position = get_position(self._folder, reader) or 0
        self._confirmed = self._noted = self._position
        self._open: deque[tuple[DeliveryFuture, int]] = deque()
        self._ready: tuple[Packed, int] | None = None
        self._window = 1
        self._due = 0.0

    @property
    def lag(self) -> int:
        """Bytes of the log that the broker has not confirmed."""
        return max(0, self._reader.committed() - self._confirmed)

    @property
    def state(self) -> str:
        if self.problem:
            return self.problem
        return "running" if self._broker.connected else f"disconnected: {self._broker.problem}"

    @property
    def behind(self) -> bool:
        """Whether much is there to be sent."""
        return self._reader.committed() - self._position >= MUCH_BYTES

    @property
    def resting(self) -> bool:
        """Whether there is nothing to do until the log grows."""
        waits = self._open or self._ready or self._confirmed != self._noted
        return not waits and self._reader.committed() <= self._position

    def forward(self) -> bool:
        """Sends what is there, without waiting; whether there was anything."""
        self.settle()
        if not self._may_send() or not (self._ready or self._load()):
            return False
        return self._hand_over()

    def settle(self) -> bool:
        """Looks at what was confirmed; whether nothing is under way any more."""
        while self._open and self._open[0][0].done:
            delivery, position = self._open.popleft()
            try:
                delivery.wait(0)
            except BrokerError as error:
                again = self._put_aside(delivery)
                if again is None or again:
                    self._fail(error)
                    self._ready = (Packed(again, len(again)), position) if again else None
                    break
            self._confirmed, self._window = position, MOST_DELIVERIES
            self.problem = ""
        return not self._open

    def move(self, broker: Broker) -> None:
        """Goes on with another connection: what is not confirmed is sent there."""
        self._broker = broker
        self._rewind()

    def note(self) -> None:
        """Keeps the position that the broker has confirmed."""
        self.settle()
        if self._confirmed == self._noted or not self._folder.exists():
            return
        try:
            set_position(self._folder, self._name, self._confirmed)
            self._noted = self._confirmed
        except LogError as error:
            self.problem = f"cannot note how far it is sent: {error}"

    def finish(self, seconds: float = _CONFIRM_SECONDS) -> None:
        """Waits for what is under way; raises `BrokerError` when it is not confirmed in time."""
        deadline = time.monotonic() + seconds
        try:
            for delivery, _ in self._open:
                try:
                    delivery.wait(max(0.0, deadline - time.monotonic()))
                except BrokerForbiddenError:
                    if self._pack is not plain:
                        raise
        finally:
            self.note()

    def close(self) -> None:
        """Forgets what is under way."""
        self._open.clear()
        self._reader.close()

    def _may_send(self) -> bool:
        ready = self._broker.connected and len(self._open) < self._window
        return ready and (not self._due or time.monotonic() >= self._due)

    def _load(self) -> bool:
        if self._reader.committed() <= self._position:
            return False
        frames, position = self._reader.frames(self._position, READ_BYTES)
        self._ready = (self._pack(frames), position)
        return True

    def _hand_over(self) -> bool:
        assert self._ready is not None
        packed, position = self._ready
        try:
            delivery = self._broker.publish(packed.messages, timeout=0)
        except BrokerTimeoutError:
            return False
        except BrokerError as error:
            self._fail(error)
            return False
        self._open.append((delivery, position))
        self._position, self._ready = position, None
        self.messages += packed.records
        if packed.left_out:
            self.left_out += packed.left_out
            self._report_trouble(f"{self.log}: {packed.trouble}")
        return True

    def _put_aside(self, delivery: DeliveryFuture) -> list[Message] | None:
        """Counts what the broker will never take of what it refused; returns the rest of that.
        Nothing where all of the batch is to be sent again."""
        if self._pack is not plain or not delivery.refused:
            return None
        again = []
        for message, error in delivery.refused:
            if isinstance(error, BrokerForbiddenError):
                self.refused += 1
                self.messages -= 1
                self._report_trouble(f"{message.topic}: {error}")
            else:
                again.append(message)
        return again

    def _report_trouble(self, trouble: str) -> None:
        if trouble != self.trouble:
            self.trouble = trouble
            print(f"not sent: {trouble}", file=sys.stderr, flush=True)

    def _fail(self, error: BrokerError) -> None:
        """Once more in a moment, from what was confirmed on."""
        self.problem = f"cannot send: {error}"
        self._rewind()
        self._due = time.monotonic() + _RETRY_SECONDS

    def _rewind(self) -> None:
        self._window = 1
        self._open.clear()
        self._ready = None
        self._position = self._confirmed
