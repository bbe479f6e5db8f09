"""Data files: Parquet, sorted by metric, entity, time and order of arrival.

Small row groups with statistics let a reader skip what it does not need. A file is on disk when the
function that writes it returns; it counts when the manifest lists it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fogline.common import atomic_files
from fogline.common.sealed_files import crc_of
from fogline.storage.errors import StoreDamaged
from fogline.storage.files.manifest import DataFile
from fogline.storage.values import SCHEMA, Integers, as_one_array, codes, join_tables, micros

SUFFIX = ".parquet"
_GROUP_ROWS = 65_536
_NAMES = ["metric", "entity", "labels"]


def file_name(number: int) -> str:
    return f"{number:012d}{SUFFIX}"


def write(path: Path, table: pa.Table, arrived: tuple[int, int]) -> DataFile:
    """Sorts and writes; `arrived` is the first and the last arrival among the rows."""
    try:
        _write(path, table.take(pa.array(order(table))))
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    times = micros(table["time"])
    seqs = as_one_array(table["seq"]).to_numpy()
    size = path.stat().st_size
    first, last = int(times.min()), int(times.max())
    numbers = int(seqs.min()), int(seqs.max())
    return DataFile(path.name, len(table), size, first, last, *arrived, *numbers, crc_of(path))


def what_is_wrong(path: Path, listed: DataFile) -> str:
    """Why a file is not the one that the manifest lists; empty where it is. One of an older version
    has no checksum: it is read instead."""
    try:
        size = path.stat().st_size
        if size != listed.bytes:
            return f"it has {size} bytes, not {listed.bytes}"
        if listed.crc is not None:
            return "" if crc_of(path) == listed.crc else "the checksum is wrong"
        rows = len(read(path))
        return "" if rows == listed.rows else f"it has {rows} rows, not {listed.rows}"
    except FileNotFoundError:
        return "it is missing"
    except (OSError, StoreDamaged) as error:
        return f"it cannot be read: {error}"


def seqs_of(path: Path) -> tuple[int, int]:
    """The lowest and highest `seq` of a file, from its statistics. Raises `StoreDamaged`."""
    try:
        about = pq.read_metadata(path)
    except (OSError, pa.ArrowException) as error:
        raise StoreDamaged(path, str(error).splitlines()[0]) from error
    column = about.schema.names.index("seq")
    groups = [about.row_group(i).column(column).statistics for i in range(about.num_row_groups)]
    return min(group.min for group in groups), max(group.max for group in groups)


def _write(path: Path, table: pa.Table) -> None:
    pq.write_table(
        table,
        path,
        row_group_size=_GROUP_ROWS,
        compression="zstd",
        compression_level=1,
        use_dictionary=_NAMES,
        column_encoding={"time": "DELTA_BINARY_PACKED", "seq": "DELTA_BINARY_PACKED"},
        write_statistics=["metric", "entity", "time", "seq"],
        store_schema=False,
    )
    atomic_files.sync(path)
    atomic_files.sync(path.parent)


def read(path: Path, columns: list[str] | None = None) -> pa.Table:
    """A file as it was written. Raises `StoreDamaged`."""
    try:
        file = pq.ParquetFile(path, read_dictionary=_NAMES)
        table = file.read(columns, use_threads=False)
    except (OSError, pa.ArrowException) as error:
        raise StoreDamaged(path, str(error).splitlines()[0]) from error
    expected = SCHEMA if columns is None else pa.schema([SCHEMA.field(name) for name in columns])
    return table.select(expected.names).cast(expected)


def merge(paths: Iterable[Path]) -> pa.Table:
    """The rows of several files, in no particular order."""
    return join_tables([read(path) for path in paths])


def newest(path: Path) -> pa.Table:
    """The newest value of every metric and entity of a file: the last row of each run."""
    table = read(path).unify_dictionaries().combine_chunks()
    metric, _ = codes(table["metric"])
    entity, _ = codes(table["entity"])
    changes = (metric[1:] != metric[:-1]) | (entity[1:] != entity[:-1])
    rows = np.flatnonzero(np.append(changes, True))
    return table.take(pa.array(rows)).drop_columns(["seq"])


def order(table: pa.Table) -> Integers:
    """The rows in the order of a file."""
    metric, metrics = codes(table["metric"])
    entity, entities = codes(table["entity"])
    keys = _ranks(metrics)[metric] * max(len(entities), 1) + _ranks(entities)[entity]
    sequence = as_one_array(table["seq"]).to_numpy()
    return np.asarray(np.lexsort((sequence, micros(table["time"]), keys)))


def remove_strays(folder: Path, known: Iterable[DataFile]) -> int:
    """Removes what no manifest lists; returns how many files that were."""
    names = {file.name for file in known}
    strays = [entry for entry in os.scandir(folder) if entry.name not in names]
    for stray in strays:
        os.unlink(stray.path)
    return len(strays)


def _ranks(names: list[str]) -> Integers:
    """The place of each name among all; equal names have equal places."""
    places = {name: place for place, name in enumerate(sorted(set(names)))}
    return np.fromiter((places[name] for name in names), np.int64, len(names))
