"""Decisions about copies in the store's table."""

from __future__ import annotations

import json
from collections.abc import Iterable

from sqlalchemy import Connection, delete, or_, select

from fogline.common.errors import DataError
from fogline.coordinator.errors import RepositoryError
from fogline.coordinator.nodes.replicas import Decision
from fogline.coordinator.nodes.store_reports import read_metrics
from fogline.coordinator.repository import schema
from fogline.coordinator.repository.job_rows import compact


def read(connection: Connection) -> tuple[Decision, ...]:
    table = schema.copies
    order = (table.c.origin, table.c.holder, table.c.reason, table.c.job)
    rows = connection.execute(select(table).order_by(*order)).all()
    try:
        return tuple(
            Decision(
                row.origin,
                row.holder,
                row.reason,
                row.job,
                read_metrics(json.loads(row.metrics)),
                row.since,
                json.loads(row.detail),
            )
            for row in rows
        )
    except (ValueError, DataError) as error:
        raise RepositoryError(f"a desired copy in the store is damaged: {error}") from error


def put(connection: Connection, decisions: Iterable[Decision]) -> None:
    """Replaces those of the same origin, holder, reason and job."""
    items = list(decisions)
    drop(connection, items)
    rows = [
        {
            "origin": item.origin,
            "holder": item.holder,
            "reason": item.reason,
            "job": item.job,
            "metrics": compact(None if item.metrics is None else list(item.metrics)),
            "detail": compact(dict(item.detail)),
            "since": item.since,
        }
        for item in items
    ]
    if rows:
        connection.execute(schema.copies.insert(), rows)


def drop(connection: Connection, decisions: Iterable[Decision]) -> None:
    table = schema.copies
    for item in decisions:
        origin, holder, reason, job = item.key
        same_pair = (table.c.origin == origin) & (table.c.holder == holder)
        same_why = (table.c.reason == reason) & (table.c.job == job)
        connection.execute(delete(table).where(same_pair & same_why))


def forget(connection: Connection, node: str) -> None:
    table = schema.copies
    connection.execute(delete(table).where(or_(table.c.origin == node, table.c.holder == node)))
