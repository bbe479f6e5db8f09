"""Values as Arrow tables: one schema for memory, files and answers, checked when a batch is made.

A batch is a table with `SCHEMA` without `seq`; the store numbers its rows. `value` holds a number
or is null, `text` holds a text or is null, exactly one of them per row. Times are microseconds
since 1970 in UTC. `labels` is a JSON object of texts with sorted keys, or null.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fogline.storage.errors import BadValue

FIRST_TIME = -62_135_596_800_000_000
END_TIME = 253_370_764_800_000_000
NAME_BYTES = 1_024
LABEL_BYTES = 8_192
TEXT_BYTES = 65_536

NAME = pa.dictionary(pa.int32(), pa.string())
TIME = pa.timestamp("us")
BATCH = pa.schema(
    [
        pa.field("metric", NAME, nullable=False),
        pa.field("entity", NAME, nullable=False),
        pa.field("time", TIME, nullable=False),
        pa.field("value", pa.float64()),
        pa.field("text", pa.string()),
        pa.field("labels", NAME),
    ]
)
SCHEMA = BATCH.append(pa.field("seq", pa.int64(), nullable=False))

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Value:
    """One value as a program sees it; `time` is microseconds since 1970."""

    metric: str
    entity: str
    time: int
    value: float | str
    labels: Mapping[str, str] = field(default_factory=dict)


def labels_text(labels: Mapping[str, str]) -> str | None:
    """How labels are kept; equal labels are equal texts."""
    if not labels:
        return None
    return json.dumps(dict(sorted(labels.items())), ensure_ascii=False, separators=(",", ":"))


def batch(
    metric: Any, entity: Any, time: Any, value: Any, text: Any = None, labels: Any = None
) -> pa.Table:
    """A checked batch from columns: lists, numpy or Arrow arrays. Raises `BadValue`."""
    try:
        number = _numbers(value)
        columns = [
            _names(metric),
            _names(entity),
            _times(time),
            number,
            pa.nulls(len(number), pa.string()) if text is None else _one(text, pa.string()),
            _names(pa.nulls(len(number), pa.string()) if labels is None else labels),
        ]
        table = pa.Table.from_arrays(columns, schema=BATCH)
    except (pa.ArrowException, UnicodeError, OverflowError, TypeError, ValueError) as error:
        raise BadValue(f"invalid columns of values: {error}") from error
    check(table)
    return table


def from_values(values: Iterable[Value]) -> pa.Table:
    """A checked batch from single values. Raises `BadValue`."""
    rows = list(values)
    numbers = [None if isinstance(row.value, str) else float(row.value) for row in rows]
    texts = [row.value if isinstance(row.value, str) else None for row in rows]
    return batch(
        [row.metric for row in rows],
        [row.entity for row in rows],
        [row.time for row in rows],
        pa.array(numbers, pa.float64(), from_pandas=False),
        texts,
        [labels_text(row.labels) for row in rows],
    )


def to_values(table: pa.Table) -> list[Value]:
    """The rows of a batch or an answer."""
    known: dict[str | None, Mapping[str, str]] = {None: {}}
    labels = _texts(table["labels"])
    known.update((text, json.loads(text)) for text in set(labels) if text is not None)
    columns = (
        _texts(table["metric"]),
        _texts(table["entity"]),
        micros(table["time"]).tolist(),
        _merge_values(table["value"], table["text"]),
        [known[text] for text in labels],
    )
    return [Value(*row) for row in zip(*columns, strict=True)]


def check(table: pa.Table) -> None:
    """Raises `BadValue` for the first rule that a batch breaks."""
    if table["metric"].null_count or table["entity"].null_count or table["time"].null_count:
        raise BadValue("a value has no metric, entity or time")
    if _longest(table["metric"]) > NAME_BYTES or _longest(table["entity"]) > NAME_BYTES:
        raise BadValue(f"a name is longer than {NAME_BYTES} bytes")
    if _longest(table["labels"]) > LABEL_BYTES:
        raise BadValue(f"labels are longer than {LABEL_BYTES} bytes")
    if (pc.max(pc.binary_length(table["text"])).as_py() or 0) > TEXT_BYTES:
        raise BadValue(f"a text is longer than {TEXT_BYTES} bytes")
    times = micros(table["time"])
    if len(times) and (times.min() < FIRST_TIME or times.max() >= END_TIME):
        raise BadValue("a time is outside the years 1 to 9998")
    if not pc.all(pc.xor(table["value"].is_valid(), table["text"].is_valid())).as_py() and len(
        table
    ):
        raise BadValue("a value must be either a number or a text")


def with_seq(table: pa.Table) -> pa.Table:
    """A checked table with the schema of the store from one that has its columns, `seq` included.

    Raises `BadValue` for whatever is no such table; for what came from elsewhere.
    """
    try:
        given = batch(*(table[name] for name in BATCH.names))
        seqs = _one(table["seq"], pa.int64())
    except (KeyError, pa.ArrowException) as error:
        raise BadValue(f"invalid columns of values: {error}") from error
    if seqs.null_count or (len(seqs) and pc.min(seqs).as_py() < 0):
        raise BadValue("a value has no number, or one below 0")
    return given.append_column(SCHEMA.field("seq"), seqs)


def add_numbers(table: pa.Table, first: int) -> pa.Table:
    """The batch with the sequence numbers `first`, `first` + 1, …"""
    numbers = np.arange(first, first + len(table), dtype=np.int64)
    return table.append_column(SCHEMA.field("seq"), pa.array(numbers))


def micros(column: Any) -> Integers:
    """A time column as whole numbers."""
    array = as_one_array(column)
    return np.asarray(array.cast(pa.int64()).to_numpy(zero_copy_only=False))


def as_one_array(column: Any) -> Any:
    """A column as one array."""
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def codes(column: Any) -> tuple[Integers, list[str]]:
    """A name column as numbers and the names they stand for."""
    array = as_one_array(column)
    if isinstance(array, pa.ChunkedArray):
        array = array.chunk(0) if array.num_chunks else pa.array([], NAME)
    indices = array.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return indices, array.dictionary.to_pylist()


def without_metrics(table: pa.Table, metrics: Iterable[str]) -> pa.Table:
    """The rows of other metrics than these."""
    names = pa.array(sorted(metrics), pa.string())
    if not len(names):
        return table
    return table.filter(pc.invert(pc.is_in(table["metric"].cast(pa.string()), names)))


def join_tables(tables: Sequence[pa.Table]) -> pa.Table:
    """The rows of all tables, with one dictionary per column."""
    if not tables:
        return SCHEMA.empty_table()
    return pa.concat_tables(tables).unify_dictionaries().combine_chunks()


def _texts(column: Any) -> list[Any]:
    if column.null_count == len(column):
        return [None] * len(column)
    found: list[Any] = column.cast(pa.string()).to_pylist()
    return found


def _merge_values(numbers: Any, texts: Any) -> list[float | str]:
    found: list[float | str] = numbers.to_numpy().tolist()
    if texts.null_count < len(texts):
        pairs = zip(found, texts.to_pylist(), strict=True)
        return [number if text is None else text for number, text in pairs]
    return found


def _one(data: Any, kind: pa.DataType) -> Any:
    array = (
        as_one_array(data) if isinstance(data, pa.Array | pa.ChunkedArray) else pa.array(data, kind)
    )
    return array if array.type == kind else array.cast(kind)


def _names(data: Any) -> Any:
    if isinstance(data, pa.Array | pa.ChunkedArray) and data.type == NAME:
        return as_one_array(data)
    return _one(data, pa.string()).dictionary_encode()


def _numbers(data: Any) -> Any:
    """NaN stays a number."""
    if isinstance(data, np.ndarray):
        return pa.array(data, pa.float64(), from_pandas=False)
    return _one(data, pa.float64())


def _times(data: Any) -> Any:
    if isinstance(data, pa.Array | pa.ChunkedArray) and data.type == TIME:
        return as_one_array(data)
    return _one(data, pa.int64()).cast(TIME)


def _longest(column: Any) -> int:
    dictionary = as_one_array(column)
    chunks = dictionary.chunks if isinstance(dictionary, pa.ChunkedArray) else [dictionary]
    return max((pc.max(pc.binary_length(c.dictionary)).as_py() or 0 for c in chunks), default=0)
