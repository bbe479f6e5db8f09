"""Pipelines in the store's tables: reading, replacing, and what is left of those that went."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, delete, or_, select

from fogline.coordinator import schema
from fogline.coordinator.rows import compact, digest_of, job_of, job_row, packed, unpacked
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


def read_pipelines(connection: Connection, name: str | None) -> tuple[Stored, ...]:
    lines, items = select(schema.pipelines), select(schema.jobs).order_by(schema.jobs.c.place)
    if name is not None:
        lines = lines.where(schema.pipelines.c.name == name)
        items = items.where(schema.jobs.c.pipeline == name)
    found = connection.execute(lines.order_by(schema.pipelines.c.name)).all()
    if not found:
        return ()
    texts = {row.digest: unpacked(row.body) for row in connection.execute(select(schema.texts))}
    jobs: dict[str, list[Job]] = {}
    for row in connection.execute(items):
        jobs.setdefault(row.pipeline, []).append(job_of(row._asdict(), texts))
    return tuple(
        Stored(
            Pipeline(row.name, tuple(jobs.get(row.name, ()))),
            row.format,
            texts.get(row.text, ""),
            row.revision,
            row.at,
        )
        for row in found
    )


def revision_of(connection: Connection, name: str) -> int:
    table = schema.pipelines
    return connection.execute(select(table.c.revision).where(table.c.name == name)).scalar() or 0


def retire(
    connection: Connection, pipeline: str, upstream: Mapping[str, Iterable[str]], at: float
) -> None:
    """Takes a pipeline out, and remembers that its jobs were ours."""
    jobs, past = schema.jobs, schema.past
    names = connection.execute(select(jobs.c.name).where(jobs.c.pipeline == pipeline)).scalars()
    rows = [
        {"name": name, "upstream": compact(sorted(upstream.get(name, ()))), "at": at}
        for name in names
    ]
    connection.execute(delete(jobs).where(jobs.c.pipeline == pipeline))
    connection.execute(delete(schema.pipelines).where(schema.pipelines.c.name == pipeline))
    if rows:
        connection.execute(past.insert(), rows)
        keep = select(past.c.name).order_by(past.c.at.desc()).limit(MOST_PAST)
        connection.execute(delete(past).where(past.c.name.not_in(keep)))


def write_jobs(connection: Connection, pipeline: Pipeline, source: str) -> None:
    pairs = [job_row(job, place, pipeline.name) for place, job in enumerate(pipeline.jobs)]
    texts = {digest_of(text): text for _, text in pairs if text is not None}
    texts[digest_of(source)] = source
    _write_texts(connection, texts)
    if pairs:
        connection.execute(schema.jobs.insert(), [row for row, _ in pairs])
    names = select(schema.jobs.c.name)
    connection.execute(delete(schema.past).where(schema.past.c.name.in_(names)))
    drop_unused_texts(connection)


def _write_texts(connection: Connection, texts: Mapping[str, str]) -> None:
    table = schema.texts
    known = set(connection.execute(select(table.c.digest)).scalars())
    rows = [
        {"digest": key, "body": packed(text)} for key, text in texts.items() if key not in known
    ]
    if rows:
        connection.execute(table.insert(), rows)


def drop_unused_texts(connection: Connection) -> None:
    table, jobs, pipelines = schema.texts, schema.jobs, schema.pipelines
    in_jobs = select(jobs.c.text).where(jobs.c.text.is_not(None))
    used = or_(table.c.digest.in_(in_jobs), table.c.digest.in_(select(pipelines.c.text)))
    connection.execute(delete(table).where(~used))
