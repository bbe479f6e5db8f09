"""`panes`: the first stage of a windowed query, near the devices.

It takes the JSON that the Spark source takes as option `panes`, and what it gives is what the
source gives: `channel`, `key`, `pane`, `nums`, `lists`, number for number, NaN as null. `t` is the
time of the pane's newest record in microseconds; records leave in its order. A pane may come in
several records (after a flush, or where too many were open): the second stage joins them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from fogline.formats.values import java_double
from fogline.gateway.operators.base import (
    MOST_KEYS,
    GatewayOperator,
    LateRecord,
    Record,
    StepOptions,
)
from fogline.gateway.operators.cells import NAN, Cells, Numbers
from fogline.gateway.operators.condition import Types
from fogline.gateway.operators.pane_spec import ChannelSpec, PaneSpec

_RARE = re.compile("[\U00010000-\U0010ffff]")
_NAMED = (r"\"", r"\\", r"\b", r"\f", r"\n", r"\r", r"\t")
_ESCAPES = {code: f"\\u{code:04X}" for code in range(0x20)} | {
    ord(sign): escape for sign, escape in zip('"\\\b\f\n\r\t', _NAMED, strict=True)
}


class PanesOperator(GatewayOperator):
    """Cells by pane, channel and key; `lateness` is in seconds, by default the stream's."""

    def __init__(self, step: Mapping[str, Any], types: Types, lateness_ms: float) -> None:
        options = StepOptions(step)
        self._spec = PaneSpec(options, types)
        self._lateness = int(options.not_negative("lateness", lateness_ms / 1000) * 1e6)
        self._length = self._spec.pane_ms * 1000
        self._panes: dict[int, Cells] = {}
        self._newest = -(1 << 62)
        self._cells = 0
        options.close()

    def feed(self, record: Record) -> list[Record]:
        out: list[Record] = []
        if record.time > self._newest:
            self._newest = record.time
            out = self._close()
        pane = record.time // self._length * self._spec.pane_ms
        if (pane * 1000) + self._length + self._lateness <= self._newest:
            raise LateRecord("its pane was sent already", out)
        for channel in self._spec.channels:
            inputs = self._load(channel, record)
            if inputs is not None:
                self._add(pane, channel, inputs, record)
        return out + self.flush() if self._cells > MOST_KEYS else out

    def _load(self, channel: ChannelSpec, record: Record) -> list[float] | None:
        """The inputs of a record; None where it has none of them."""
        found, into = False, [NAN] * self._spec.inputs
        for place, source in enumerate(channel.inputs):
            if source is None:
                continue
            value = record.values.get(source.column)
            if value is not None and (source.when is None or source.when(record)):
                into[place] = 1.0 if source.text else value
                found = True
        return into if found else None

    def _add(self, pane: int, channel: ChannelSpec, inputs: list[float], record: Record) -> None:
        cells = self._panes.get(pane)
        if cells is None:
            cells = self._panes[pane] = self._spec.cells(pane)
        before = len(cells)
        key = f"{channel.number} {key_json(channel, record.values)}"
        cells.add(key, self._spec.slots, inputs, record.time)
        self._cells += len(cells) - before

    def _close(self) -> list[Record]:
        limit = (self._newest - self._lateness - self._length) // 1000
        due = sorted(pane for pane in self._panes if pane <= limit)
        return [record for pane in due for record in self._emit_pane(pane)]

    def _emit_pane(self, pane: int) -> list[Record]:
        cells = self._panes.pop(pane)
        self._cells -= len(cells)
        ordered = sorted(cells.places.items(), key=lambda item: cells.newest[item[1]])
        return [_record(key, cells, place) for key, place in ordered]

    def flush(self) -> list[Record]:
        return [record for pane in sorted(self._panes) for record in self._emit_pane(pane)]

    def state(self) -> Any:
        panes = [[pane, *cells.state()] for pane, cells in self._panes.items()]
        return {"newest": self._newest, "panes": panes}

    def restore(self, state: Any) -> None:
        self._newest = state["newest"]
        self._panes = {}
        for pane, *kept in state["panes"]:
            self._panes[pane] = cells = self._spec.cells(pane)
            cells.restore(kept)
        self._cells = sum(map(len, self._panes.values()))


def _record(text: str, cells: Cells, place: int) -> Record:
    channel, _, key = text.partition(" ")
    newest = cells.newest[place]
    values = {
        "channel": int(channel),
        "key": key,
        "pane": cells.pane,
        "nums": _plain(cells.numbers_of(place)),
        "lists": [_plain(values) for values in cells.lists_of(place)],
        "t": newest,
    }
    return Record(newest, values)


def _plain(numbers: Numbers) -> list[float | None]:
    return [value if value == value else None for value in numbers]


def key_json(channel: ChannelSpec, values: Mapping[str, Any]) -> str:
    """The keys of a record as Spark's to_json would write them."""
    parts = []
    for key in channel.keys:
        value = values.get(key.column)
        text = "null" if value is None else java_double(value) if key.number else quote_json(value)
        parts.append(f"{quote_json(key.name)}:{text}")
    return "{" + ",".join(parts) + "}"


def quote_json(text: str) -> str:
    """A JSON string as Jackson writes it: hexadecimal in capitals, rare characters in pairs."""
    escaped = text.translate(_ESCAPES)
    return f'"{escaped if escaped.isascii() else _RARE.sub(_pair, escaped)}"'


def _pair(found: re.Match[str]) -> str:
    code = ord(found[0]) - 0x10000
    return f"\\u{0xD800 + (code >> 10):04X}\\u{0xDC00 + (code & 0x3FF):04X}"
