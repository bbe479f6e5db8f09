"""Decoding: a message into records, with the options and the meaning of the Spark source.

With `fields`, records have exactly those columns, typed. Without, they have all fields of the
message as they are (numbers in csv and xml become numbers), which suits chains that people write.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fogline.formats import FORMATS, Format, all_fields, read
from fogline.formats.values import CONVERT, lookup, named_value, parse_number
from fogline.gateway.operators.base import BadStep, ReceivedMessage, Record, StepOptions, is_number

ENTITY = "entity"
"""The field of SenML's base name where none is named and all fields are kept."""
REMEMBERED = 4096


@dataclass(frozen=True, slots=True)
class Column:
    """An asked-for column, as option `fields` names it."""

    name: str
    type: str
    source: str
    metric: bool = False


@dataclass(frozen=True, slots=True)
class DecodeOptions:
    format: str = "json"
    time: str | None = None
    entity: str | None = None
    metric_field: str | None = None
    value_field: str | None = None
    header: tuple[str, ...] = ()
    columns: tuple[Column, ...] | None = None
    stream: str = "stream"
    lateness_ms: float = 0.0
    time_shift: int = 0
    """Microseconds to add to every declared time."""
    remember: int = 0
    """How many messages are remembered to recognise one that is delivered again."""


def read_options(given: Mapping[str, Any]) -> DecodeOptions:
    """Options of a step, or of a job's `input`, where everything is a text. Raises `BadStep`."""
    options = StepOptions({k: _parse_text(k, v) for k, v in given.items()})
    known = options.take("format", lambda v: v in FORMATS, f"one of {', '.join(FORMATS)}", "json")
    time = options.text("time", None)
    header = options.texts("header", ())
    metric, value = options.text("metricField", None), options.text("valueField", None)
    if (metric is None) != (value is None):
        raise BadStep("metricField and valueField go together")
    if known == "csv" and not header:
        raise BadStep("'header' is missing: csv messages need the names of their columns")
    columns = _columns(options.take("fields", lambda v: isinstance(v, list), "a list", None))
    own_time = time is not None or known == "senml"
    made = DecodeOptions(
        known, time, options.text("entity", None), metric, value, header, columns,
        _stream(options.text("stream", "stream")), options.not_negative("lateness", 0.0),
        int(options.any_number("timeShift", 0)),
        int(options.take("deduplicate", _is_count, "0 to 1000000", REMEMBERED if own_time else 0)),
    )  # fmt: skip
    options.close()
    return made


_JSON = ("fields", "header")
_NUMBERS = ("lateness", "deduplicate", "timeShift")


def _parse_text(name: str, value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if name == "header" and not value.lstrip().startswith("["):
        return [part.strip() for part in value.split(",")]
    if name in _JSON:
        try:
            return json.loads(value)
        except (ValueError, RecursionError) as error:
            raise BadStep(f"'{name}' is not JSON") from error
    if name in _NUMBERS:
        found = parse_number(value)
        return value if found is None else found
    return value


def _is_count(value: Any) -> bool:
    return is_number(value) and 0 <= value <= 1_000_000 and value == int(value)


def _stream(name: str) -> str:
    if any(sign in name for sign in "/+#\0") or len(name) > 120:
        raise BadStep("'stream' is part of a topic: no / + # in it")
    return name


def _columns(given: list[Any] | None) -> tuple[Column, ...] | None:
    if given is None:
        return None
    made = []
    for item in given:
        if not isinstance(item, Mapping) or not isinstance(item.get("name"), str):
            raise BadStep("'fields': a column has no name")
        if item.get("type") not in CONVERT:
            raise BadStep(
                f"'fields': type of column {item['name']} is none of {', '.join(CONVERT)}"
            )
        source = str(item.get("from", item["name"]))
        made.append(Column(item["name"], item["type"], source, bool(item.get("metric", False))))
    names = [column.name for column in made]
    if len(set(names)) < len(names) or "_time" in names:
        raise BadStep("'fields': a column is there twice")
    return tuple(made)


class Decoder:
    """Decodes messages one by one; remembers nothing."""

    def __init__(self, options: DecodeOptions) -> None:
        self.options = options
        columns = options.columns or ()
        entity = options.entity if options.columns is not None or options.entity else ENTITY
        # The texts of numbers are kept only where a column may ask for them.
        texts = any(column.type == "string" for column in columns)
        self._form = Format(
            options.format, options.time, entity, options.header, texts, options.time_shift
        )
        self._plan = [(c.name, c.source, CONVERT[c.type], c.metric) for c in columns]

    def decode(self, message: ReceivedMessage) -> list[Record]:
        """The records of a message. Raises `BadMessage`, and then the message is bad as a whole."""
        found = read(self._form, message.payload, message.arrival)
        if self.options.columns is None:
            return [Record(t, all_fields(self._form, values), message) for t, values, _ in found]
        return [Record(t, self._convert_fields(values), message) for t, values, _ in found]

    def _convert_fields(self, values: dict[str, Any]) -> dict[str, Any]:
        metric_field, value_field = self.options.metric_field, self.options.value_field
        made = {}
        for name, source, convert, metric in self._plan:
            value = values.get(source)
            if value is None and "." in source:
                value = lookup(values, source)
            if value is None and metric and metric_field is not None and value_field is not None:
                value = named_value(values, source, metric_field, value_field)
            made[name] = None if value is None else convert(value)
        return made
