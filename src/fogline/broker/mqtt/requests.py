"""Requested subscriptions, and the calls that wait for the broker's answer to them."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain, zip_longest

from fogline.broker.errors import BrokerClosedError, BrokerError, BrokerTimeoutError

MOST_FILTERS = 8
"""In one packet: what even brokers with narrow limits take."""


@dataclass(slots=True, eq=False)
class Request:
    """One subscribe (with a QoS) or unsubscribe (without) until the broker has answered."""

    pattern: str
    qos: int | None
    answered: threading.Event = field(default_factory=threading.Event)
    error: BrokerError | None = None

    def like(self, other: Request) -> bool:
        """Whether both are subscribes, or both the opposite."""
        return (self.qos is None) is (other.qos is None)

    def answer(self, error: BrokerError | None = None) -> None:
        self.error = error
        self.answered.set()

    def wait(self, seconds: float, timeout: float) -> None:
        """At most so many seconds, the rest of the caller's time-out."""
        if not self.answered.wait(seconds):
            raise BrokerTimeoutError(f"no answer for {self.pattern!r} within {timeout:g} s")
        if self.error is not None:
            raise self.error


class Subscriptions:
    """Which filters are requested, and what must still be sent to make it so."""

    def __init__(self) -> None:
        self._requested: dict[str, int] = {}
        self._unsent: list[Request] = []
        self._sent: dict[int, list[Request]] = {}
        self._closed = False
        self._lock = threading.Lock()

    def ask(self, requests: Iterable[Request]) -> None:
        with self._lock:
            if self._closed:
                raise BrokerClosedError("the broker connection is closed")
            for request in requests:
                if request.qos is None:
                    self._requested.pop(request.pattern, None)
                else:
                    self._requested[request.pattern] = request.qos
                self._unsent.append(request)

    def take_unsent(self) -> list[list[Request]]:
        """In their order, and those together that may be asked in one packet."""
        with self._lock:
            unsent, self._unsent = self._unsent, []
        groups: list[list[Request]] = []
        for request in unsent:
            if groups and len(groups[-1]) < MOST_FILTERS and request.like(groups[-1][0]):
                groups[-1].append(request)
            else:
                groups.append([request])
        return groups

    def note_sent(self, packet_id: int, requests: list[Request]) -> None:
        self._sent[packet_id] = requests

    def answer(self, packet_id: int, errors: Sequence[BrokerError | None] = ()) -> None:
        """`errors`: one for each request, or none where the broker does not say."""
        requests = self._sent.pop(packet_id, [])
        for request, error in zip_longest(requests, errors[: len(requests)]):
            if error is not None:
                with self._lock:
                    self._requested.pop(request.pattern, None)
            request.answer(error)

    def restore(self, session_present: bool) -> None:
        """What got no answer is asked again; everything is when the broker has forgotten us."""
        with self._lock:
            again = [*chain.from_iterable(self._sent.values()), *self._unsent]
            self._sent.clear()
            if not session_present:
                asked = {request.pattern for request in again}
                missing = [Request(p, q) for p, q in self._requested.items() if p not in asked]
                again = missing + again
            self._unsent = again

    def close(self) -> None:
        with self._lock:
            self._closed = True
            for request in [*chain.from_iterable(self._sent.values()), *self._unsent]:
                request.answer(BrokerClosedError("the broker connection is closed"))
            self._sent.clear()
            self._unsent.clear()
