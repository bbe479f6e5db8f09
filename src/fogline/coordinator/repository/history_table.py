"""Failures and restarts of nodes in the store's tables; the earliest of many are kept as sums."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from sqlalchemy import Connection, delete, func, select, update

from fogline.adapt.replication.folding import fold_history
from fogline.adapt.replication.stability import NodeHistory, Past
from fogline.coordinator.nodes.node_history import FAIL, FORGOTTEN, RESTART, KnownNode, NodeChange
from fogline.coordinator.repository import schema

MOST_EVENTS = 1_000
"""Failures, and as many restarts, that each node has by their times."""
_SLACK = MOST_EVENTS // 10
_NO_PAST = {"past_fails": 0, "past_restarts": 0, "past_closeness": 0.0, "past_last": 0.0}


def read_known(connection: Connection) -> dict[str, KnownNode]:
    rows = connection.execute(select(schema.node_states))
    return {row.name: KnownNode(row.first, row.instance, row.state) for row in rows}


def read_counts(connection: Connection) -> dict[str, Counter[str]]:
    """How often each node failed and was restarted in all."""
    states, events = schema.node_states, schema.node_events
    found = {
        row.name: Counter({FAIL: row.past_fails, RESTART: row.past_restarts})
        for row in connection.execute(select(states).where(states.c.state != FORGOTTEN))
    }
    amount = select(events.c.name, events.c.kind, func.count()).group_by(
        events.c.name, events.c.kind
    )
    for name, kind, count in connection.execute(amount):
        found.setdefault(name, Counter())[kind] += count
    return found


def read_histories(connection: Connection, name: str | None = None) -> dict[str, NodeHistory]:
    states, events = schema.node_states, schema.node_events
    known = select(states).where(states.c.state != FORGOTTEN)
    happened = select(events.c.name, events.c.kind, events.c.at)
    if name is not None:
        known, happened = known.where(states.c.name == name), happened.where(events.c.name == name)
    times: dict[tuple[str, str], list[float]] = {}
    for node, kind, at in connection.execute(happened):
        times.setdefault((node, kind), []).append(at)
    return {
        row.name: NodeHistory(
            row.first,
            tuple(times.get((row.name, FAIL), ())),
            tuple(times.get((row.name, RESTART), ())),
            Past(row.past_fails, row.past_restarts, row.past_closeness, row.past_last),
        )
        for row in connection.execute(known)
    }


def read_events(connection: Connection, name: str, limit: int) -> list[dict[str, Any]]:
    """What happened to a node last, in its order."""
    table = schema.node_events
    newest = (
        select(table).where(table.c.name == name).order_by(table.c.at.desc(), table.c.id.desc())
    )
    rows = connection.execute(newest.limit(limit)).all()
    return [{"at": row.at, "kind": row.kind, "why": row.why} for row in reversed(rows)]


def write(connection: Connection, changes: Iterable[NodeChange]) -> None:
    table = schema.node_states
    rows = []
    for change in changes:
        known = change.known
        values = {"first": known.first, "instance": known.instance, "state": known.state}
        done = connection.execute(update(table).where(table.c.name == change.node).values(**values))
        if not done.rowcount:
            connection.execute(table.insert(), [{"name": change.node, **values, **_NO_PAST}])
        rows += [
            {"name": change.node, "kind": item.kind, "at": item.at, "why": item.why}
            for item in change.happened
        ]
    if rows:
        connection.execute(schema.node_events.insert(), rows)
        for name in {str(row["name"]) for row in rows}:
            _thin(connection, name)


def forget(connection: Connection, name: str) -> None:
    """That it was forgotten is remembered: it is not the same as never seen."""
    events, states = schema.node_events, schema.node_states
    connection.execute(delete(events).where(events.c.name == name))
    mark = update(states).where(states.c.name == name).values(state=FORGOTTEN, **_NO_PAST)
    connection.execute(mark)


def _thin(connection: Connection, name: str) -> None:
    table, states = schema.node_events, schema.node_states
    mine = select(table.c.kind, func.count()).where(table.c.name == name).group_by(table.c.kind)
    counts = {row[0]: int(row[1]) for row in connection.execute(mine)}
    if max(counts.values()) < MOST_EVENTS + _SLACK:
        return
    history = fold_history(read_histories(connection, name)[name], MOST_EVENTS)
    for kind, count in counts.items():
        own = (table.c.name == name) & (table.c.kind == kind)
        earliest = select(table.c.id).where(own).order_by(table.c.at, table.c.id)
        surplus = earliest.limit(max(count - MOST_EVENTS, 0))
        connection.execute(delete(table).where(table.c.id.in_(surplus)))
    past = history.past
    sums = {
        "past_fails": past.fails,
        "past_restarts": past.restarts,
        "past_closeness": past.closeness,
        "past_last": past.last,
    }
    connection.execute(update(states).where(states.c.name == name).values(**sums))
