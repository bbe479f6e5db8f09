"""A job's operators one after the other: messages in, payloads out, all between in memory.

A chain is a function of the messages it has seen: the same messages in the same order give the same
outputs, also when its state was written down and read back in between. It checks all of its steps
when it is made, and reports everything that is wrong at once.

A message that carries its own time and comes a second time, as MQTT does after a failure, counts
once: the chain remembers the last few thousand, as part of its state.
"""

from __future__ import annotations

import json
import math
from base64 import b64decode, b64encode
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from fogline.common.errors import DataError
from fogline.formats import BadMessage
from fogline.gateway.jobs.rejects import Reject
from fogline.gateway.operators import (
    OPERATORS,
    BadStep,
    LateRecord,
    ReceivedMessage,
    Record,
    Setting,
)
from fogline.gateway.operators.decode import DecodeOptions, Decoder, read_options
from fogline.gateway.operators.panes import PanesOperator
from fogline.model.jobs import Assignment, Steps

MOST_STEPS = 64
_DECODE = "decode"
_INSTEAD = {"rate": "seconds", "seconds": "rate"}
"""Two ways to say the same: the parameter that is given replaces the other."""
_ENCODE = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


@dataclass(slots=True)
class Counts:
    """What a chain has seen. Messages that came again are only in `repeated`."""

    records: int = 0
    out: int = 0
    bad: int = 0
    late: int = 0
    repeated: int = 0

    def as_tuple(self) -> tuple[int, ...]:
        return self.records, self.out, self.bad, self.late, self.repeated


@dataclass(slots=True)
class Results:
    """What some messages gave: payloads, and what was rejected."""

    out: list[bytes] = field(default_factory=list)
    bad: list[Reject] = field(default_factory=list)
    late: list[Reject] = field(default_factory=list)


