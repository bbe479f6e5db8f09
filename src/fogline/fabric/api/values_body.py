"""What is put into the store by hand, as JSON or Arrow, checked: all of it or nothing is taken."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from fogline.common.http.bodies import json_object
from fogline.fabric.http.arrow import from_arrow
from fogline.fabric.query.times import moment
from fogline.storage.errors import BadQuery, BadValue
from fogline.storage.ingest.mapping import split
from fogline.storage.values import BATCH, batch, labels_text

MOST_VALUES = 1_000_000
_KNOWN = frozenset({"metric", "entity", "time", "value", "labels", "number"})
_SPECIAL = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def from_json_body(body: bytes, now: int) -> pa.Table:
    """A batch from `{"values": [{metric, entity, time?, value, labels?}]}`. Raises `BadValue`."""
    items = json_object(body, frozenset({"values"})).get("values")
    if not isinstance(items, list):
        raise BadValue('the body must have a list "values"')
    _check_count(len(items))
    rows = []
    for number, item in enumerate(items):
        try:
            rows.append(_row(item, now))
        except (BadValue, BadQuery, UnicodeEncodeError) as error:
            reason = error.message if isinstance(error, BadValue | BadQuery) else "half a character"
            raise BadValue(f"value {number + 1} of {len(items)}: {reason}") from error
    if not rows:
        return BATCH.empty_table()
    metric, entity, time, values, text, labels = zip(*rows, strict=True)
    numbers = pa.array(values, pa.float64(), from_pandas=False)
    return batch(metric, entity, time, numbers, text, labels)


def from_arrow_body(body: bytes, now: int) -> pa.Table:
    """A batch from a stream with the columns metric, entity, value or text, time?, labels?."""
    table, _ = from_arrow(body)
    _check_count(len(table))
    names = table.column_names
    unknown = sorted(set(names) - set(BATCH.names))
    if unknown or len(set(names)) < len(names) or not {"metric", "entity"} <= set(names):
        raise BadValue(f"the columns of values are {', '.join(BATCH.names)}, each once")
    given = {name: table[name].combine_chunks() for name in names}
    empty = pa.nulls(len(table))
    time = _times(given["time"]) if "time" in given else np.full(len(table), now, np.int64)
    labels = _labels(given["labels"]) if "labels" in given else None
    value, text = _numbers(given.get("value", empty)), _texts(given.get("text", empty), "text")
    metric, entity = (_texts(given[name], name) for name in ("metric", "entity"))
    return batch(metric, entity, time, value, text, labels)


def _row(item: Any, now: int) -> tuple[Any, ...]:
    if not isinstance(item, Mapping):
        raise BadValue("it must be an object")
    unknown = sorted(set(item) - _KNOWN)
    if unknown:
        raise BadValue(f"it has an unknown {unknown[0]!r:.80}")
    metric, entity = item.get("metric"), item.get("entity")
    if not isinstance(metric, str) or not isinstance(entity, str):
        raise BadValue("its metric and entity are to be texts")
    (metric + entity).encode()
    number, text = _value(item)
    return metric, entity, _time(item.get("time"), now), number, text, _map(item.get("labels"))


def _value(item: Mapping[str, Any]) -> tuple[float | None, str | None]:
    value = item.get("value")
    if item.get("number") is True and isinstance(value, str):
        if value not in _SPECIAL:
            raise BadValue(f"{value!r:.80} is not a number")
        return _SPECIAL[value], None
    return split(value)


def _time(time: Any, now: int) -> int:
    if time is None:
        return now
    if isinstance(time, str):
        return moment(time, now)
    if isinstance(time, int) and not isinstance(time, bool):
        return moment(str(time), now)
    raise BadValue("its time must be a text or a whole number of microseconds")


def _map(labels: Any) -> str | None:
    if labels is None:
        return None
    if not isinstance(labels, dict) or not all(isinstance(value, str) for value in labels.values()):
        raise BadValue("its labels must be a mapping of texts")
    text = labels_text(labels)
    (text or "").encode()
    return text


def _times(column: Any) -> Any:
    """Whole microseconds, from times of any unit and zone."""
    kind = column.type
    if pa.types.is_timestamp(kind):
        try:
            micros = column.cast(pa.timestamp("us", kind.tz), safe=kind.unit != "ns")
        except pa.ArrowException as error:
            raise BadValue("a time is outside the years 1 to 9998") from error
        return micros.cast(pa.int64())
    if not pa.types.is_integer(kind):
        raise BadValue("the column time has times, or whole numbers of microseconds")
    return column


def _numbers(column: Any) -> Any:
    kind = column.type
    simple = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    if not simple and not pa.types.is_null(kind):
        raise BadValue("the column value has numbers")
    return column.cast(pa.float64(), safe=False)


def _texts(column: Any, name: str) -> Any:
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    known = pa.types.is_string, pa.types.is_large_string, pa.types.is_null
    if not any(is_kind(kind) for is_kind in known):
        raise BadValue(f"the column {name} has texts")
    return column.cast(pa.string())


def _labels(column: Any) -> Any:
    """Each different text is a JSON object of texts, written as we write it."""
    encoded = _texts(column, "labels").dictionary_encode()
    texts = []
    for text in encoded.dictionary.to_pylist():
        try:
            found = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise BadValue("the column labels has JSON objects of texts") from error
        texts.append(_map(found))
    return pa.array(texts, pa.string()).take(encoded.indices)


def _check_count(count: int) -> None:
    if count > MOST_VALUES:
        raise BadValue(f"at most {MOST_VALUES} values are taken at once, not {count}")
