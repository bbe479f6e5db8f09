"""Keys travel as one JSON object per key, typed as declared."""

from __future__ import annotations

import json

from pyspark.sql import Column
from pyspark.sql import functions as F

from fogline.model.streams import NUMBER
from fogline.plan.expressions import KeyValue
from fogline.plan.lowering.program import Channel
from fogline.plan.operators import Key
from fogline.spark.compile.encode import quote_json


def key_json(channels: tuple[Channel, ...], columns: list[str]) -> Column:
    """The `key` column: each channel's keys as a JSON object."""
    chosen: Column | None = None
    for channel in channels:
        value = key_object(channel.keys, [F.col(c) for c in columns])
        test = F.col("channel") == channel.number
        chosen = F.when(test, value) if chosen is None else chosen.when(test, value)
    if len(channels) == 1:
        return key_object(channels[0].keys, [F.col(c) for c in columns]).alias("key")
    assert chosen is not None
    return chosen.alias("key")


def key_object(keys: tuple[Key, ...], values: list[Column]) -> Column:
    """A JSON object of the keys; a missing key is null in it."""
    if not keys:
        return F.lit("{}")
    if all(key.expression.type != NUMBER for key in keys):
        return _object_of_texts(keys, values)
    parts = [
        (v.cast("double") if k.expression.type == NUMBER else v.cast("string")).alias(k.name)
        for k, v in zip(keys, values, strict=False)
    ]
    return F.to_json(F.struct(*parts), {"ignoreNullFields": "false"})


def _object_of_texts(keys: tuple[Key, ...], values: list[Column]) -> Column:
    """The same as `to_json` gives, without its way through Java's own strings."""
    parts: list[Column] = []
    for key, value in zip(keys, values, strict=False):
        parts += [
            F.lit(f"{',' if parts else '{'}{json.dumps(key.name, ensure_ascii=False)}:"),
            quote_json(value),
        ]
    return F.concat(*parts, F.lit("}"))


def key_value(key: KeyValue, column: Column) -> Column:
    """One key read back from the JSON object."""
    kind = "double" if key.type == NUMBER else "string"
    name = key.name.replace("`", "``")
    return F.from_json(column, f"`{name}` {kind}")[key.name]
