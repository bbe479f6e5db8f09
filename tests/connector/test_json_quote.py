"""Keys of texts are written as Spark's own `to_json` writes them."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from fogline.model.streams import STRING
from fogline.plan.expressions import KeyValue
from fogline.plan.operators import Key
from fogline.spark.compile.keys import key_object

pytestmark = pytest.mark.spark

TEXTS = ["", "plain", 'a "quoted" one', "back\\slash", "line\nbreak\ttab\r", "\x00\x01\x1f", "\x7f"]
TEXTS += [
    "straße",
    "日本",
    "🚀 up",
    "/slash/",
    "{}[]:,",
    "\u2028\u2029",
    "x" * 1000,
    "x" * 999 + '"',
]


def test_texts_of_keys_are_those_of_to_json(spark: SparkSession) -> None:
    rows = spark.createDataFrame(
        [(a, b) for a in (*TEXTS, None) for b in (*TEXTS[:4], None)], "a string, b string"
    )
    names = ("a", 'odd "name"\n日')
    keys = tuple(Key(name, KeyValue(name, STRING)) for name in names)
    ours = key_object(keys, [F.col("a"), F.col("b")])
    struct = F.struct(F.col("a").alias(names[0]), F.col("b").alias(names[1]))
    told = rows.select(ours, F.to_json(struct, {"ignoreNullFields": "false"})).collect()
    assert len(told) == 5 * (len(TEXTS) + 1)
    assert [ours for ours, _ in told] == [sparks for _, sparks in told]
