"""A program compiled to Spark: one DataFrame of results, the same code for batch and streams."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from fogline.plan.lowering.layout import Layout
from fogline.plan.lowering.program import Level, Program
from fogline.spark.compile.columns import Functions, no_functions
from fogline.spark.compile.first_stage import to_panes
from fogline.spark.compile.levels import to_next_level
from fogline.spark.compile.results import evaluate_records, evaluate_windows, output_records
from fogline.spark.compile.scan import Input, read_scans
from fogline.spark.compile.second_stage import to_windows
from fogline.spark.compile.source_panes import read_panes


@dataclass(frozen=True)
class Compiled:
    """The queries of a program, by name; each gives the columns of `output_records`."""

    frames: Mapping[str, DataFrame]


def compile_program(
    spark: SparkSession,
    program: Program,
    inputs: Mapping[str, Input],
    streaming: bool,
    functions: Functions = no_functions,
    panes: DataFrame | None = None,
) -> Compiled:
    """`panes` are the rows of a first stage that ran elsewhere."""
    numbers = {output.name: index for index, output in enumerate(program.outputs)}
    frames: dict[str, DataFrame] = {}
    if program.levels:
        if panes is None:
            panes = _panes(spark, program, inputs, streaming, functions)
        frames["windows"] = _windows(panes, program, numbers, functions)
    if program.record_outputs:
        once = rejecting_once(program, inputs)
        table = read_scans(spark, program.record_scans, once, streaming, functions, ordered=False)
        frames["records"] = evaluate_records(table, program.record_outputs, numbers)
    return Compiled(
        {name: output_records(frame, program, numbers) for name, frame in frames.items()}
    )


def rejecting_once(program: Program, inputs: Mapping[str, Input]) -> dict[str, Input]:
    """Streams that two queries read keep their bad records in one of them only."""
    windowed = {scan.stream.name for scan in program.scans}
    return {
        name: replace(given, rejects=None) if name in windowed else given
        for name, given in inputs.items()
    }


def _panes(
    spark: SparkSession,
    program: Program,
    inputs: Mapping[str, Input],
    streaming: bool,
    functions: Functions,
) -> DataFrame:
    first = program.levels[0]
    layout = Layout(first.channels)
    panes = read_panes(
        spark, program.scans, first.channels, layout, program.pane_ms, inputs, streaming
    )
    if panes is not None:
        return panes
    table = read_scans(spark, program.scans, inputs, streaming, functions)
    return to_panes(table, first.channels, layout, program.pane_ms)


def _windows(
    panes: DataFrame, program: Program, numbers: dict[str, int], functions: Functions
) -> DataFrame:
    first, *rest = program.levels
    windows = to_windows(panes, first, Layout(first.channels), program.pane_ms)
    results = evaluate_windows(windows, first, numbers, functions)
    for level in rest:
        results = _next(results, level, program, numbers, functions)
    return results


def _next(
    results: DataFrame,
    level: Level,
    program: Program,
    numbers: dict[str, int],
    functions: Functions,
) -> DataFrame:
    """One level up: results become records, and results again."""
    layout = Layout(level.channels)
    rows = to_next_level(results, level, layout, numbers, program.pane_ms, functions)
    windows = to_windows(rows, level, layout, program.pane_ms)
    return evaluate_windows(windows, level, numbers, functions, above=True)


def physical_plan(frame: DataFrame) -> str:
    """The physical plan as Spark formats it, with nothing executed."""
    execution: Any = frame._jdf.queryExecution()
    return str(execution.executedPlan().toString()).rstrip()
