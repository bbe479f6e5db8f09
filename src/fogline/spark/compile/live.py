"""A program compiled for real time: insights without `EVERY`, a value on every arrival."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

from fogline.plan.lowering.layout import Layout
from fogline.plan.lowering.program import Program
from fogline.spark.compile.columns import Functions, no_functions
from fogline.spark.compile.first_stage import to_records
from fogline.spark.compile.program import Compiled, rejecting_once
from fogline.spark.compile.results import evaluate_records, evaluate_windows, output_records
from fogline.spark.compile.scan import Input, read_scans
from fogline.spark.compile.second_stage import to_live_windows


def compile_live(
    spark: SparkSession,
    program: Program,
    inputs: Mapping[str, Input],
    functions: Functions = no_functions,
) -> Compiled:
    """The queries of a program that `split_live` gave for real time."""
    numbers = {output.name: index for index, output in enumerate(program.outputs)}
    frames: dict[str, DataFrame] = {}
    if program.levels:
        frames["live"] = _windows(spark, program, inputs, numbers, functions)
    if program.record_outputs:
        once = rejecting_once(program, inputs)
        table = read_scans(spark, program.record_scans, once, True, functions, ordered=False)
        frames["live-records"] = evaluate_records(table, program.record_outputs, numbers)
    return Compiled(
        {name: output_records(frame, program, numbers) for name, frame in frames.items()}
    )


def _windows(
    spark: SparkSession,
    program: Program,
    inputs: Mapping[str, Input],
    numbers: dict[str, int],
    functions: Functions,
) -> DataFrame:
    (level,) = program.levels
    layout = Layout(level.channels)
    table = read_scans(spark, program.scans, inputs, True, functions, ordered=False)
    records = to_records(table, level.channels, layout)
    windows = to_live_windows(records, level, layout, program.pane_ms)
    return evaluate_windows(windows, level, numbers, functions)
