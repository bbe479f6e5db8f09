"""Fogline as a measured engine: the way `fogline run` takes a query, up to the sink."""

from __future__ import annotations

import sys

from protocol import Checked, Given, serve
from pyspark.sql import DataFrame
from streaming import count_results, run_to_end
from workloads import RECORDS, insights

from fogline.common.settings import load
from fogline.plan.analysis.build import plan_text
from fogline.plan.lowering.program import lower
from fogline.plan.rules import optimise
from fogline.spark.compile.program import compile_program
from fogline.spark.compile.scan import Input
from fogline.spark.session.session import open_session

_TYPED = ("insight", "key", "start", "end", "value", "count")


class FoglineEngine:
    def __init__(self, workload: str, variant: str) -> None:
        self._text = insights(workload, variant)
        self._columns = (*_TYPED, "record") if variant == RECORDS else _TYPED
        self._settings = load()
        self._spark = open_session(self._settings, "fogline-bench")

    def time(self, given: Given) -> float:
        return run_to_end(lambda: self._frame(given), self._settings.scratch)

    def check(self, given: Given) -> Checked:
        return count_results(self._frame(given), self._settings.scratch)

    def _frame(self, given: Given) -> DataFrame:
        program = lower(optimise(plan_text(self._text))[0])
        inputs = {scan.stream.name: Input(given.events) for scan in self._scans(program)}
        compiled = compile_program(self._spark, program, inputs, streaming=True)
        (frame,) = compiled.frames.values()
        return frame.select(*self._columns)

    @staticmethod
    def _scans(program: object) -> tuple[object, ...]:
        return (*program.scans, *program.record_scans)  # type: ignore[attr-defined]


if __name__ == "__main__":
    serve(FoglineEngine(sys.argv[1], sys.argv[2]))
