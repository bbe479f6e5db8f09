"""What the long-running processes of a site do not load: it would stay in memory for nothing."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.site

SPARK = """
from pyspark.sql import functions as F
from fogline.common.settings import load
from fogline.spark.session.session import open_session
spark = open_session(load(), "lean")
assert spark.range(3).select((F.col("id") + F.lit(1)).alias("n")).collect()[2].n == 3
spark.stop()
"""
NUMPY = """
import numpy as np
from pyspark.sql import functions as F
from fogline.common.settings import load
from fogline.spark.session.session import open_session
spark = open_session(load(), "numpy")
row = spark.range(1).select(F.lit(np.float64(1.5)), F.lit(np.int64(2))).first()
assert tuple(row) == (1.5, 2), row
from pyspark.testing import assertDataFrameEqual
assertDataFrameEqual(spark.range(2), spark.range(2))
spark.stop()
"""
STORE = """
import fogline.fabric.process
fogline.fabric.process.save_memory()
import fogline.fabric.federation.fabric
"""


def loaded_after(code: str) -> set[str]:
    """The modules of a new process that has run this."""
    ending = "\nimport sys; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code + ending], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_a_spark_engine_does_without_numpy_and_pandas() -> None:
    assert not {"numpy", "pandas", "pyarrow", "matplotlib"} & loaded_after(SPARK)


def test_objects_of_numpy_still_reach_spark() -> None:
    assert "numpy" in loaded_after(NUMPY)


def test_the_store_does_without_pandas() -> None:
    loaded = loaded_after(STORE)
    assert "duckdb" in loaded
    assert "pandas" not in loaded
