"""Plain json readings into values by whole columns, without Python for each of them.

Arrow's reader takes a batch of messages as lines. It is used only where the result is certain to be
that of `decode`: every message one object on one line, every field of one type. Whatever else there
is makes it step back for the whole batch.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.json

from fogline.formats.errors import MOST_DEPTH, MOST_RECORDS
from fogline.formats.reading import JSON, NDJSON
from fogline.storage.errors import BadValue
from fogline.storage.ingest.decode import ArrivedMessage, FeedSource, decode
from fogline.storage.ingest.mapping import Decoded, Readings
from fogline.storage.ingest.time_column import parse_column
from fogline.storage.values import BATCH, batch, labels_text

_BY_COLUMNS = (JSON, NDJSON)
_FEW = 16
_KINDS: dict[type, pa.DataType] = {str: pa.string(), int: pa.float64(), float: pa.float64()}
_SAMPLES = 8
_MOST_NAMES = 500
"""A table has a place for every name in every record: with more it would get too large."""
_NAME = re.compile(rb'"((?:[^"\\]|\\.)*)"\s*:')
_NUMERIC = r"^ *[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)? *$"
"""Texts that are numbers."""


def decode_batch(source: FeedSource, messages: Sequence[ArrivedMessage]) -> Decoded:
    """The values of messages; the same as `decode` gives, up to the order of different metrics."""
    if isinstance(source, Readings) and source.format in _BY_COLUMNS and len(messages) >= _FEW:
        single = _lines(messages) if source.format == NDJSON else messages
        table = _by_columns(source, single)
        if table is not None:
            return Decoded(table)
    return decode(source, messages)


def _lines(messages: Sequence[ArrivedMessage]) -> Sequence[ArrivedMessage]:
    """Each line of ndjson as a message of its own, unless one message has too many."""
    if any(payload.count(b"\n") >= MOST_RECORDS for _, payload, _ in messages):
        return messages
    return [
        (topic, stripped, arrival)
        for topic, payload, arrival in messages
        for line in payload.split(b"\n")
        if (stripped := line.strip(b" \t\r"))
    ]


def _by_columns(source: Readings, messages: Sequence[ArrivedMessage]) -> pa.Table | None:
    read = _read(source, [payload for _, payload, _ in messages])
    if read is None:
        return None
    event_times = _times(source, read, messages)
    entity = _entity(source, read, messages)
    if event_times is None or entity is None or entity.null_count:
        return None
    labels = _labels(source, read)
    try:
        return _values(source, read, event_times, entity, labels)
    except BadValue:
        return None


def _read(source: Readings, payloads: list[bytes]) -> pa.Table | None:
    """The declared fields, or all, as columns; or nothing."""
    data = b"\n".join(payloads)
    if not _one_object_each(data, payloads) or (b"\\" in data and b"\\u0000" in data):
        return None
    every = source.takes_all or source.metric is not None
    try:
        data.decode()
        schema = _schema_of_all(source, payloads) if every else _schema(source, payloads)
    except (ValueError, RecursionError):
        return None
    if schema is None:
        return None
    table = _parse_json(data, schema, "error" if every else "ignore")
    if table is None and every and len(set(_NAME.findall(data))) <= _MOST_NAMES:
        table = _parse_json(data, schema, "infer")
    return table if table is not None and len(table) == len(payloads) else None


def _one_object_each(data: bytes, payloads: list[bytes]) -> bool:
    """Whether each payload is a line in brackets, and none can be nested too deep.

    No object can go on from one line to the next where each ends with a bracket and the next begins
    with one, so as many rows as lines are one a line.
    """
    if data[:1] != b"{" or data[-1:] != b"}":
        return False
    signs = np.frombuffer(data, np.uint8)
    breaks = np.flatnonzero(signs == ord("\n"))
    if len(breaks) != len(payloads) - 1:
        return False
    if (signs[breaks - 1] != ord("}")).any() or (signs[breaks + 1] != ord("{")).any():
        return False
    # One bit distinguishes [ from {, and no other sign becomes { with it.
    brackets = int(np.count_nonzero((signs | 0x20) == ord("{")))
    return brackets < len(payloads) + MOST_DEPTH or all(
        payload.count(b"{") + payload.count(b"[") <= MOST_DEPTH for payload in payloads
    )


def _parse_json(data: bytes, schema: pa.Schema, unexpected: str) -> pa.Table | None:
    try:
        return pa.json.read_json(
            pa.BufferReader(data),
            pa.json.ReadOptions(use_threads=False, block_size=len(data) + 1),
            pa.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior=unexpected),
        )
    except pa.ArrowException:
        return None


def _schema(source: Readings, payloads: Sequence[bytes]) -> pa.Schema | None:
    """The types that the first message has; others show when the rest is read."""
    first = json.loads(payloads[0])
    if not isinstance(first, dict):
        return None
    kinds = {name: _KINDS.get(type(first.get(name)), pa.float64()) for name in source.fields}
    return _with_names(source, first, kinds)


def _schema_of_all(source: Readings, payloads: Sequence[bytes]) -> pa.Schema | None:
    """The types of all fields that a few messages have; what else there is shows later."""
    few = payloads[:: -(-len(payloads) // _SAMPLES)]
    records = [json.loads(payload) for payload in few]
    if not all(isinstance(record, dict) for record in records):
        return None
    known = _KINDS | {bool: pa.bool_()}
    kinds = {
        name: known[type(value)]
        for record in records
        for name, value in record.items()
        if type(value) in known and name not in source.reserved_fields
    }
    return _with_names(source, records[0], kinds)


def _with_names(
    source: Readings, first: dict[str, Any], kinds: dict[str, pa.DataType]
) -> pa.Schema | None:
    """With the fields that are time, entity, metric and labels, unless one has to be both.

    Nothing either where a name may be a path into an object.
    """
    if any("." in name for name in (*source.fields, *source.reserved_fields)):
        return None
    if source.time is not None:
        kinds[source.time] = pa.int64() if type(first.get(source.time)) is int else pa.string()
    for name in (source.entity, source.metric, *source.labels):
        if name is not None:
            if kinds.get(name, pa.string()) != pa.string():
                return None
            kinds[name] = pa.string()
    return pa.schema(kinds)


def _times(
    source: Readings, read: pa.Table, messages: Sequence[ArrivedMessage]
) -> npt.NDArray[np.int64] | None:
    if source.time is None:
        return np.fromiter((arrival for _, _, arrival in messages), np.int64, len(messages))
    return parse_column(read[source.time].combine_chunks())


def _entity(source: Readings, read: pa.Table, messages: Sequence[ArrivedMessage]) -> Any:
    if source.entity is None:
        return pa.array([topic for topic, _, _ in messages], pa.string()).dictionary_encode()
    return read[source.entity].combine_chunks().dictionary_encode()


def _labels(source: Readings, read: pa.Table) -> Any:
    """Each combination of labels is written once."""
    if not source.labels:
        return pa.nulls(len(read), pa.string()).dictionary_encode()
    columns = [read[name].combine_chunks().dictionary_encode() for name in source.labels]
    keys = np.zeros(len(read), np.int64)
    for column in columns:
        keys = keys * (len(column.dictionary) + 1) + column.indices.fill_null(-1).to_numpy() + 1
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    texts = [_label(source.labels, columns, int(row)) for row in first]
    return pa.array(texts, pa.string()).take(pa.array(inverse)).dictionary_encode()


def _label(names: tuple[str, ...], columns: list[Any], row: int) -> str | None:
    found = {name: column[row].as_py() for name, column in zip(names, columns, strict=True)}
    return labels_text({name: text for name, text in found.items() if text is not None})


def _values(
    source: Readings, read: pa.Table, event_times: npt.NDArray[np.int64], entity: Any, labels: Any
) -> pa.Table | None:
    if source.metric is not None and source.value is not None:
        return _named_values(source, source.metric, source.value, read, event_times, entity, labels)
    blocks = []
    for name in _field_names(source, read):
        column, known = _values_of(read[name].combine_chunks())
        if not known:
            return None
        if column is not None:
            metric = _constant(source.prefix + name, len(read))
            blocks.append(_block(metric, entity, event_times, column, labels))
    return pa.concat_tables([BATCH.empty_table(), *blocks]).unify_dictionaries()


def _named_values(
    source: Readings, metric: str, value: str, read: pa.Table,
    event_times: npt.NDArray[np.int64], entity: Any, labels: Any,
) -> pa.Table | None:  # fmt: skip
    """Nothing where a record may have a field that is called as its metric."""
    if value not in read.column_names:
        return None
    named = read[metric].combine_chunks()
    column, _ = _values_of(read[value].combine_chunks())
    if column is None or column.null_count or named.null_count:
        return None
    names = named.unique().to_pylist()
    if any("." in name for name in names) or not set(names).isdisjoint(read.column_names):
        return None
    named = pa.compute.binary_join_element_wise(source.prefix, named, "")
    return _block(named, entity, event_times, column, labels)


def _field_names(source: Readings, read: pa.Table) -> list[str]:
    if not source.takes_all:
        return list(source.fields)
    reserved = source.reserved_fields
    return [name for name in read.column_names if name not in reserved]


def _values_of(column: Any) -> tuple[Any, bool]:
    """A column as numbers or texts, nothing where it holds objects or lists; and whether that is
    certain. It is not where Arrow took a text for a time, texts are numbers in part, or a number is
    beyond all bounds."""
    kind = column.type
    if pa.types.is_temporal(kind):
        return None, False
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        column = column.cast(pa.float64(), safe=False)
    elif pa.types.is_string(kind):
        column = _texts_or_numbers(column)
    elif not pa.types.is_floating(kind):
        return None, True
    if column is None:
        return None, False
    if pa.types.is_floating(column.type):
        finite = pa.compute.all(pa.compute.is_finite(column)).as_py()
        return column, finite is not False
    return column, True


def _texts_or_numbers(column: Any) -> Any:
    """Texts as they are where none is a number; numbers where all are; else nothing."""
    each = column.dictionary_encode()
    numeric = pa.compute.match_substring_regex(each.dictionary, _NUMERIC)
    if not pa.compute.any(numeric).as_py():
        return column
    if not pa.compute.all(numeric).as_py():
        return None
    try:
        numbers = pa.compute.utf8_trim(each.dictionary, " ").cast(pa.float64())
    except pa.ArrowException:
        return None
    return numbers.take(each.indices)


def _block(
    metric: Any, entity: Any, event_times: npt.NDArray[np.int64], value: Any, labels: Any
) -> pa.Table:
    """The values of one column; where it holds nothing there is none."""
    columns = [metric, entity, pa.array(event_times), value, labels]
    if value.null_count:
        valid = value.is_valid()
        columns = [column.filter(valid) for column in columns]
    metric, entity, when, value, labels = columns
    if pa.types.is_string(value.type):
        return batch(metric, entity, when, pa.nulls(len(value), pa.float64()), value, labels)
    return batch(metric, entity, when, value, None, labels)


def _constant(name: str, rows: int) -> Any:
    indices = pa.array(np.zeros(rows, np.int32))
    return pa.DictionaryArray.from_arrays(indices, pa.array([name], pa.string()))
