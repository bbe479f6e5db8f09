"""Where each partial of each channel stands in the shared columns of the first stage.

Channels share columns by position: the first input of every channel is `v0`, and a slot such as
"sum of v0" serves every channel that needs the sum of its first input.
"""

from __future__ import annotations

from dataclasses import dataclass

from fogline.plan.expressions import Expr
from fogline.plan.lowering.program import Channel
from fogline.plan.operators import Partial

_WIDTH = {"moments": 3, "comoments": 6, "timed": 7, "first": 2, "last": 2}
_JAVA_KIND = {"count": "sum", "logsum": "sum"}


@dataclass(frozen=True, slots=True)
class Slot:
    """One native aggregate (or a few that belong together) over input columns."""

    kind: str
    inputs: tuple[int, ...]

    @property
    def width(self) -> int:
        return 1 + len(self.inputs) if self.kind == "events" else _WIDTH.get(self.kind, 1)

    @property
    def java_kind(self) -> str:
        return _JAVA_KIND.get(self.kind, self.kind)


@dataclass(frozen=True, slots=True)
class InputPlaces:
    """Which expression stands in which input column, for one channel."""

    inputs: tuple[Expr, ...]
    hashed: tuple[Expr, ...]

    def input_at(self, index: int) -> Expr | None:
        return self.inputs[index] if index < len(self.inputs) else None

    def hashed_at(self, index: int) -> Expr | None:
        return self.hashed[index] if index < len(self.hashed) else None

    def slot(self, partial: Partial) -> Slot:
        source = self.hashed if partial.kind == "hll" else self.inputs
        return Slot(partial.kind, tuple(source.index(e) for e in partial.inputs))

    def events(self, channel: Channel) -> Slot:
        return Slot("events", tuple(self.inputs.index(e) for e in channel.events))


class Layout:
    """The columns of one level, shared by its channels."""

    def __init__(self, channels: tuple[Channel, ...]) -> None:
        self._places = {channel.number: _places(channel) for channel in channels}
        slots: dict[Slot, None] = {}
        for channel in channels:
            places = self.places(channel)
            slots.update(dict.fromkeys(places.slot(p) for p in channel.partials))
            if channel.events:
                slots[places.events(channel)] = None
        self.slots = tuple(slots)
        self.keys = max((len(c.keys) for c in channels), default=0)
        self.inputs = max((len(p.inputs) for p in self._places.values()), default=0)
        self.hashed = max((len(p.hashed) for p in self._places.values()), default=0)

    def places(self, channel: Channel) -> InputPlaces:
        return self._places[channel.number]

    def position(self, slot: Slot) -> int:
        """Where a slot starts in its array (nums, lists or blobs)."""
        own = _array(slot.kind)
        before = self.slots[: self.slots.index(slot)]
        return sum(s.width for s in before if _array(s.kind) == own)


def _array(kind: str) -> str:
    if kind == "hll":
        return "blobs"
    return "lists" if kind in ("values", "events") else "nums"


def _places(channel: Channel) -> InputPlaces:
    plain = [e for p in channel.partials if p.kind != "hll" for e in p.inputs]
    hashed = [e for p in channel.partials if p.kind == "hll" for e in p.inputs]
    return InputPlaces(
        tuple(dict.fromkeys([*plain, *channel.events])), tuple(dict.fromkeys(hashed))
    )
