"""Jobs as rows: JSON without what is a default, and a query's text by its digest."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Mapping
from typing import Any

from fogline.coordinator.errors import StoreError
from fogline.errors import DataError
from fogline.model.jobs import WHOLE, Job

_DEFAULTS: dict[str, Any] = {
    "reads": [],
    "writes": [],
    "parameters": {},
    "input": {},
    "publish": False,
    "running": True,
}
_WORK_DEFAULTS: dict[str, Any] = {"stage": WHOLE, "insights": []}


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def packed(text: str) -> bytes:
    return zlib.compress(text.encode("utf-8", "surrogatepass"), 9)


def unpacked(body: bytes) -> str:
    try:
        return zlib.decompress(body).decode("utf-8", "surrogatepass")
    except (zlib.error, UnicodeDecodeError) as error:
        raise StoreError(f"a text in the store is damaged: {error}") from error


def job_row(job: Job, place: int, pipeline: str) -> tuple[dict[str, Any], str | None]:
    """The row, and the query text that belongs to it."""
    told = job.as_json()
    work = told["work"]
    text = work.pop("query", None)
    told["work"] = _without(work, _WORK_DEFAULTS)
    del told["name"]
    return {
        "name": job.name,
        "pipeline": pipeline,
        "place": place,
        "body": compact(_without(told, _DEFAULTS)),
        "text": None if text is None else digest_of(text),
    }, text


def job_of(row: Mapping[str, Any], texts: Mapping[str, str]) -> Job:
    try:
        told = json.loads(row["body"])
        if row["text"] is not None:
            told["work"]["query"] = texts[row["text"]]
        return Job.from_json({**told, "name": row["name"]})
    except (ValueError, KeyError, TypeError, DataError) as error:
        raise StoreError(f"job {row['name']!r} in the store is damaged: {error}") from error


_COMPACT = json.JSONEncoder(separators=(",", ":")).encode


def compact(data: Any) -> str:
    return _COMPACT(data)


def _without(told: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: value for key, value in told.items() if key not in defaults or value != defaults[key]
    }
