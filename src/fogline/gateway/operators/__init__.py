"""Light operators: what a gateway does with records. One table says which there are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fogline.gateway.operators.aggregate import AggregateOperator
from fogline.gateway.operators.base import (
    BadStep,
    GatewayOperator,
    LateRecord,
    ReceivedMessage,
    Record,
)
from fogline.gateway.operators.condition import Types
from fogline.gateway.operators.convert import ConvertOperator
from fogline.gateway.operators.deadband import DeadbandOperator
from fogline.gateway.operators.filter import FilterOperator
from fogline.gateway.operators.panes import PanesOperator
from fogline.gateway.operators.sample import SampleOperator
from fogline.gateway.operators.throttle import ThrottleOperator

__all__ = [
    "OPERATORS",
    "BadStep",
    "GatewayOperator",
    "LateRecord",
    "ReceivedMessage",
    "Record",
    "Setting",
]


@dataclass(frozen=True, slots=True)
class Setting:
    """What a step has to know of the decoder before it."""

    types: Types
    lateness_ms: float


StepTree = Mapping[str, Any]

OPERATORS: dict[str, Callable[[StepTree, Setting], GatewayOperator]] = {
    "filter": lambda step, setting: FilterOperator(step, setting.types),
    "sample": lambda step, setting: SampleOperator(step),
    "convert": lambda step, setting: ConvertOperator(step),
    "deadband": lambda step, setting: DeadbandOperator(step),
    "throttle": lambda step, setting: ThrottleOperator(step),
    "publish": lambda step, setting: ThrottleOperator(step),
    "aggregate": lambda step, setting: AggregateOperator(step, setting.lateness_ms),
    "panes": lambda step, setting: PanesOperator(step, setting.types, setting.lateness_ms),
}
