"""The desired state, on disk: pipelines and their jobs, packages' names, nodes, events.

SQLite in the coordinator's folder, or PostgreSQL by URL. Every change is one transaction, and on
disk when the method returns. Every failure of the database is a `RepositoryError`.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, delete, event, func, select
from sqlalchemy.exc import DatabaseError, OperationalError, SQLAlchemyError

from fogline.common.errors import DataError
from fogline.common.sealed_files import closed, open_seal, remedy, seal
from fogline.coordinator.errors import RepositoryError
from fogline.coordinator.repository import history_table, replicas_table, schema
from fogline.coordinator.repository.job_rows import compact
from fogline.coordinator.repository.pipelines_table import (
    Stored,
    read_past,
    read_pipelines,
    remove,
    write,
)
from fogline.coordinator.repository.snapshot import Kept
from fogline.model.jobs import Pipeline
from fogline.model.nodes import Node

MOST_EVENTS = 10_000
_SQLITE = "sqlite:///"


@dataclass(frozen=True, slots=True)
class Alias:
    """A package under the name that job descriptions use."""

    name: str
    sha256: str
    file: str
    size: int
    at: float


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the event log."""

    at: float
    kind: str
    body: Mapping[str, Any]
    id: int = 0


class Store:
    """Safe for many threads. One coordinator at a time."""

    def __init__(self, url: str) -> None:
        self._lock = threading.Lock()
        self._file = Path(url.removeprefix(_SQLITE)) if url.startswith(_SQLITE) else None
        if self._file is not None and (wrong := open_seal(self._file)):
            raise _damage_error(self._file, wrong)
        self._engine = _engine(url)
        self._sqlite = self._engine.dialect.name == "sqlite"
        self._logged = 0
        self._kept: Kept | None = None
        self._aliases: dict[str, Alias] | None = None
        """As they are in the database, once they were read; changed under a lock of their own."""
        self._naming = threading.Lock()
        if self._file is not None:
            self._check(self._file)
        with self.change() as connection:
            schema.prepare(connection)

    def close(self) -> None:
        self._engine.dispose()
        if self._file is not None and closed(self._file):
            seal(self._file)

    def _check(self, file: Path) -> None:
        try:
            with self._engine.connect() as connection:
                found = connection.exec_driver_sql("PRAGMA quick_check(1)").scalar()
        except OperationalError:
            return  # it cannot be opened: that is reported where it is used
        except DatabaseError as error:
            found = str(error.orig)
        if found != "ok":
            raise _damage_error(file, str(found))

    # ── pipelines ────────────────────────────────────────────────────────────────────────────────

    def pipelines(self) -> tuple[Stored, ...]:
        return tuple(self._load_kept().pipelines.values())

    def pipeline(self, name: str) -> Stored | None:
        return self._load_kept().pipelines.get(name)

    def put(
        self,
        pipeline: Pipeline,
        format: str,
        text: str,
        at: float,
        upstream: Mapping[str, Iterable[str]] | None = None,
    ) -> int:
        """Replaces a pipeline and answers its revision. `upstream` is kept for jobs that go."""
        kept = self._load_kept()
        before = kept.pipelines.get(pipeline.name)
        revision = before.revision + 1 if before else 1
        stored = Stored(pipeline, format, text, revision, at)
        with self.change() as connection:
            write(connection, before, stored, upstream or {})
        self._kept = kept.put(stored, upstream or {})
        return revision

    def delete(
        self, name: str, at: float, upstream: Mapping[str, Iterable[str]] | None = None
    ) -> bool:
        """Whether there was such a pipeline."""
        kept = self._load_kept()
        before = kept.pipelines.get(name)
        if before is None:
            return False
        with self.change() as connection:
            remove(connection, before, upstream or {}, at)
        self._kept = kept.delete(name, upstream or {})
        return True

    def past_jobs(self) -> dict[str, frozenset[str]]:
        """Jobs that were ours once, with the jobs that were upstream of them."""
        return self._load_kept().past

    def _load_kept(self) -> Kept:
        """Read once; changes are made in both places, one after the other by whoever calls."""
        if self._kept is None:
            with self.look() as connection:
                self._kept = Kept(read_pipelines(connection), read_past(connection))
        return self._kept

    # ── packages, nodes, events ──────────────────────────────────────────────────────────────────

    def set_alias(self, alias: Alias) -> None:
        table = schema.aliases
        with self._naming, self.change() as connection:
            self._aliases = None
            connection.execute(delete(table).where(table.c.name == alias.name))
            values = {key: getattr(alias, key) for key in Alias.__dataclass_fields__}
            connection.execute(table.insert(), [values])

    def drop_aliases(self, names: Iterable[str]) -> None:
        table = schema.aliases
        with self._naming, self.change() as connection:
            self._aliases = None
            connection.execute(delete(table).where(table.c.name.in_(list(names))))

    def aliases(self) -> dict[str, Alias]:
        """Read again after a change only."""
        with self._naming:
            if self._aliases is None:
                with self.look() as connection:
                    rows = connection.execute(
                        select(schema.aliases).order_by(schema.aliases.c.name)
                    )
                    self._aliases = {row.name: Alias(**row._asdict()) for row in rows}
            return dict(self._aliases)

    def remember_nodes(self, nodes: Iterable[Node], at: float) -> None:
        table = schema.nodes
        rows = [{"name": n.name, "body": compact(n.as_json()), "at": at} for n in nodes]
        if not rows:
            return
        with self.change() as connection:
            names = [row["name"] for row in rows]
            connection.execute(delete(table).where(table.c.name.in_(names)))
            connection.execute(table.insert(), rows)

    def forget_node(self, name: str) -> None:
        """With its history, and the copies decided of its values, or held by it of others'."""
        with self.change() as connection:
            connection.execute(delete(schema.nodes).where(schema.nodes.c.name == name))
            history_table.forget(connection, name)
            replicas_table.forget(connection, name)

    def nodes(self) -> dict[str, tuple[Node, float]]:
        """The nodes as they last described themselves, and when."""
        with self.look() as connection:
            rows = connection.execute(select(schema.nodes).order_by(schema.nodes.c.name)).all()
        try:
            return {row.name: (Node.from_json(json.loads(row.body)), row.at) for row in rows}
        except (ValueError, DataError) as error:
            raise RepositoryError(f"a node in the store is damaged: {error}") from error

    def log(self, entries: Iterable[Entry]) -> None:
        """Adds to the event log and drops what is older than its last entries."""
        rows = [{"at": e.at, "kind": e.kind, "body": compact(dict(e.body))} for e in entries]
        if not rows:
            return
        table = schema.events
        with self.change() as connection:
            connection.execute(table.insert(), rows)
            self._logged += len(rows)
            if self._logged >= MOST_EVENTS // 10:
                self._logged = 0
                newest = connection.execute(select(func.max(table.c.id))).scalar() or 0
                connection.execute(delete(table).where(table.c.id <= newest - MOST_EVENTS))

    def events(self, limit: int = 100, after: int = 0) -> tuple[Entry, ...]:
        """The last ones behind the id `after`, in their order."""
        table = schema.events
        newest = select(table).where(table.c.id > after).order_by(table.c.id.desc()).limit(limit)
        with self.look() as connection:
            rows = connection.execute(newest).all()
        return tuple(Entry(r.at, r.kind, json.loads(r.body), r.id) for r in reversed(rows))

    # ── transactions ─────────────────────────────────────────────────────────────────────────────

    @contextlib.contextmanager
    def change(self) -> Iterator[Connection]:
        """One transaction: all of it is on disk at the end, or nothing."""
        with self._lock, _repository_errors(), self._engine.begin() as connection:
            yield connection

    @contextlib.contextmanager
    def look(self) -> Iterator[Connection]:
        with _repository_errors(), self._engine.connect() as connection:
            yield connection

    def tidy(self) -> None:
        """Brings what SQLite has in its write-ahead log into the file, so that it stays small. For
        when nobody waits: what was changed is on disk without it."""
        if self._sqlite:
            with self._lock, _repository_errors(), self._engine.connect() as connection:
                connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").close()


