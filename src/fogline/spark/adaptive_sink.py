"""The sink of insights with MAX_ERROR: their results also move the sampling of the next batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import DataFrame, SparkSession

from fogline.model.sites import insight_log
from fogline.plan.program import Program
from fogline.spark.collecting import collect
from fogline.spark.sampling import LiveSampling

Append = Callable[[str, int, Sequence[bytes]], None]
"""Appends the results of a batch to a log, by its name; does nothing if the log has that batch."""


class AdaptiveSink:
    """Results pass through Python here, once per batch."""

    def __init__(self, spark: SparkSession, program: Program, job: str) -> None:
        streams = {s.stream.name for s in (*program.scans, *program.record_scans)}
        self.controls = {name: f"{job}/{name}" for name in streams}
        self._sampling = LiveSampling(spark, program, self.controls)
        self._job = job

    @classmethod
    def for_program(cls, spark: SparkSession, program: Program, job: str) -> AdaptiveSink | None:
        """A sink where some insight adapts its sample; nothing where none does."""
        adapts = any(o.sampling and o.sampling.live for o in program.outputs)
        return cls(spark, program, job) if adapts else None

    def writer(self, append: Append) -> Callable[[DataFrame, int], None]:
        def batch(frame: DataFrame, number: int) -> None:
            results = collect(frame)
            self._sampling.learn(results)
            for insight in dict.fromkeys(r.insight for r in results):
                own = [r.record.encode() for r in results if r.insight == insight]
                append(insight_log(self._job, insight), number, own)

        return batch
