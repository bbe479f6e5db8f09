"""`fogline explain`: the plan of a query, step by step."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import click

from fogline.common.settings import Settings
from fogline.plan.analysis.query_file import LoadedQuery, load_query
from fogline.plan.explain.explain import explain
from fogline.plan.lowering.program import lower
from fogline.plan.operators import Plan


def explain_file(path: Path, as_json: bool, with_spark: bool, settings: Settings) -> None:
    loaded = load_query(path, settings)
    explanation, optimised = explain(loaded.query, loaded.plan)
    physical = spark_plans(loaded, optimised, settings) if with_spark else {}
    if as_json:
        document = {
            "query": explanation.query,
            "before": explanation.before,
            "rules": [{"rule": rule, "change": change} for rule, change in explanation.steps],
            "after": explanation.after,
            "spark": physical,
        }
        click.echo(json.dumps(document))
        return
    click.echo(explanation.render())
    for name, text in physical.items():
        click.echo(f"\n# Spark, {name}\n{text}")


def spark_plans(loaded: LoadedQuery, plan: Plan, settings: Settings) -> dict[str, str]:
    """Spark's physical plan of every query of the program, without reading any data."""
    from fogline.spark.compile.functions import spark_functions
    from fogline.spark.compile.program import compile_program, physical_plan
    from fogline.spark.compile.scan import Input
    from fogline.spark.session.session import open_session

    program = lower(plan)
    spark = open_session(settings)
    with tempfile.TemporaryDirectory(dir=settings.scratch) as folder:
        empty = Path(folder) / "empty"
        empty.touch()
        scans = (*program.scans, *program.record_scans)
        inputs = {scan.stream.name: Input(empty) for scan in scans}
        functions = spark_functions(loaded.functions)
        compiled = compile_program(spark, program, inputs, streaming=False, functions=functions)
        return {name: physical_plan(frame) for name, frame in compiled.frames.items()}
