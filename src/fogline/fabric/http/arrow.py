"""Tables as Arrow streams between nodes and their callers; what came from outside is checked.

What belongs to an answer besides its rows is the schema's metadata entry `fogline`, as JSON.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from fogline.storage.errors import BadValue

ARROW_TYPE = "application/vnd.apache.arrow.stream"
ENTRY = b"fogline"

_DICTIONARY, _BATCH = 2, 3
"""Kinds of messages in a stream that have a body."""
_HEADER_TYPE, _HEADER, _DICTIONARY_DATA, _COMPRESSION = 1, 2, 1, 3
"""Places of fields in the tables of a message."""


def to_arrow(table: pa.Table, extra: Mapping[str, Any] | None = None) -> bytes:
    """A table as an Arrow stream."""
    metadata = {ENTRY: json.dumps(extra or {}).encode()}
    plain = table.replace_schema_metadata(metadata)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, plain.schema) as writer:
        writer.write_table(plain)
    return bytes(sink.getvalue())


def from_arrow(data: bytes) -> tuple[pa.Table, dict[str, Any]]:
    """The table of a stream and its metadata. Raises `BadValue`, whatever the bytes are.

    Compressed streams are refused: a few bytes of them can stand for any amount of memory.
    """
    try:
        _refuse_compressed(data)
        with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
            table = reader.read_all()
        table.validate(full=True)
        extra = json.loads((table.schema.metadata or {}).get(ENTRY, b"{}"))
    except (
        *(pa.ArrowException, OSError, EOFError, OverflowError, MemoryError),
        *(ValueError, RecursionError, struct.error),
    ) as error:
        raise BadValue(f"invalid Arrow stream: {str(error)[:200]}") from error
    # Columns of nothing but nulls take no bytes, however many rows they claim.
    if not isinstance(extra, dict) or len(table) > 8 * len(data):
        raise BadValue("this Arrow stream holds what it cannot hold")
    return table.replace_schema_metadata(None), extra


def _refuse_compressed(data: bytes) -> None:
    reader = pa.ipc.MessageReader.open_stream(pa.py_buffer(data))
    for message in reader:
        if message.type in ("dictionary", "record batch") and _is_compressed(message.metadata):
            raise ValueError("it is compressed, which is not accepted")


def _is_compressed(head: Any) -> bool:
    """Whether a message's flatbuffer says that its body is compressed."""
    view = memoryview(head)
    message = struct.unpack_from("<I", view, 0)[0]
    kind = view[_field(view, message, _HEADER_TYPE) or 0]
    body = _table(view, message, _HEADER)
    if kind == _DICTIONARY:
        body = _table(view, body, _DICTIONARY_DATA)
    return kind in (_DICTIONARY, _BATCH) and _field(view, body, _COMPRESSION) is not None


def _field(view: memoryview, table: int, place: int) -> int | None:
    """Where a field of a flatbuffer's table is; nothing when it is left out."""
    fields = table - struct.unpack_from("<i", view, table)[0]
    if fields < 0 or 4 + 2 * place >= struct.unpack_from("<H", view, fields)[0]:
        return None
    offset = struct.unpack_from("<H", view, fields + 4 + 2 * place)[0]
    return table + offset if offset else None


def _table(view: memoryview, table: int, place: int) -> int:
    at = _field(view, table, place)
    if at is None:
        raise ValueError("a message says nothing about its body")
    return int(at + struct.unpack_from("<I", view, at)[0])
