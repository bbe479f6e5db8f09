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

from fogline.storage import times
from fogline.storage.decode import Message, Source, decode, split_lines
from fogline.storage.errors import BadValue
from fogline.storage.mapping import JSON, NDJSON, Decoded, Readings
from fogline.storage.values import BATCH, batch, labels_text

_BY_COLUMNS = (JSON, NDJSON)
_FEW = 16
_KINDS: dict[type, pa.DataType] = {str: pa.string(), int: pa.float64(), float: pa.float64()}
_SAMPLES = 8
_MOST_NAMES = 500
"""A table has a place for every name in every record: with more it would get too large."""
_NAME = re.compile(rb'"((?:[^"\\]|\\.)*)"\s*:')


def decode_batch(source: Source, messages: Sequence[Message]) -> Decoded:
    """The values of messages; the same as `decode` gives, up to the order of different metrics."""
    if isinstance(source, Readings) and source.format in _BY_COLUMNS and len(messages) >= _FEW:
        table = _by_columns(source, list(split_lines(source, messages)))
        if table is not None:
            return Decoded(table)
    return decode(source, messages)


def _by_columns(source: Readings, messages: Sequence[Message]) -> pa.Table | None:
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
    if data.count(b"\n") != len(payloads) - 1 or b"\\u0000" in data:
        return None
    try:
        data.decode()
        schema = _schema_of_all(source, payloads) if source.takes_all else _schema(source, payloads)
    except (ValueError, RecursionError):
        return None
    if schema is None:
        return None
    table = _parsed(data, schema, "error" if source.takes_all else "ignore")
    if table is None and source.takes_all and len(set(_NAME.findall(data))) <= _MOST_NAMES:
        table = _parsed(data, schema, "infer")
    return table if table is not None and len(table) == len(payloads) else None


def _parsed(data: bytes, schema: pa.Schema, unexpected: str) -> pa.Table | None:
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
    if source.value is not None:
        kinds[source.value] = _KINDS.get(type(first.get(source.value)), pa.float64())
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
        if type(value) in known and name not in source.reserved
    }
    return _with_names(source, records[0], kinds)


def _with_names(
    source: Readings, first: dict[str, Any], kinds: dict[str, pa.DataType]
) -> pa.Schema | None:
    """With the fields that are time, entity, metric and labels, unless one has to be both."""
    if source.time is not None:
        kinds[source.time] = pa.int64() if type(first.get(source.time)) is int else pa.string()
    for name in (source.entity, source.metric, *source.labels):
        if name is not None:
            if kinds.get(name, pa.string()) != pa.string():
                return None
            kinds[name] = pa.string()
    return pa.schema(kinds)


def _times(
    source: Readings, read: pa.Table, messages: Sequence[Message]
) -> npt.NDArray[np.int64] | None:
    if source.time is None:
        return np.fromiter((arrival for _, _, arrival in messages), np.int64, len(messages))
    found = times.parse_column(read[source.time].combine_chunks())
    return None if found is None or (found == times.NO_TIME).any() else found


def _entity(source: Readings, read: pa.Table, messages: Sequence[Message]) -> Any:
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
        named = read[source.metric].combine_chunks()
        value = read[source.value].combine_chunks()
        if named.null_count or value.null_count:
            return None
        metric = pa.compute.binary_join_element_wise(source.prefix, named, "")
        return _block(metric, entity, event_times, value, labels)
    columns = _fields(source, read)
    if columns is None:
        return None
    blocks = []
    for name, column in columns.items():
        metric = _constant(source.prefix + name, len(read))
        blocks.append(_block(metric, entity, event_times, column, labels))
    return pa.concat_tables([BATCH.empty_table(), *blocks]).unify_dictionaries()


def _fields(source: Readings, read: pa.Table) -> dict[str, Any] | None:
    """The columns that hold values; nothing where Arrow took a text for a time."""
    if not source.takes_all:
        return {name: read[name].combine_chunks() for name in source.fields}
    found = {}
    for name in (name for name in read.column_names if name not in source.reserved):
        column = read[name].combine_chunks()
        kind = column.type
        if pa.types.is_temporal(kind):
            return None
        if pa.types.is_boolean(kind) or pa.types.is_integer(kind):
            column = column.cast(pa.float64(), safe=False)
        if pa.types.is_string(column.type) or pa.types.is_floating(column.type):
            found[name] = column
    return found


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