class Chain:
    """Raises `DataError` with every problem when made of steps that cannot be run."""

    def __init__(
        self,
        steps: Sequence[Mapping[str, Any]],
        given: Mapping[str, Any],
        parameters: Mapping[str, Any],
    ) -> None:
        problems: list[str] = []
        options, rest = _split(steps, given, parameters, problems)
        types = {c.name: c.type for c in options.columns} if options.columns is not None else None
        setting = Setting(types, options.lateness_ms)
        made = [_operator(index, step, setting, problems) for index, step in rest]
        if problems:
            raise DataError("; ".join(problems))
        self.stream = options.stream
        self.counts = Counts()
        self._raw = not steps and not given
        """Nothing is to be done: messages pass as they are, whatever they hold."""
        self._decoder = Decoder(options)
        self._operators = [operator for operator in made if operator is not None]
        self._time_field = options.time if types is None else None
        # Records of panes are as the second stage reads them.
        self._complete = bool(self._operators) and isinstance(self._operators[-1], PanesOperator)
        self._remember = options.remember
        self._seen: OrderedDict[bytes, None] = OrderedDict()

    def feed(self, message: ReceivedMessage, into: Results) -> None:
        """What this message gives is added to `into`."""
        if self._raw:
            self.counts.records += 1
            self.counts.out += 1
            into.out.append(message.payload)
            return
        if self._remember and self._is_known(message):
            self.counts.repeated += 1
            return
        try:
            records = self._decoder.decode(message)
        except BadMessage as error:
            self.counts.bad += 1
            into.bad.append(Reject(str(error), message.payload, message.topic))
            return
        self.counts.records += len(records)
        for record in records:
            self._pass(record, 0, into)

    def flush(self, into: Results) -> None:
        """Everything that is held back leaves, step by step."""
        for index, operator in enumerate(self._operators):
            for record in operator.flush():
                self._pass(record, index + 1, into)

    def _pass(self, record: Record, start: int, into: Results) -> None:
        """One record through the operators from `start` on."""
        records = [record]
        for operator in self._operators[start:]:
            passed: list[Record] = []
            for item in records:
                try:
                    passed += operator.feed(item)
                except LateRecord as late:
                    passed += late.out
                    self._is_late(item, str(late), into)
            records = passed
            if not records:
                return
        self.counts.out += len(records)
        into.out += [self._encode_record(item) for item in records]

    def _is_late(self, record: Record, reason: str, into: Results) -> None:
        self.counts.late += 1
        message = record.message
        if message is None:
            into.late.append(Reject(reason, self._encode_record(record)))
        else:
            into.late.append(Reject(reason, message.payload, message.topic))

    def _encode_record(self, record: Record) -> bytes:
        values = record.values
        timed = self._time_field is not None or "time" in values
        if not self._complete and (record.message is None or not timed):
            micros = record.time
            values = {**values, "time": micros // 1000 if micros % 1000 == 0 else micros / 1000}
        try:
            text = _ENCODE(values)
        except ValueError:
            text = _ENCODE(_finite(values))
        return text.encode("utf-8", "replace")

    def _is_known(self, message: ReceivedMessage) -> bool:
        key = message.topic.encode("utf-8", "replace")[-64:]
        digest = blake2b(message.payload, digest_size=8, key=key).digest()
        if digest in self._seen:
            return True
        self._seen[digest] = None
        if len(self._seen) > self._remember:
            self._seen.popitem(last=False)
        return False

    # ── state ──────────────────────────────────────────────────────────────────────────────────

    def state(self) -> dict[str, Any]:
        """All that is remembered, as JSON."""
        return {
            "counts": list(self.counts.as_tuple()),
            "seen": b64encode(b"".join(self._seen)).decode(),
            "operators": [operator.state() for operator in self._operators],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Goes on from the state of a chain with the same steps, whatever its parameters were."""
        self.counts = Counts(*state["counts"])
        seen = b64decode(state["seen"])
        self._seen = OrderedDict((seen[at : at + 8], None) for at in range(0, len(seen), 8))
        for operator, known in zip(self._operators, state["operators"], strict=True):
            if known is not None:
                operator.restore(known)


def make_chain(assignment: Assignment, parameters: Mapping[str, Any] | None = None) -> Chain:
    """The chain of an assignment. Raises `DataError` with every problem."""
    assert isinstance(assignment.work, Steps)
    given = assignment.parameters if parameters is None else parameters
    return Chain(assignment.work.steps, assignment.input, given)


def _split(
    steps: Sequence[Mapping[str, Any]],
    given: Mapping[str, Any],
    parameters: Mapping[str, Any],
    problems: list[str],
) -> tuple[DecodeOptions, list[tuple[int, Mapping[str, Any]]]]:
    """The options of the decoder, and the other steps with their numbers."""
    if len(steps) > MOST_STEPS or not all(isinstance(step, Mapping) for step in steps):
        problems.append(f"steps are a list of at most {MOST_STEPS} mappings")
        return DecodeOptions(), []
    try:
        steps = with_parameters(steps, parameters)
    except BadStep as error:
        problems.append(str(error))
    numbered = list(enumerate(steps))
    decode = dict(given)
    if numbered and numbered[0][1].get("op") == _DECODE:
        decode |= {key: value for key, value in numbered.pop(0)[1].items() if key != "op"}
    try:
        return read_options(decode), numbered
    except BadStep as error:
        problems.append(f"decode: {error}")
        return DecodeOptions(), numbered


def _operator(index: int, step: Mapping[str, Any], setting: Setting, problems: list[str]) -> Any:
    name = step.get("op")
    try:
        if not isinstance(name, str) or name not in OPERATORS:
            raise BadStep(f"no operator {name!r:.60}; there are {', '.join((_DECODE, *OPERATORS))}")
        return OPERATORS[name](step, setting)
    except BadStep as error:
        problems.append(f"step {index} ({name!r:.40}): {error}")
        return None


def _finite(value: Any) -> Any:
    """What JSON cannot say is null."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def with_parameters(
    steps: Sequence[Mapping[str, Any]], parameters: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """The steps with these values. Raises `BadStep` for a parameter that is for none of them.

    A parameter is `<step>.<field>`, where the step is its index, its `op` or its `name`, or only
    the field, and then it counts for every step that has it.
    """
    made = [dict(step) for step in steps]
    for name, value in parameters.items():
        places = [(i, key) for i in range(len(made)) for key in _fields(name, i, made[i])]
        if not places:
            raise BadStep(f"parameter {name[:80]!r} is for no step")
        for index, key in places:
            made[index].pop(_INSTEAD.get(key, ""), None)
            made[index][key] = value
    return made


def _fields(name: str, index: int, step: Mapping[str, Any]) -> list[str]:
    """Which field of a step a parameter is for: one or none."""
    if name in step and name != "op":
        return [name]
    head, dot, key = name.partition(".")
    named = (str(index), step.get("op"), step.get("name"))
    return [key] if dot and key and key != "op" and head in named else []
