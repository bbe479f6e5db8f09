"""Messages into values, one record at a time: every format, every oddity.

`columns` does the same for plain json by whole columns, and falls back to this.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from typing import Any

from fogline.formats import BadMessage, BadTime, Format, read
from fogline.formats.json import records
from fogline.formats.reading import CBOR, CSV, SENML, XML
from fogline.formats.times import time_of
from fogline.formats.values import OTHER, as_text, lookup, metric_name
from fogline.storage.ingest.decode_results import add_result, entity_of
from fogline.storage.ingest.mapping import (
    CodeResults,
    Decoded,
    Insights,
    Readings,
    Rows,
    as_labels,
    as_stored,
)

ArrivedMessage = tuple[str, bytes, int]
"""Topic, payload, arrival in microseconds."""
FeedSource = Readings | Insights | CodeResults


def decode(source: FeedSource, messages: Iterable[ArrivedMessage]) -> Decoded:
    """The values of messages, in their order. Of a bad message there are none."""
    rows = Rows()
    form = source.form if isinstance(source, Readings) else Format()
    for message in messages:
        try:
            if isinstance(source, Readings):
                _readings(source, form, message, rows)
            else:
                _results(source, message, rows)
        except BadTime:
            rows.rejected["no time"] += 1
        except BadMessage:
            rows.rejected[_NOT.get(form.name, "not json")] += 1
    return rows.finish()


_NOT = {form: f"not {form}" for form in (SENML, CSV, XML, CBOR)}
"""One reason a format, however many ways there are to break it."""


def _readings(source: Readings, form: Format, message: ArrivedMessage, rows: Rows) -> None:
    topic, payload, arrival = message
    items = read(form, payload, arrival)
    if any(_is_written(lookup(values, name)) for _, values, _ in items for name in source.names):
        items = read(replace(form, keep_texts=True), payload, arrival)
    for time, values, base_name in items:
        entity = _entity(source, values, topic if base_name is None else base_name)
        labels = _labels(source, values) if source.labels else None
        if source.metric is not None and source.value is not None:
            name, value = _read_named(source, source.metric, source.value, values)
            rows.add(name, entity, time, value, labels)
            continue
        for name in _scalars(source, values) if source.takes_all else source.fields:
            value = lookup(values, name)
            if value is not None:
                rows.add(source.prefix + name, entity, time, as_stored(value), labels)


def _is_written(name: Any) -> bool:
    """Whether a name is a number whose text says more than the number: `1.50`, `-0`."""
    return type(name) is float or (type(name) is int and name == 0)


def _labels(source: Readings, values: dict[str, Any]) -> str | None:
    return as_labels({name: as_text(lookup(values, name)) for name in source.labels})


def _entity(source: Readings, values: dict[str, Any], otherwise: str) -> str | None:
    if source.entity is None:
        return otherwise
    found = lookup(values, source.entity)
    if found is None:
        return otherwise if source.format == SENML else None
    return as_text(found)


def _read_named(
    source: Readings, metric: str, value: str, values: dict[str, Any]
) -> tuple[str | None, object]:
    """The metric that a record names, and its value; a field of that name goes before."""
    name = metric_name(values.get(metric))
    if name is None:
        return None, OTHER
    own = lookup(values, name)
    return source.prefix + name, as_stored(values.get(value) if own is None else own)


def _scalars(source: Readings, values: dict[str, Any]) -> list[str]:
    reserved = source.reserved_fields
    return [
        name
        for name, value in values.items()
        if isinstance(value, str | int | float) and name not in reserved
    ]


def _results(source: Insights | CodeResults, message: ArrivedMessage, rows: Rows) -> None:
    _, payload, arrival = message
    for record in records(payload, keep_texts=False):
        if isinstance(source, Insights):
            _insight(source, record, rows)
        else:
            add_result(source, record, arrival, rows)


def _insight(source: Insights, record: dict[str, Any], rows: Rows) -> None:
    keys, window = record.get("keys"), record.get("window")
    if not isinstance(keys, dict) or not isinstance(window, dict) or "insight" not in record:
        rows.rejected["not a result"] += 1
        return
    time = time_of(window.get("end"))
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
    """The keys of an insight come again with every window: saves writing them as JSON twice."""
    return entity_of(dict(keys)), as_labels(dict(keys))
