"""Pipelines in the store's tables: reading, replacing, and what is left of those that went."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, delete, func, or_, select

from fogline.coordinator.repository import schema
from fogline.coordinator.repository.job_rows import (
    compact,
    compress_text,
    decompress_text,
    digest_of,
    job_of,
    job_row,
)
from fogline.model.jobs import Job, Pipeline

MOST_PAST = 20_000


@dataclass(frozen=True, slots=True)
class Stored:
    """A pipeline, and the text it came from."""

    pipeline: Pipeline
    format: str
    text: str
    revision: int
    at: float

    @property
    def name(self) -> str:
        return self.pipeline.name


def read_pipelines(connection: Connection) -> dict[str, Stored]:
    """By name."""
    found = connection.execute(select(schema.pipelines).order_by(schema.pipelines.c.name)).all()
    texts = {
        row.digest: decompress_text(row.body) for row in connection.execute(select(schema.texts))
    }
    jobs: dict[str, list[Job]] = {}
    for row in connection.execute(select(schema.jobs).order_by(schema.jobs.c.place)):
        jobs.setdefault(row.pipeline, []).append(job_of(row._asdict(), texts))
    return {
        row.name: Stored(
            Pipeline(row.name, tuple(jobs.get(row.name, ()))),
            row.format,
            texts.get(row.text, ""),
            row.revision,
            row.at,
        )
        for row in found
    }


def read_past(connection: Connection) -> dict[str, frozenset[str]]:
    """Jobs that were ours once, with the jobs that were upstream of them; the oldest first."""
    past = schema.past
    rows = connection.execute(select(past.c.name, past.c.upstream).order_by(past.c.at))
    return {name: frozenset(json.loads(upstream)) for name, upstream in rows}


def write(
    connection: Connection,
    before: Stored | None,
    now: Stored,
    upstream: Mapping[str, Iterable[str]],
) -> None:
    """Makes a pipeline of the one before."""
    delete_rows(connection, now.name)
    row = {"format": now.format, "revision": now.revision, "at": now.at}
    line = {"name": now.name, "text": digest_of(now.text), **row}
    connection.execute(schema.pipelines.insert(), [line])
    old = before.pipeline.jobs if before else ()
    _insert_jobs(connection, now)
    there = {job.name for job in now.pipeline.jobs}
    retire(connection, [job.name for job in old if job.name not in there], upstream, now.at)
    drop_unused_texts(connection)


def delete_rows(connection: Connection, pipeline: str) -> None:
    connection.execute(delete(schema.jobs).where(schema.jobs.c.pipeline == pipeline))
    connection.execute(delete(schema.pipelines).where(schema.pipelines.c.name == pipeline))


def remove(
    connection: Connection, stored: Stored, upstream: Mapping[str, Iterable[str]], at: float
) -> None:
    """Takes a pipeline out, and remembers that its jobs were ours."""
    delete_rows(connection, stored.name)
    retire(connection, [job.name for job in stored.pipeline.jobs], upstream, at)
    drop_unused_texts(connection)


def retire(
    connection: Connection,
    names: Iterable[str],
    upstream: Mapping[str, Iterable[str]],
    at: float,
) -> None:
    """Remembers jobs that went; of very many the oldest are forgotten."""
    past = schema.past
    rows = [
        {"name": name, "upstream": compact(sorted(upstream.get(name, ()))), "at": at}
        for name in names
    ]
    if rows:
        connection.execute(past.insert(), rows)
        known = connection.execute(select(func.count()).select_from(past)).scalar() or 0
        if known > MOST_PAST:
            oldest = select(past.c.name).order_by(past.c.at).limit(known - MOST_PAST)
            connection.execute(delete(past).where(past.c.name.in_(oldest)))


def _insert_jobs(connection: Connection, stored: Stored) -> None:
    pairs = [job_row(job, stored.name, place) for place, job in enumerate(stored.pipeline.jobs)]
    texts = {digest_of(text): text for _, text in pairs if text is not None}
    texts[digest_of(stored.text)] = stored.text
    _write_texts(connection, texts)
    if pairs:
        connection.execute(schema.jobs.insert(), [row for row, _ in pairs])
        there = select(schema.jobs.c.name).where(schema.jobs.c.pipeline == stored.name)
        connection.execute(delete(schema.past).where(schema.past.c.name.in_(there)))


def _write_texts(connection: Connection, texts: Mapping[str, str]) -> None:
    table = schema.texts
    known = set(connection.execute(select(table.c.digest)).scalars())
    rows = [
        {"digest": key, "body": compress_text(text)}
        for key, text in texts.items()
        if key not in known
    ]
    if rows:
        connection.execute(table.insert(), rows)


def drop_unused_texts(connection: Connection) -> None:
    table, jobs, pipelines = schema.texts, schema.jobs, schema.pipelines
    in_jobs = select(jobs.c.text).where(jobs.c.text.is_not(None))
    used = or_(table.c.digest.in_(in_jobs), table.c.digest.in_(select(pipelines.c.text)))
    connection.execute(delete(table).where(~used))
