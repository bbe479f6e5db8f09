"""Events as text, in the formats senml, json and csv; one line is one message.

`senml` is the pack `epoch_ms,{"e":[{"v","u","n"},…],"bt":epoch_ms}` with values as text and
missing values left out; `json` is a flat object with `time` in epoch milliseconds and null for
missing values; `csv` has `time` first and nothing between the commas for missing values.
A batch and its events one by one give the same bytes. All texts are ASCII without anything to
escape (`schema.plain`), which is why templates will do.
"""

from __future__ import annotations

from collections.abc import Callable

from fogline.simulate.schema import (
    Event,
    EventBatch,
    FieldSchema,
    FieldValue,
    FormatName,
    StreamKind,
)
from fogline.simulate.streams import STREAMS

FORMATS: tuple[FormatName, ...] = ("senml", "json", "csv")


def encode(event: Event, format: FormatName) -> bytes:
    """One event as one message, without a line end."""
    columns = {name: [value] for name, value in event.fields.items()}
    batch = EventBatch(STREAMS[event.stream], [event.time_ms], columns)
    return encode_batch(batch, format)[0].encode("ascii")


def encode_batch(batch: EventBatch, format: FormatName) -> list[str]:
    """All events of a batch, one text each."""
    return ENCODERS[format](batch)


def header(stream: StreamKind, format: FormatName) -> str | None:
    """The line a file of this format starts with."""
    names = ["time", *(field.name for field in stream.fields)]
    return ",".join(names) if format == "csv" else None


def _json(batch: EventBatch) -> list[str]:
    tokens = [_tokens(column, "null") for column in batch.columns.values()]
    quotes = ['"%s"' if field.decimals is None else "%s" for field in batch.stream.fields]
    names = [field.name for field in batch.stream.fields]
    pairs = [f'"{name}":{quote}' for name, quote in zip(names, quotes, strict=True)]
    template = '{"time":%d,' + ",".join(pairs) + "}"
    return [template % row for row in zip(batch.times, *tokens, strict=True)]


def _csv(batch: EventBatch) -> list[str]:
    tokens = [_tokens(column, "") for column in batch.columns.values()]
    template = "%d" + ",%s" * len(tokens)
    return [template % row for row in zip(batch.times, *tokens, strict=True)]


def _tokens(column: list[FieldValue], missing: str) -> list[str]:
    """The values as text; missing values as `missing`."""
    if isinstance(column[0], str):
        return [str(value) for value in column]
    tokens = list(map(repr, column))
    return tokens if None not in column else [missing if t == "None" else t for t in tokens]


def _senml(batch: EventBatch) -> list[str]:
    fields = batch.stream.fields
    elements = [_elements(field, batch.columns[field.name]) for field in fields]
    rows = map("".join, zip(*elements, strict=True))
    # Every element starts with a comma; the first one's is dropped.
    return [
        f'{time},{{"e":[{row[1:]}],"bt":{time}}}'
        for time, row in zip(batch.times, rows, strict=True)
    ]


def _elements(field: FieldSchema, column: list[FieldValue]) -> list[str]:
    """One SenML element per event with a comma before it; an empty text where nothing was sent."""
    if field.decimals is None or field.as_text:
        before, after = f',{{"u":"{field.unit}","n":"{field.name}","sv":"', '"}'
    else:
        before, after = ',{"v":"', f'","u":"{field.unit}","n":"{field.name}"}}'
    text = _value_text(field)
    return ["" if value is None else before + text(value) + after for value in column]


def _value_text(field: FieldSchema) -> Callable[[FieldValue], str]:
    if field.decimals is not None and field.fixed:
        return f"{{:.{field.decimals}f}}".format
    return _shortest


def _shortest(value: FieldValue) -> str:
    """`8` for 8.0, as sensors write it."""
    return str(value).removesuffix(".0")


ENCODERS: dict[FormatName, Callable[[EventBatch], list[str]]] = {
    "senml": _senml,
    "json": _json,
    "csv": _csv,
}
