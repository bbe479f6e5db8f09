"""The process in which a user's SQL runs: it may use so much memory and time, or it ends.

Reads requests from its standard input and answers on its standard output until the input ends.
"""

from __future__ import annotations

import io
import json
import os
import resource
import struct
import sys
import threading
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from fogline.storage.errors import StoreError
from fogline.storage.limits import MEBIBYTE, QueryLimits
from fogline.storage.query import sql
from fogline.storage.values import SCHEMA

GRACE_SECONDS = 1.0
_SIZE = struct.Struct("<Q")
_SLACK = 192 * MEBIBYTE


def send(stream: IO[bytes], head: dict[str, Any], *tables: pa.Table) -> None:
    """A JSON head and tables, each with its length before it."""
    for part in (json.dumps(head).encode(), *(_pack_table(table) for table in tables)):
        stream.write(_SIZE.pack(len(part)))
        stream.write(part)
    stream.flush()


def receive(stream: IO[bytes], tables: int) -> tuple[dict[str, Any], list[pa.Table]]:
    """What `send` sent. Raises `EOFError` when the other side has ended."""
    head, *rest = [_part(stream) for _ in range(1 + tables)]
    return json.loads(head), [pa.ipc.open_stream(part).read_all() for part in rest]


def _pack_table(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def _part(stream: IO[bytes]) -> bytes:
    head = stream.read(_SIZE.size)
    size = _SIZE.unpack(head)[0] if len(head) == _SIZE.size else -1
    part = stream.read(size) if size >= 0 else b""
    if len(part) != size:
        raise EOFError
    return part


def _memory() -> int:
    """How much memory of its own the process has."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmData:")) * 1024


def _limit_memory(limit: int) -> None:
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))


def _answer(
    head: dict[str, Any], tables: list[pa.Table], idle: int
) -> tuple[dict[str, Any], pa.Table]:
    limits = QueryLimits(**head["limits"])
    nothing = pa.table({})
    given = sum(table.nbytes for table in tables)
    _limit_memory(idle + 2 * given + limits.memory_bytes + _SLACK)
    try:
        recent, latest, metadata = tables
        known = sql.Tables(head["paths"], recent, latest, metadata, head["without"])
        return {}, sql.run(head["text"], known, head["threads"], limits)
    except StoreError as error:
        return {"error": type(error).__name__, "text": error.message, "hint": error.hint}, nothing
    except MemoryError:
        text = f"the query takes more than {limits.memory_bytes >> 20} MiB of memory"
        return {"error": "QueryLimit", "text": text, "hint": "ask for less"}, nothing


def _warm_up() -> None:
    """What is loaded and reserved once does not count as a query's memory."""
    empty = SCHEMA.empty_table()
    tables = sql.Tables([], empty, empty.drop_columns(["seq"]), empty)
    sql.run("SELECT * FROM history, latest", tables, 1, QueryLimits())
    send(io.BytesIO(), {}, empty)


def main() -> None:
    _warm_up()
    idle = _memory()
    send(sys.stdout.buffer, {"ready": True})
    while True:
        try:
            head, tables = receive(sys.stdin.buffer, 3)
        except EOFError:
            return
        # Should whoever asked have ended, nobody else would end what does not end by itself.
        watch = threading.Timer(head["limits"]["seconds"] + 2 * GRACE_SECONDS, os._exit, [1])
        watch.daemon = True
        watch.start()
        reply, table = _answer(head, tables, idle)
        watch.cancel()
        send(sys.stdout.buffer, reply, table)


if __name__ == "__main__":
    main()