def _damage_error(file: Path, reason: str) -> RepositoryError:
    return RepositoryError(f"{file} is damaged: {reason}", remedy(file))


def _engine(url: str) -> Engine:
    with _repository_errors():
        if url.startswith(("postgresql://", "postgres://")):
            address = "postgresql+psycopg://" + url.split("://", 1)[1]
            return create_engine(address, pool_pre_ping=True)
        if not url.startswith(_SQLITE):
            raise RepositoryError(
                "the store is no database that is known", "sqlite:/// or postgresql://"
            )
        engine = create_engine(url, connect_args={"timeout": 10, "check_same_thread": False})
        event.listen(engine, "connect", _set_up_sqlite)
        return engine


def _set_up_sqlite(connection: Any, _record: Any) -> None:
    cursor = connection.cursor()
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "journal_size_limit=0"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


@contextlib.contextmanager
def _repository_errors() -> Iterator[None]:
    """Failures of the database as errors of ours; their texts hold no address and no values."""
    try:
        yield
    except SQLAlchemyError as error:
        reason = str(getattr(error, "orig", None) or type(error).__name__).strip().splitlines()
        text = f"the store cannot be used: {reason[0] if reason else 'no reason given'}"
        raise RepositoryError(text, "is the database there, and is its disk full?") from error
