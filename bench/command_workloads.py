"""What the commands compute: four query files, and the numbers that peers need to do the same.

Imports nothing but the standard library: peers run in an environment of their own.
"""

from __future__ import annotations

from dataclasses import dataclass

from workloads import KALMAN_Q, KALMAN_R, STREAM

DUST_LIMIT = 1.0
"""99 % of the readings are above it."""
PER_SECOND = 10_000


@dataclass(frozen=True)
class CommandWorkload:
    """`insights` is the part of the query file behind its stream."""

    name: str
    title: str
    insights: str

    @property
    def query(self) -> str:
        return STREAM + self.insights


Level = tuple[float, float, int]
"""Of a Kalman filter: level, variance, readings so far."""


def filter_step(last: Level | None, value: float) -> Level:
    if last is None:
        return value, KALMAN_R, 1
    level, variance, count = last
    variance += KALMAN_Q
    gain = variance / (variance + KALMAN_R)
    return level + gain * (value - level), variance * (1 - gain), count + 1


WORKLOADS = (
    CommandWorkload(
        "filter",
        "Parse and filter: 99 % pass",
        f"dusty = COMPUTE dust BY sensor WHEN > {DUST_LIMIT:g};\n",
    ),
    CommandWorkload(
        "tumbling",
        "Three insights by 788 sensors, 5 s tumbling",
        "mean = COMPUTE AVG(temperature, 5 s) BY sensor EVERY 5 s;\n"
        "peak = COMPUTE MAX(temperature, 5 s) BY sensor EVERY 5 s;\n"
        "readings = COMPUTE COUNT(temperature, 5 s) BY sensor EVERY 5 s;\n",
    ),
    CommandWorkload(
        "sliding",
        "Average by 788 sensors, 60 s every 1 s",
        "mean = COMPUTE AVG(temperature, 60 s) BY sensor EVERY 1 s;\n",
    ),
    CommandWorkload(
        "kalman",
        "Kalman filter by 788 sensors, a value per reading",
        f"level = COMPUTE KALMAN[{KALMAN_Q}, {KALMAN_R}](temperature) BY sensor;\n",
    ),
)
