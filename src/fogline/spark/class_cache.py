"""Spark's classes, prepared once so that Java maps them at every start instead of loading them.

The set-up makes the file beside the connector, by `python -m fogline.spark.class_cache`. It is for
this Java and these jars: Java looks, and without a fitting one starts as it always does.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from pyspark import SparkContext

from fogline.common import settings
from fogline.common.errors import FoglineError
from fogline.common.settings import Settings
from fogline.plan.analysis.build import plan_text
from fogline.plan.lowering.program import lower
from fogline.plan.rules import optimise
from fogline.spark.compile.scan import Input
from fogline.spark.run.engine import StreamRun
from fogline.spark.session.session import CLASSES, JAR, open_session

_QUERY = """
readings = STREAM FROM file(path="readings", format="json", time="time");

level = COMPUTE AVG(value, 2 s) BY device EVERY 1 s;
spread = COMPUTE SDEV(value, 4 s) + KALMAN[0.1, 0.1](value) EVERY 2 s;
high = COMPUTE value BY device WHEN > 10;
"""
_READINGS = 20


def prepare(own: Settings) -> bool:
    """Runs a small query in a Java that keeps its classes; says whether there was need to."""
    if CLASSES.exists() and CLASSES.stat().st_mtime > JAR.stat().st_mtime:
        return False
    CLASSES.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(dir=own.scratch) as name:
        made = Path(name) / CLASSES.name
        _run(replace(own, java=f"-XX:ArchiveClassesAtExit={made} -Xlog:disable"), Path(name))
        if not made.exists():
            return False
        shutil.copy(made, CLASSES.with_suffix(".new"))
        CLASSES.with_suffix(".new").replace(CLASSES)
    return True


def _run(own: Settings, folder: Path) -> None:
    """The file is written when Java has ended."""
    readings = folder / "readings.json"
    lines = (f'{{"time": {n}, "device": "d{n % 2}", "value": {n}}}\n' for n in range(_READINGS))
    readings.write_text("".join(lines), encoding="utf-8")
    program = lower(optimise(plan_text(_QUERY))[0])
    spark = open_session(own, "fogline-classes")
    inputs = {scan.stream.name: Input(readings) for scan in (*program.scans, *program.record_scans)}
    with StreamRun(spark, program, inputs, lambda _: None, own.scratch) as run:
        run.wait()
    spark.stop()
    java = SparkContext._gateway.proc  # type: ignore[union-attr]
    java.stdin.close()
    java.wait(120)


def main() -> None:
    try:
        if prepare(settings.load()):
            print(f"class cache: made {CLASSES.name}")
    except (FoglineError, OSError) as error:
        sys.exit(f"class cache: {error}")


if __name__ == "__main__":
    main()
