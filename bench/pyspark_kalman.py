"""A Kalman filter per sensor with Spark's two ways to keep state in Python."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from workloads import KALMAN_Q, KALMAN_R

_OUTPUT = "sensor STRING, time TIMESTAMP, value DOUBLE"
_STATE = "level DOUBLE, variance DOUBLE"


def kalman(events: DataFrame, variant: str) -> DataFrame:
    """One value per event; `variant` is `apply` or `transform`."""
    grouped = events.select("sensor", "time", "temperature").groupBy("sensor")
    if variant == "apply":
        return grouped.applyInPandasWithState(
            _apply, _OUTPUT, _STATE, "append", GroupStateTimeout.NoTimeout
        )
    return grouped.transformWithStateInPandas(_Transform(), _OUTPUT, "Append", "None")


def _filter(
    events: pd.DataFrame, state: tuple[float, float] | None
) -> tuple[pd.DataFrame, tuple[float, float]]:
    ordered = events.sort_values("time", kind="stable")
    levels: list[float] = []
    level, variance = state or (0.0, -1.0)
    for value in ordered["temperature"].tolist():
        if variance < 0:
            level, variance = value, KALMAN_R
        else:
            variance += KALMAN_Q
            gain = variance / (variance + KALMAN_R)
            level += gain * (value - level)
            variance *= 1 - gain
        levels.append(level)
    result = ordered[["sensor", "time"]].assign(value=levels)
    return result, (level, variance)


def _apply(
    key: tuple[str], parts: Iterator[pd.DataFrame], state: GroupState
) -> Iterator[pd.DataFrame]:
    events = pd.concat(list(parts))
    result, kept = _filter(events, state.get if state.exists else None)
    state.update(kept)
    yield result


class _Transform(StatefulProcessor):
    def init(self, handle: StatefulProcessorHandle) -> None:
        self._state = handle.getValueState("state", _STATE)

    def handleInputRows(  # noqa: N802
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: Any,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        result, kept = _filter(pd.concat(list(rows)), self._state.get())
        self._state.update(kept)
        yield result

    def close(self) -> None:
        pass
