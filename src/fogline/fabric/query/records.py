"""Values of the fabric as the records that a query reads: JSON objects, made by whole columns.

Every record has `metricID`, `entityID`, `nodeID`, `timestamp` (ISO 8601 with microseconds, which a
reader gets back exactly) and `value`, a number, a text, or null for what is not finite. Labels are
fields by their names, and so are `entityType`, `unit` and `description` where the metadata has
them; of fields with one name the five come first, then labels.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fogline.model.question import ENTITY, FIELDS, METRIC, NODE, TIMESTAMP, VALUE
from fogline.storage.errors import BadValue
from fogline.storage.values import END_TIME, FIRST_TIME, TIME, micros

_BYTES = 128 << 20
"""At a time: whatever has to be escaped, the records still fit into one column."""
_NODE = "node"
_TYPES = {
    **dict.fromkeys((_NODE, "metric", "entity", "text", "labels"), pa.string()),
    "time": TIME,
    "value": pa.float64(),
}
DESCRIBED = {"entity_type": "entityType", "unit": "unit", "description": "description"}
"""Columns of metadata, and the fields of records they become."""
_ALWAYS = (_NODE, "metric", "entity", "time")

Descriptions = Mapping[tuple[str, str], Mapping[str, str]]
"""What is known of a metric and an entity, as fields; an empty entity stands for all others."""


def descriptions_of(metadata: pa.Table) -> dict[tuple[str, str], dict[str, str]]:
    """What becomes fields of records, of a table with the columns of `MetadataStore.table`."""
    try:
        rows = metadata.select(["metric", "entity", *DESCRIBED]).to_pylist()
    except KeyError as error:
        raise BadValue(f"invalid metadata: {error}") from error
    return {
        (str(row["metric"]), str(row["entity"] or "")): {
            field: str(row[column]) for column, field in DESCRIBED.items() if row[column]
        }
        for row in rows
    }


def from_node(table: pa.Table, node: str) -> pa.Table:
    """Values of one node with the column that names it."""
    return table.append_column(_NODE, pa.repeat(pa.scalar(node, pa.string()), len(table)))


def payloads(table: pa.Table, known: Descriptions | None = None) -> list[bytes]:
    """One record for each value, in order. Raises `BadValue` for a table that holds no values."""
    texts = _texts(table, known or {})
    return [payload for part in texts for payload in part.cast(pa.binary()).to_pylist()]


def write_lines(table: pa.Table, file: BinaryIO, known: Descriptions | None = None) -> None:
    """The same as a line for each value."""
    for part in _texts(table, known or {}):
        lines = pc.binary_join_element_wise(part, "", "\n")
        file.write(memoryview(lines.buffers()[2]))


def _texts(table: pa.Table, known: Descriptions) -> Iterator[Any]:
    for part in _parts(_check_columns(table)):
        yield _rows(part.combine_chunks(), known)


def _parts(table: pa.Table) -> Iterator[pa.Table]:
    if table.nbytes <= _BYTES or len(table) < 2:
        yield from [table] if len(table) else []
        return
    half = len(table) // 2
    yield from _parts(table.slice(0, half))
    yield from _parts(table.slice(half))


def _check_columns(table: pa.Table) -> pa.Table:
    """The columns that are needed, in plain types: who sent them may be anybody."""
    try:
        plain = pa.table({name: table[name].cast(kind) for name, kind in _TYPES.items()})
    except (KeyError, pa.ArrowException) as error:
        raise BadValue(f"invalid columns of values: {str(error)[:200]}") from error
    if any(plain[name].null_count for name in _ALWAYS):
        raise BadValue("a value has no node, metric, entity or time")
    times = micros(plain["time"])
    if len(times) and (times.min() < FIRST_TIME or times.max() >= END_TIME):
        raise BadValue("a time is outside the years 1 to 9998")
    return plain


def _rows(table: pa.Table, known: Descriptions) -> Any:
    one = {name: _array(table[name]) for name in table.column_names}
    clock = pc.binary_replace_slice(one["time"].cast(pa.string()), 10, 11, "T")
    return pc.binary_join_element_wise(
        _each(one["metric"], lambda name: f'{{"{METRIC}":{_json(name)},"{ENTITY}":'),
        _each(one["entity"], _json),
        _each(one[_NODE], lambda name: f',"{NODE}":{_json(name)},"{TIMESTAMP}":"'),
        clock,
        f'Z","{VALUE}":',
        _values(one["value"], one["text"]),
        _describe_records(one, known)
        if known
        else _each(one["labels"], lambda text: _rest(text, {})),
        "",
    )


def _values(numbers: Any, texts: Any) -> Any:
    finite = pc.is_finite(numbers).fill_null(False)
    shown = pc.if_else(finite, numbers.cast(pa.string()), "null")
    if texts.null_count == len(texts):
        return shown
    return pc.if_else(texts.is_valid(), _each(texts, _json), shown)


def _describe_records(one: Mapping[str, Any], known: Descriptions) -> Any:
    """The rest of each record where metadata belongs to it: once for each metric, entity and
    labels that stand together."""
    columns = [one[name].dictionary_encode("encode") for name in ("metric", "entity", "labels")]
    shape = [len(column.dictionary) for column in columns]
    codes = np.ravel_multi_index([column.indices.to_numpy() for column in columns], shape)
    together, place = np.unique(codes, return_inverse=True)
    names = [column.dictionary.to_pylist() for column in columns]
    rests = [
        _rest(names[2][labels], _find_description(known, names[0][metric], names[1][entity]))
        for metric, entity, labels in zip(*np.unravel_index(together, shape), strict=True)
    ]
    return pa.array(rests, pa.string()).take(pa.array(place))


def _find_description(known: Descriptions, metric: str, entity: str) -> Mapping[str, str]:
    return known.get((metric, entity)) or known.get((metric, "")) or {}


def _rest(labels: str | None, description: Mapping[str, str]) -> str:
    """The end of a record, behind the five. Labels that are none are left out."""
    fields = {**description, **_read(labels)}
    own = {key: text for key, text in fields.items() if key not in FIELDS}
    return f",{_json(own)[1:]}" if own else "}"


def _read(labels: str | None) -> dict[str, str]:
    try:
        found = json.loads(labels) if labels else {}
        texts = {key: text for key, text in dict(found).items() if isinstance(text, str)}
        _json(texts).encode()
    except (ValueError, TypeError, RecursionError):
        return {}
    return texts


def _each(column: Any, make: Callable[[Any], str]) -> Any:
    """A text for each row, made once for each value that the column has."""
    encoded = column.dictionary_encode("encode")
    made = [make(value) for value in encoded.dictionary.to_pylist()]
    return pa.array(made, pa.string()).take(encoded.indices)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _array(column: Any) -> Any:
    found = column.combine_chunks()
    return found.chunk(0) if isinstance(found, pa.ChunkedArray) else found
