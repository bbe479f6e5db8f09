"""The first stage as a reader of one stream can do it: panes without a row per record.

That is when keys and inputs are plain fields and every condition is one a reader can decide. The
same specification goes to the connector's source and to gateways.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fogline.plan.expressions import Every, Expr, Field, FromOrigin, Guarded
from fogline.plan.lowering.layout import Layout
from fogline.plan.lowering.program import Channel, Program
from fogline.plan.lowering.pushdown import pushable, split_condition
from fogline.plan.lowering.source_spec import physical_columns, stream_options
from fogline.plan.operators import Scan


class _NeedsRecordsError(Exception):
    """Something that only an engine with expressions can compute."""


@dataclass(frozen=True)
class _PaneRequest:
    """What is to be made of the records of all scans."""

    channels: tuple[Channel, ...]
    layout: Layout
    pane_ms: int
    columns: Mapping[Field, str]


def program_panes(program: Program) -> dict[str, dict[str, str]] | None:
    """For every stream the options of a reader that makes its panes; None where one cannot."""
    if not program.levels or program.record_outputs:
        return None
    first = program.levels[0]
    found = {}
    for scan in program.scans:
        options = pane_options(
            scan, program.scans, first.channels, Layout(first.channels), program.pane_ms
        )
        if options is None:
            return None
        found[scan.stream.name] = options | {"lateness": str(scan.stream.lateness_ms)}
    return found


def pane_options(
    scan: Scan,
    scans: tuple[Scan, ...],
    channels: tuple[Channel, ...],
    layout: Layout,
    pane_ms: int,
    form: str | None = None,
) -> dict[str, str] | None:
    """`stream_options` with the panes in them, or None where the records must be seen."""
    request = _PaneRequest(channels, layout, pane_ms, physical_columns(scans))
    pushed, rest = split_condition(scan.condition, request.columns)
    sketched = any(slot.kind == "hll" for slot in layout.slots)
    if rest or sketched or scan.sampling:
        return None
    try:
        spec = _spec(scan, request)
    except _NeedsRecordsError:
        return None
    return stream_options(scan, request.columns, pushed, form) | {"panes": json.dumps(spec)}


def _spec(scan: Scan, request: _PaneRequest) -> dict[str, Any]:
    channels = [_channel(channel, scan, request) for channel in request.channels]
    return {
        "paneMs": request.pane_ms,
        "channels": [channel for channel in channels if channel is not None],
        "slots": [{"kind": s.kind, "inputs": list(s.inputs)} for s in request.layout.slots],
    }


def _channel(channel: Channel, scan: Scan, request: _PaneRequest) -> dict[str, Any] | None:
    """A channel as the source fills it; None where this stream lacks its keys."""
    here = set(scan.columns or ())
    keys = []
    for key in channel.keys:
        if not isinstance(key.expression, Field):
            raise _NeedsRecordsError
        if key.expression not in here:
            return None
        keys.append({"name": key.name, "column": request.columns[key.expression]})
    places = request.layout.places(channel)
    inputs = [_input(places.input_at(i), scan, request) for i in range(request.layout.inputs)]
    return {"number": channel.number, "keys": keys, "inputs": inputs}


def _input(expr: Expr | None, scan: Scan, request: _PaneRequest) -> dict[str, Any] | None:
    """An input as the source reads it; None when it is never there."""
    terms, value = _taken_apart(expr)
    if value is None:
        return None
    if not isinstance(value, Field) or value not in request.columns:
        raise _NeedsRecordsError
    elsewhere = any(isinstance(t, FromOrigin) and scan.stream.name not in t.origins for t in terms)
    if elsewhere or value not in (scan.columns or ()):
        return None
    found = {"column": request.columns[value]}
    tests = [pushable(t, request.columns) for t in terms if not isinstance(t, FromOrigin)]
    if None in tests:
        raise _NeedsRecordsError
    return found | ({"when": {"op": "and", "args": tests}} if tests else {})


def _taken_apart(expr: Expr | None) -> tuple[tuple[Expr, ...], Expr | None]:
    """Conditions and value of an input."""
    if not isinstance(expr, Guarded):
        return (), expr
    condition = expr.condition
    return (condition.terms if isinstance(condition, Every) else (condition,)), expr.value
