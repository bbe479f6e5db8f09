"""Light operators: what a gateway does with records. One table says which there are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fogline.gateway.operators.aggregate import Aggregate
from fogline.gateway.operators.base import BadStep, LateRecord, Message, Operator, Record
from fogline.gateway.operators.condition import Types
from fogline.gateway.operators.convert import Convert
from fogline.gateway.operators.deadband import Deadband
from fogline.gateway.operators.filter import Filter
from fogline.gateway.operators.panes import Panes
from fogline.gateway.operators.sample import Sample
from fogline.gateway.operators.throttle import Throttle

__all__ = ["OPERATORS", "BadStep", "LateRecord", "Message", "Operator", "Record", "Setting"]


@dataclass(frozen=True, slots=True)
class Setting:
    """What a step has to know of the decoder before it."""

    types: Types
    lateness_ms: float


Step = Mapping[str, Any]

OPERATORS: dict[str, Callable[[Step, Setting], Operator]] = {
    "filter": lambda step, setting: Filter(step, setting.types),
    "sample": lambda step, setting: Sample(step),
    "convert": lambda step, setting: Convert(step),
    "deadband": lambda step, setting: Deadband(step),
    "throttle": lambda step, setting: Throttle(step),
    "publish": lambda step, setting: Throttle(step),
    "aggregate": lambda step, setting: Aggregate(step, setting.lateness_ms),
    "panes": lambda step, setting: Panes(step, setting.types, setting.lateness_ms),
}
