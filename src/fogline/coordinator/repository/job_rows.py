"""Jobs as rows: JSON without what is a default, and a query's text by its digest."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Mapping, Sequence
from json.encoder import encode_basestring_ascii as _quoted
from typing import Any

from sqlalchemy import Connection, Table

from fogline.common.errors import DataError
from fogline.coordinator.errors import RepositoryError
from fogline.model.jobs import WHOLE, Job, Place

_DEFAULTS: dict[str, Any] = {
    "parameters": {},
    "input": {},
    "publish": False,
    "running": True,
}
_PLACES = ("reads", "writes")
_WORK_DEFAULTS: dict[str, Any] = {"stage": WHOLE, "insights": []}


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def packed(text: str) -> bytes:
    return zlib.compress(text.encode("utf-8", "surrogatepass"), 9)


def unpacked(body: bytes) -> str:
    try:
        return zlib.decompress(body).decode("utf-8", "surrogatepass")
    except (zlib.error, UnicodeDecodeError) as error:
        raise RepositoryError(f"a text in the store is damaged: {error}") from error


Row = tuple[str | float | None, ...]


def insert(connection: Connection, table: Table, rows: Sequence[Row]) -> None:
    """Rows with a value for every column, in the table's order. Texts and numbers go to the driver
    as they are: to have them looked at one by one takes longer than writing them."""
    mark = "?" if connection.dialect.paramstyle == "qmark" else "%s"
    marks = ", ".join([mark] * len(table.columns))
    columns = ", ".join(column.name for column in table.columns)
    if rows:
        statement = f"INSERT INTO {table.name} ({columns}) VALUES ({marks})"
        connection.exec_driver_sql(statement, list(rows))


class JobRows:
    """Rows of a pipeline's jobs: what jobs have in common is written once. For as long as the jobs
    are there."""

    def __init__(self, pipeline: str) -> None:
        self._pipeline = pipeline
        self._known: dict[Any, tuple[str, str | None]] = {}

    def row(self, job: Job, place: int) -> tuple[Row, str | None]:
        """The row, in the order of `schema.jobs`, and the query text that belongs to it."""
        parts = id(job.work), id(job.parameters), id(job.input)
        key = (*parts, job.publish, job.running, job.muted)
        known = self._known.get(key)
        if known is None:
            self._known[key] = known = _shared(job)
        shared, text = known
        reads, writes = _told("reads", job.reads), _told("writes", job.writes)
        body = f'{{"node":{_quoted(job.node)}{reads}{writes},{shared[1:]}'
        digest = None if text is None else digest_of(text)
        return (job.name, self._pipeline, place, body, digest), text


def _shared(job: Job) -> tuple[str, str | None]:
    """What is written of a job besides where it is, reads and writes; and its query text."""
    told = job.as_json()
    work = told["work"]
    text = work.pop("query", None)
    told["work"] = _without(work, _WORK_DEFAULTS)
    rest = {name: value for name, value in told.items() if name not in ("name", "node", *_PLACES)}
    return compact(_without(rest, _DEFAULTS)), text


def _told(name: str, places: tuple[Place, ...]) -> str:
    return f',"{name}":[{",".join(map(_place, places))}]' if places else ""


def _place(place: Place) -> str:
    """Like `place_as_json`, for very many of them."""
    node = f',"node":{_quoted(place.node)}' if place.node else ""
    broker = f',"broker":{_quoted(place.broker)}' if place.broker else ""
    return f'{{"topic":{_quoted(place.topic)}{node}{broker}}}'


def job_of(row: Mapping[str, Any], texts: Mapping[str, str]) -> Job:
    try:
        told = json.loads(row["body"])
        if row["text"] is not None:
            told["work"]["query"] = texts[row["text"]]
        return Job.from_json({**told, "name": row["name"]})
    except (ValueError, KeyError, TypeError, DataError) as error:
        raise RepositoryError(f"job {row['name']!r} in the store is damaged: {error}") from error


_COMPACT = json.JSONEncoder(separators=(",", ":")).encode


def compact(data: Any) -> str:
    return _COMPACT(data)


def _without(told: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: value for key, value in told.items() if key not in defaults or value != defaults[key]
    }
