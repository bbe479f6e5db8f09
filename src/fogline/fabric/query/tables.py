"""The tables that nodes exchange: their columns, names as plain texts, and checks of what came."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from fogline.storage.errors import BadValue
from fogline.storage.values import BATCH, SCHEMA, TIME, micros


def _plain_type(kind: pa.DataType) -> pa.DataType:
    return pa.string() if pa.types.is_dictionary(kind) else kind


LATEST = pa.schema([(field.name, _plain_type(field.type)) for field in BATCH])
ROWS = pa.schema([(field.name, _plain_type(field.type)) for field in SCHEMA])
PAIRS = pa.schema([("metric", pa.string()), ("entity", pa.string())])
NODE = pa.field("node", pa.string())


def aggregate_schema(functions: Sequence[str]) -> pa.Schema:
    kinds = [(name, pa.int64() if name == "count" else pa.float64()) for name in functions]
    head = [("metric", pa.string()), ("entity", pa.string()), ("bucket", TIME)]
    return pa.schema([*head, *dict(kinds).items()])


def plain(table: pa.Table) -> pa.Table:
    """The same with names as texts, not as numbers of a dictionary."""
    fields = [field.with_type(_plain_type(field.type)) for field in table.schema]
    return table.cast(pa.schema([pa.field(field.name, field.type) for field in fields]))


def select_columns(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """These columns of these types. Raises `BadValue` when the table does not have them."""
    try:
        found = plain(table.select(schema.names))
    except (KeyError, pa.ArrowException, ValueError) as error:
        raise BadValue(f"wrong columns: {str(error)[:200]}") from error
    if not found.schema.equals(schema):
        wrong = next(a for a, b in zip(found.schema, schema, strict=True) if not a.equals(b))
        raise BadValue(f"wrong columns: {wrong.name} of type {wrong.type}")
    holes = [
        name
        for name in schema.names
        if name in ("metric", "entity", "time", "seq", "bucket") and found[name].null_count
    ]
    if holes:
        raise BadValue(f"rows without {holes[0]}")
    return found


def behind(table: pa.Table, place: tuple[int, int], descending: bool) -> bool:
    """Whether all rows lie behind a time and `seq`."""
    times, seqs = micros(table["time"]), _numbers(table["seq"])
    time, seq = place
    if descending:
        return bool(np.all((times < time) | ((times == time) & (seqs < seq))))
    return bool(np.all((times > time) | ((times == time) & (seqs > seq))))


def _numbers(column: Any) -> Any:
    return column.to_numpy()
