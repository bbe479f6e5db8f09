"""Jobs as rows: JSON without what is a default, and a query's text by its digest."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Mapping
from typing import Any

from fogline.common.errors import DataError
from fogline.coordinator.errors import RepositoryError
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


def compress_text(text: str) -> bytes:
    return zlib.compress(text.encode("utf-8", "surrogatepass"), 9)


def decompress_text(body: bytes) -> str:
    try:
        return zlib.decompress(body).decode("utf-8", "surrogatepass")
    except (zlib.error, UnicodeDecodeError) as error:
        raise RepositoryError(f"a text in the store is damaged: {error}") from error


def job_row(job: Job, pipeline: str, place: int) -> tuple[dict[str, Any], str | None]:
    """The row of `schema.jobs`, and the query text that belongs to it."""
    data = job.as_json()
    text = data["work"].pop("query", None)
    data["work"] = _drop_defaults(data["work"], _WORK_DEFAULTS)
    del data["name"]
    row = {
        "name": job.name,
        "pipeline": pipeline,
        "place": place,
        "body": compact(_drop_defaults(data, _DEFAULTS)),
        "text": None if text is None else digest_of(text),
    }
    return row, text


def job_of(row: Mapping[str, Any], texts: Mapping[str, str]) -> Job:
    try:
        data = json.loads(row["body"])
        if row["text"] is not None:
            data["work"]["query"] = texts[row["text"]]
        return Job.from_json({**data, "name": row["name"]})
    except (ValueError, KeyError, TypeError, DataError) as error:
        raise RepositoryError(f"job {row['name']!r} in the store is damaged: {error}") from error


compact = json.JSONEncoder(separators=(",", ":")).encode
"""JSON without blanks."""


def _drop_defaults(data: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: value for key, value in data.items() if key not in defaults or value != defaults[key]
    }
