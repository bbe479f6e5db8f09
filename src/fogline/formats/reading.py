"""One way from a message to its records, whatever its format: values by name, and the event time.

`read` gives everything that is in a message. Who needs only some fields looks them up with
`values.lookup` and converts them with `values.CONVERT`; who needs all takes `all_fields`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fogline.formats import cbor, csv, json, xml
from fogline.formats.errors import BadTime
from fogline.formats.senml import Pack
from fogline.formats.times import time_of
from fogline.formats.values import OTHER, Reading, lookup, number_in

JSON, NDJSON, SENML, CSV, XML, CBOR = "json", "ndjson", "senml", "csv", "xml", "cbor"
FORMATS = (JSON, NDJSON, SENML, CSV, XML, CBOR)
_UNTYPED = (CSV, XML)
"""All their values are texts."""


@dataclass(frozen=True, slots=True)
class Format:
    """How the messages of a stream are read.

    `time` is the field with the event time, `entity` the one under which SenML's base name is
    known, `header` has the names of csv's columns. With `keep_texts` numbers of json and SenML are
    `values.Number`, their own texts, for who asks for them as texts.
    """

    name: str = JSON
    time: str | None = None
    entity: str | None = None
    header: tuple[str, ...] = ()
    keep_texts: bool = False
    time_shift: int = 0
    """Microseconds to add to every declared time."""


def read(form: Format, payload: bytes, arrival: int) -> list[Reading]:
    """The records of a message that came at `arrival`, in microseconds since 1970.

    Raises `BadMessage`, and then the message is bad as a whole.
    """
    if form.name == SENML:
        text = json.text_of(payload)
        found = Pack(form.entity, form.keep_texts).read(text, arrival)
        if form.time is None:
            return found
        return [(_time(form, form.time, values), values, name) for _, values, name in found]
    records = _READERS[form.name](form, payload)
    if form.time is None:
        return [(arrival, values, None) for values in records]
    return [(_time(form, form.time, values), values, None) for values in records]


def all_fields(form: Format, values: dict[str, Any]) -> dict[str, Any]:
    """Everything of a record that JSON can say; numbers of csv and xml are numbers."""
    if form.name in (JSON, NDJSON):
        return values
    if form.name in _UNTYPED:
        return {n: number_in(value) for n, value in values.items() if value is not OTHER}
    return {
        name: all_fields(form, value) if isinstance(value, dict) else value
        for name, value in values.items()
        if value is not OTHER
    }


def _time(form: Format, field: str, values: dict[str, Any]) -> int:
    value = lookup(values, field)
    if value is None:
        raise BadTime("the time field is missing")
    time = time_of(value)
    if time is None:
        raise BadTime("the time field is not a time")
    return time + form.time_shift


_READERS: dict[str, Callable[[Format, bytes], list[dict[str, Any]]]] = {
    JSON: lambda form, payload: json.records(payload, form.keep_texts),
    NDJSON: lambda form, payload: json.lines(payload, form.keep_texts),
    CSV: lambda form, payload: [csv.record(form.header, payload)],
    XML: lambda form, payload: [xml.record(payload)],
    CBOR: lambda form, payload: cbor.records(payload),
}
