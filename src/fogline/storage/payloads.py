"""A message's payload as records, by its format: each has the values of fields by their names.

In csv and xml every value is a text; `mapping.number_in` says which texts are numbers.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from fogline.storage import cbor_map, csv_line, xml_element
from fogline.storage.errors import BadValue
from fogline.storage.mapping import CBOR, CSV, JSON, XML, Insights, Readings, Results

Records = list[dict[str, Any]]


def records_of(source: Readings | Insights | Results, payload: bytes) -> Records:
    """The records of a message. Raises `BadValue`: then the message is bad as a whole."""
    form = source.format if isinstance(source, Readings) else JSON
    form = form if form in _READERS else JSON
    try:
        return _READERS[form](source, payload)
    except (ValueError, RecursionError) as error:
        raise BadValue(f"not {form}") from error


def _json(_source: Readings | Insights | Results, payload: bytes) -> Records:
    text = payload.decode()
    head, comma, rest = text.partition(",")
    if comma and head.isdigit():
        text = rest
    data = json.loads(text)
    records = data if isinstance(data, list) else [data]
    if not all(isinstance(record, dict) for record in records):
        raise ValueError("not an object")
    return records


def _csv(source: Readings | Insights | Results, payload: bytes) -> Records:
    header = source.header if isinstance(source, Readings) else ()
    return [csv_line.record(header, payload)]


def _xml(_source: Readings | Insights | Results, payload: bytes) -> Records:
    return [xml_element.record(payload)]


def _cbor(_source: Readings | Insights | Results, payload: bytes) -> Records:
    return cbor_map.records(payload)


_READERS: dict[str, Callable[[Readings | Insights | Results, bytes], Records]] = {
    JSON: _json,
    CSV: _csv,
    XML: _xml,
    CBOR: _cbor,
}
"""SenML and ndjson are json too."""
