"""Messages into values, one record at a time: every format, every oddity.

`columns` does the same for plain json by whole columns, and falls back to this.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from fogline.storage import times
from fogline.storage.decode_results import add_result, entity_of
from fogline.storage.errors import BadValue
from fogline.storage.mapping import (
    NDJSON,
    SENML,
    Decoded,
    Insights,
    Readings,
    Results,
    Rows,
    as_labels,
    number_in,
    scalar,
)
from fogline.storage.payloads import records_of

Message = tuple[str, bytes, int]
"""Topic, payload, arrival in microseconds."""
Source = Readings | Insights | Results


def decode(source: Source, messages: Iterable[Message]) -> Decoded:
    """The values of messages, in their order."""
    rows = Rows()
    for topic, payload, arrival in split_lines(source, messages):
        try:
            records = records_of(source, payload)
        except BadValue as error:
            rows.rejected[error.message] += 1
            continue
        if isinstance(source, Insights):
            for record in records:
                _insight(source, record, rows)
        elif isinstance(source, Results):
            for record in records:
                add_result(source, record, arrival, rows)
        elif source.format == SENML:
            _senml(source, records, topic, arrival, rows)
        else:
            for record in records:
                _reading(source, record, topic, arrival, rows)
    return rows.decoded()


def split_lines(source: Source, messages: Iterable[Message]) -> Iterable[Message]:
    """Messages with one record or list each; ndjson may have several lines in one."""
    if not isinstance(source, Readings) or source.format != NDJSON:
        return messages
    return [
        (topic, line, arrival)
        for topic, payload, arrival in messages
        for line in payload.split(b"\n")
        if line.strip() or line == payload
    ]


def _reading(
    source: Readings, record: dict[str, Any], topic: str, arrival: int, rows: Rows
) -> None:
    time = arrival if source.time is None else times.parse(record.get(source.time))
    entity = topic if source.entity is None else record.get(source.entity)
    labels = as_labels({name: record.get(name) for name in source.labels})
    if source.metric is not None and source.value is not None:
        metric = scalar(record.get(source.metric))
        named = None if metric is None else source.prefix + metric
        rows.add(named, entity, time, _value(source, record, source.value), labels)
        return
    for name in _scalars(source, record) if source.takes_all else source.fields:
        value = _value(source, record, name)
        if value is not None:
            rows.add(source.prefix + name, entity, time, value, labels)


def _value(source: Readings, record: dict[str, Any], name: str) -> object:
    value = record.get(name)
    return number_in(value) if source.untyped else value


def _scalars(source: Readings, record: dict[str, Any]) -> list[str]:
    reserved = source.reserved
    return [
        name
        for name, value in record.items()
        if isinstance(value, str | int | float) and name not in reserved
    ]


def _senml(
    source: Readings, records: list[dict[str, Any]], topic: str, arrival: int, rows: Rows
) -> None:
    if len(records) == 1 and isinstance(records[0].get("e"), list):
        base = {key: value for key, value in records[0].items() if key != "e"}
        inner = [item for item in records[0]["e"] if isinstance(item, dict)]
        records = [base, *inner]
    name: object = ""
    base_time: object = None
    named = [r for r in records if source.entity is not None and r.get("n") == source.entity]
    entity = _senml_value(named[0]) if named else None
    for record in records:
        name = entity or record.get("bn", name)
        base_time = record.get("bt", base_time)
        value = _senml_value(record)
        if value is not None and _wanted(source, record):
            time = _senml_time(base_time, record.get("t"), arrival)
            labels = as_labels({key: record.get(key) for key in source.labels})
            rows.add(f"{source.prefix}{record.get('n', '')}", name or topic, time, value, labels)


def _senml_value(record: dict[str, Any]) -> Any:
    """Some devices write numbers in quotes, and texts as `sv`."""
    value = record.get("v")
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return value
    found = (value, *(record.get(key) for key in ("vs", "sv", "vb")))
    return next((item for item in found if item is not None), None)


def _wanted(source: Readings, record: dict[str, Any]) -> bool:
    return not source.fields or record.get("n") in source.fields


def _senml_time(base: object, offset: object, arrival: int) -> int:
    """Base time and offset, which is in seconds; without both the arrival."""
    if base is None and offset is None:
        return arrival
    if base is None:
        return times.parse(offset)
    start = times.parse(base)
    if offset is None or start == times.NO_TIME:
        return start
    if isinstance(offset, bool) or not isinstance(offset, int | float) or abs(offset) > 1e12:
        return times.NO_TIME
    return times.bounded(start + round(offset * 1_000_000))


def _insight(source: Insights, record: dict[str, Any], rows: Rows) -> None:
    keys, window = record.get("keys"), record.get("window")
    if not isinstance(keys, dict) or not isinstance(window, dict) or "insight" not in record:
        rows.rejected["not a result"] += 1
        return
    time = times.parse(window.get("end"))
    entity, labels = _names(keys)
    value = record.get("value")
    shown = json.dumps(value) if isinstance(value, list | dict) else value
    rows.add(record["insight"], entity, time, shown, labels)
    if source.counts and record.get("count") is not None:
        rows.add(f"{record['insight']}.count", entity, time, record["count"], labels)


def _names(keys: dict[str, Any]) -> tuple[str, str | None]:
    """Entity and labels; those of texts are kept. Others may be equal and yet differ as texts."""
    if all(type(value) is str for value in keys.values()):
        return _kept_names(tuple(keys.items()))
    return entity_of(keys), as_labels(keys)


@lru_cache(10_000)
def _kept_names(keys: tuple[tuple[str, str], ...]) -> tuple[str, str | None]:
    return entity_of(dict(keys)), as_labels(dict(keys))
