"""When an insight is evaluated, and what each of its aggregates sees then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fogline.language.ast import Call, EventWindow, SessionWindow, TimeWindow
from fogline.testing.reference import formulas
from fogline.testing.reference.formulas import AggregateSample


@dataclass(frozen=True)
class InsightEvent:
    """A record of an insight: the sample it gives to each aggregate, if any."""

    time: int
    inputs: tuple[tuple[Any, ...], ...]
    label: Mapping[str, Any] | None


@dataclass(frozen=True)
class Moment:
    """One evaluation: when, and which events are known then. `first`: start of the session."""

    end: int
    seen: Sequence[InsightEvent]
    first: int = 0
    on_arrival: bool = False


def due(calls: Sequence[Call], events: Sequence[InsightEvent], period: int) -> list[int]:
    """The multiples of the period at which some time window holds a sample.

    Windows that never end (running, by count) ask for an evaluation only where they are alone,
    and then for one at the end of each period with a sample.
    """
    timed = [(i, c) for i, c in enumerate(calls) if isinstance(c.window, TimeWindow)]
    due: set[int] = set()
    for i, call in timed or list(enumerate(calls)):
        length = call.window.millis if isinstance(call.window, TimeWindow) else period
        for sample in _samples(i, events):
            after = sample.time + _offset(call)
            first = (after // period + 1) * period
            due.update(range(first, after + length + 1, period))
    return sorted(due)


def sessions(events: Sequence[InsightEvent], gap: int) -> list[tuple[int, int]]:
    """First and last time of each run of events closer to each other than the gap."""
    found: list[tuple[int, int]] = []
    for event in events:
        if found and event.time - found[-1][1] < gap:
            found[-1] = (found[-1][0], event.time)
        else:
            found.append((event.time, event.time))
    return found


# ── one aggregate at one moment ────────────────────────────────────────────────────────────────


def _offset(call: Call) -> int:
    return call.offset.millis if call.offset else 0


def _samples(i: int, events: Sequence[InsightEvent]) -> list[AggregateSample]:
    """What the events give to aggregate number i."""
    return [
        AggregateSample(e.time, e.inputs[i], e.label) for e in events if None not in e.inputs[i]
    ]


def samples_in(call: Call, i: int, moment: Moment) -> list[AggregateSample]:
    """The samples in an aggregate's window, in order."""
    samples = _samples(i, moment.seen)
    if not moment.on_arrival:
        samples.sort(key=lambda s: (s.time, [_rank(x) for x in s.values]))
    if isinstance(call.window, EventWindow):
        return samples[-call.window.events :]
    if isinstance(call.window, SessionWindow):
        return [s for s in samples if s.time >= moment.first]
    if isinstance(call.window, TimeWindow):
        high = moment.end - _offset(call)
        low = high - call.window.millis
        if moment.on_arrival:
            return [s for s in samples if low < s.time <= high]
        return [s for s in samples if low <= s.time < high]
    return samples


def value_of(call: Call, samples: Sequence[AggregateSample], moment: Moment) -> Any:
    length = call.window.millis if isinstance(call.window, TimeWindow) else 0
    start = moment.end - _offset(call) - length
    return formulas.aggregate(call.function, samples, call.parameters, start, length)


def start_of(
    call: Call, samples: Sequence[AggregateSample], moment: Moment, every: TimeWindow | None
) -> int:
    if isinstance(call.window, TimeWindow):
        return moment.end - _offset(call) - call.window.millis
    if isinstance(call.window, SessionWindow):
        return moment.first
    if isinstance(call.window, EventWindow):
        return samples[0].time if samples else moment.end
    return moment.end - every.millis if every else moment.end


def event_order(
    event: InsightEvent, ordering: Sequence[bool]
) -> tuple[int, list[tuple[int, float, str]]]:
    """By time, then by the inputs of the aggregates that `ordering` marks."""
    own = [inputs for inputs, orders in zip(event.inputs, ordering, strict=True) if orders]
    return event.time, [_rank(value) for values_ in own for value in values_]


def _rank(value: Any) -> tuple[int, float, str]:
    """Numbers, then strings, then missing values."""
    if value is None:
        return 2, 0.0, ""
    return (1, 0.0, value) if isinstance(value, str) else (0, value, "")
