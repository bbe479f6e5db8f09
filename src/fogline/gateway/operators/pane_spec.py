"""What a step `panes` asks for: the JSON of the Spark source's option `panes`, checked."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fogline.gateway.operators.base import BadStep, StepOptions
from fogline.gateway.operators.cells import COUNTING, LISTS, NAN, WIDTHS, Cells, CellSlot
from fogline.gateway.operators.condition import Test, Types, compile_condition

_MOST = 1000


@dataclass(frozen=True, slots=True)
class KeySpec:
    name: str
    column: str
    number: bool


@dataclass(frozen=True, slots=True)
class InputSpec:
    column: str
    text: bool
    when: Test | None


@dataclass(frozen=True, slots=True)
class ChannelSpec:
    number: int
    keys: tuple[KeySpec, ...]
    inputs: tuple[InputSpec | None, ...]


class PaneSpec:
    """Channels of keys and inputs, and slots over the inputs. Raises `BadStep` when made wrong."""

    def __init__(self, options: StepOptions, types: Types) -> None:
        if types is None:
            raise BadStep("the decoder must name its 'fields' with their types")
        self._types = types
        whole = options.take("paneMs", lambda v: type(v) is int and v > 0, "milliseconds, above 0")
        self.pane_ms: int = whole
        self.channels = tuple(map(self._channel, _list(options, "channels")))
        self.inputs = max((len(c.inputs) for c in self.channels), default=_MOST)
        self.slots, self._numbers, self._lists = self._read_slots(_list(options, "slots"))
        counting = [slot.at for slot in self.slots if slot.kind in COUNTING]
        empty = (0.0 if at in counting else NAN for at in range(self._numbers))
        self._empty = array("d", empty)

    def cells(self, pane: int) -> Cells:
        return Cells(pane, self._empty, self._lists)

    def _channel(self, data: Any) -> ChannelSpec:
        channel = _mapping(data, "a channel")
        keys, inputs = channel.get("keys"), channel.get("inputs")
        if type(channel.get("number")) is not int or not isinstance(keys, list):
            raise BadStep("a channel has a 'number', 'keys' and 'inputs'")
        if not isinstance(inputs, list) or max(len(keys), len(inputs)) > _MOST:
            raise BadStep("a channel has a list of 'inputs'")
        made = tuple(map(self._input, inputs))
        return ChannelSpec(channel["number"], tuple(map(self._key, keys)), made)

    def _key(self, data: Any) -> KeySpec:
        key = _mapping(data, "a key")
        if not isinstance(key.get("name"), str):
            raise BadStep("a key has a 'name'")
        column = self._column(key)
        return KeySpec(key["name"], column, self._types[column] == "double")

    def _input(self, data: Any) -> InputSpec | None:
        if data is None:
            return None
        given = _mapping(data, "an input")
        column = self._column(given)
        when = given.get("when")
        test = None if when is None else compile_condition(when, self._types)
        return InputSpec(column, self._types[column] == "string", test)

    def _column(self, data: Mapping[str, Any]) -> str:
        column = data.get("column")
        if not isinstance(column, str) or column not in self._types:
            raise BadStep(f"column {column!r:.60} is not in 'fields'")
        if self._types[column] not in ("double", "string"):
            raise BadStep(f"column {column} must be double or string")
        return column

    def _read_slots(self, data: list[Any]) -> tuple[tuple[CellSlot, ...], int, int]:
        slots, numbers, lists = [], 0, 0
        for item in data:
            given = _mapping(item, "a slot")
            kind = given.get("kind")
            inputs = self._slot_inputs(kind, given.get("inputs"))
            slots.append(CellSlot(str(kind), inputs, lists if kind in LISTS else numbers))
            if kind in LISTS:
                lists += 1 + len(inputs) if kind == "events" else 1
            else:
                numbers += WIDTHS[str(kind)]
        return tuple(slots), numbers, lists

    def _slot_inputs(self, kind: Any, inputs: Any) -> tuple[int, ...]:
        if kind not in LISTS and kind not in WIDTHS:
            known = ", ".join((*WIDTHS, *LISTS))
            raise BadStep(f"a gateway keeps no {kind!r:.40}; it keeps {known}")
        needed = 2 if kind == "comoments" else 1
        if not isinstance(inputs, list) or len(inputs) < needed or len(inputs) > _MOST:
            raise BadStep(f"slot {kind} has a list of {needed} or more 'inputs'")
        if any(type(i) is not int or not 0 <= i < self.inputs for i in inputs):
            raise BadStep(f"slot {kind} names an input that no channel has")
        return tuple(inputs)


def _list(options: StepOptions, name: str) -> list[Any]:
    found: list[Any] = options.take(
        name, lambda v: isinstance(v, list) and len(v) <= _MOST, "a list"
    )
    return found


def _mapping(data: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(data, Mapping):
        raise BadStep(f"{what} must be a mapping")
    return data
