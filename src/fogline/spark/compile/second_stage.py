"""The second stage: panes to windows, in the connector's one keyed step per (channel, key)."""

from __future__ import annotations

import json
from typing import Any

from pyspark.sql import DataFrame

from fogline.language.ast import EventWindow, SessionWindow, TimeWindow
from fogline.plan.expressions import Aggregate, WindowSpec
from fogline.plan.lowering.layout import Layout
from fogline.plan.lowering.program import Channel, Level, ProgramNode
from fogline.plan.operators import Trigger
from fogline.plan.partials import event_inputs_of, partials_of, uses_events


def to_windows(panes: DataFrame, level: Level, layout: Layout, pane_ms: int) -> DataFrame:
    """Rows of (node, key, starts, ends, counts, values, texts, pass, _time)."""
    text = json.dumps(stage_spec(level, layout, pane_ms))
    return DataFrame(_stage(panes).apply(panes._jdf, text), panes.sparkSession)


def to_live_windows(records: DataFrame, level: Level, layout: Layout, pane_ms: int) -> DataFrame:
    """The same rows in real time: every record gives its evaluations at once."""
    text = json.dumps(stage_spec(level, layout, pane_ms) | {"live": True})
    return DataFrame(_stage(records).live(records._jdf, text), records.sparkSession)


def _stage(frame: DataFrame) -> Any:
    jvm: Any = frame.sparkSession.sparkContext._jvm
    return jvm.io.fogline.stage.KeyedStage


def stage_spec(level: Level, layout: Layout, pane_ms: int) -> dict[str, Any]:
    """What the connector must know: see docs/design/execution.md."""
    return {
        "paneMs": pane_ms,
        "channels": [_channel(channel, level, layout) for channel in level.channels],
        "nodes": [_node(node, level.channels[node.channel]) for node in level.nodes],
    }


def _channel(channel: Channel, level: Level, layout: Layout) -> dict[str, Any]:
    places = layout.places(channel)
    slots = [places.slot(partial) for partial in channel.partials]
    spec: dict[str, Any] = {
        "partials": [{"kind": s.java_kind, "at": layout.position(s)} for s in slots]
    }
    if channel.events:
        spec["events"] = {
            "at": layout.position(places.events(channel)),
            "inputs": len(channel.events),
        }
    nodes = [node for node in level.nodes if node.channel == channel.number]
    if any(a.labelled for node in nodes for a in node.aggregates):
        spec["labels"] = True
    return spec


def _node(node: ProgramNode, channel: Channel) -> dict[str, Any]:
    spec: dict[str, Any] = {"id": node.number, "channel": node.channel}
    match node.trigger:
        case TimeWindow(millis=millis):
            spec |= {"kind": "every", "everyMs": millis}
        case EventWindow(events=events):
            spec |= {"kind": "arrival", "everyEvents": events}
        case SessionWindow():
            spec["kind"] = "session"
        case None:
            spec |= {"kind": "arrival", "everyEvents": 1}
    spec["aggregates"] = [_aggregate(a, channel, node.trigger) for a in node.aggregates]
    return spec


def _aggregate(aggregate: Aggregate, channel: Channel, trigger: Trigger) -> dict[str, Any]:
    in_order = uses_events(aggregate, trigger)
    partials = () if in_order else partials_of(aggregate)
    inputs = event_inputs_of(aggregate) if in_order else ()
    spec: dict[str, Any] = {
        "function": aggregate.function,
        "partials": [channel.partials.index(p) for p in partials],
        "inputs": [channel.events.index(e) for e in inputs],
        "parameters": list(aggregate.parameters),
        "window": _window(aggregate.window),
        "offset": aggregate.offset_ms,
    }
    return spec | ({"labels": True} if aggregate.labelled else {})


def _window(window: WindowSpec) -> dict[str, Any]:
    match window:
        case TimeWindow(millis=millis):
            return {"kind": "time", "length": millis}
        case EventWindow(events=events):
            return {"kind": "events", "length": events}
        case SessionWindow(gap_millis=gap):
            return {"kind": "session", "length": gap}
    return {"kind": "running"}
