"""The classes that the set-up prepared are really mapped by Spark's Java."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from fogline.common.settings import Settings
from fogline.spark.class_cache import prepare
from fogline.spark.session.session import CLASSES

pytestmark = pytest.mark.spark


def test_java_maps_the_prepared_classes(spark: SparkSession) -> None:
    java = spark.sparkContext._gateway.proc.pid
    assert str(CLASSES) in Path(f"/proc/{java}/maps").read_text(encoding="utf-8")


def test_what_fits_the_connector_is_left_alone(settings: Settings) -> None:
    made = CLASSES.stat().st_mtime_ns
    assert not prepare(settings)
    assert CLASSES.stat().st_mtime_ns == made
