"""The sink of insights with MAX_ERROR: their results also move the sampling of the next batch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from fogline.plan.lowering.program import Program
from fogline.spark.jobs.log_append import Append, writer_of
from fogline.spark.jobs.outbound import outbound
from fogline.spark.jobs.sampling import LiveSampling


class AdaptiveSink:
    """Results pass through Python here, once per batch."""

    def __init__(self, spark: SparkSession, program: Program, job: str, outlet: str) -> None:
        streams = {s.stream.name for s in (*program.scans, *program.record_scans)}
        self.controls = {name: f"{job}/{name}" for name in streams}
        self._sampling = LiveSampling(spark, program, self.controls)
        self._program = program
        self._job = job
        self._outlet = outlet

    @classmethod
    def for_program(
        cls, spark: SparkSession, program: Program, job: str, outlet: str = ""
    ) -> AdaptiveSink | None:
        """A sink where some insight adapts its sample; nothing where none does."""
        adapts = any(o.sampling and o.sampling.live for o in program.outputs)
        return cls(spark, program, job, outlet) if adapts else None

    def writer(self, append: Append, checkpoint: Path) -> Callable[[DataFrame, int], None]:
        def batch(frame: DataFrame, number: int) -> None:
            kept = frame.orderBy("end", "insight", "key").persist()
            try:
                self._sampling.learn(kept)
                rows = outbound(kept, self._program, self._job, self._outlet).collect()
            finally:
                kept.unpersist()
            for log in dict.fromkeys(row["log"] for row in rows):
                own = [(row["topic"], bytes(row["payload"])) for row in rows if row["log"] == log]
                append(log, writer_of(checkpoint), number, own)

        return batch
