"""Live sampling: MAX_ERROR insights move the fraction of their stream from batch to batch.

Every result of such an insight says which fraction would have kept its error within the bound.
With AWARENESS ON ACCURACY the fraction follows the most demanding key, with COMPUTATIONS the
median key. It drops at most by half and rises at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from fogline.plan.lowering.program import Output, Program

_MARGIN = 1.2
_LOWEST = 0.001
_HIGHEST = 0.999
"""Never quite all: a full sample says nothing about how small it could be."""


class LiveSampling:
    """Sets the live fractions of one run; `controls` are their names, by stream."""

    def __init__(self, spark: SparkSession, program: Program, controls: Mapping[str, str]) -> None:
        self._controls = controls
        self._live = {o.name: o for o in program.outputs if o.sampling and o.sampling.live}
        self._streams = {
            name: [s for a in o.own for s in a.origins] for name, o in self._live.items()
        }
        jvm: Any = spark.sparkContext._jvm
        self._control = jvm.io.fogline.source.SampleControl
        self.fractions: dict[str, float] = {}
        for streams in self._streams.values():
            for stream in streams:
                self._set(stream, _HIGHEST)

    @property
    def is_needed(self) -> bool:
        return bool(self._live)

    def learn(self, results: DataFrame) -> None:
        """Sets the fraction of the next batch from what this one needed."""
        adapting = F.col("insight").isin(list(self._live)) & F.col("fraction").isNotNull()
        needed: dict[str, list[float]] = {}
        for insight, fraction in results.where(adapting).select("insight", "fraction").collect():
            needed.setdefault(insight, []).append(fraction)
        chosen_fractions: dict[str, float] = {}
        for name, fractions in needed.items():
            for stream in self._streams[name]:
                chosen = _choose(self._live[name], fractions)
                chosen_fractions[stream] = max(chosen_fractions.get(stream, 0.0), chosen)
        for stream, fraction in chosen_fractions.items():
            floor = self.fractions.get(stream, _HIGHEST) / 2
            self._set(stream, min(_HIGHEST, max(fraction * _MARGIN, floor, _LOWEST)))

    def _set(self, stream: str, fraction: float) -> None:
        self.fractions[stream] = fraction
        self._control.set(self._controls[stream], fraction)


def _choose(output: Output, fractions: list[float]) -> float:
    assert output.sampling
    if output.sampling.awareness == "COMPUTATIONS":
        return median(fractions)
    return max(fractions)
