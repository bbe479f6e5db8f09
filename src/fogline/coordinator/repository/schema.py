"""The tables of the store, the same in SQLite and PostgreSQL.

A text (of a pipeline, of a query) is kept once, compressed, under its digest; rows name the digest.
"""

from __future__ import annotations

from sqlalchemy import (
    Column,
    Connection,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    inspect,
    select,
)

from fogline.coordinator.errors import RepositoryError

VERSION = 1

metadata = MetaData()

meta = Table(
    "meta",
    metadata,
    Column("key", Text, primary_key=True),
    Column("value", Integer, nullable=False),
)
texts = Table(
    "texts",
    metadata,
    Column("digest", Text, primary_key=True),
    Column("body", LargeBinary, nullable=False),
)
pipelines = Table(
    "pipelines",
    metadata,
    Column("name", Text, primary_key=True),
    Column("format", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("at", Float, nullable=False),
)
jobs = Table(
    "jobs",
    metadata,
    Column("name", Text, primary_key=True),
    Column("pipeline", Text, nullable=False),
    Column("place", Integer, nullable=False),
    Column("body", Text, nullable=False),
    Column("text", Text),
    sqlite_with_rowid=False,
)
past = Table(
    "past",
    metadata,
    Column("name", Text, primary_key=True),
    Column("upstream", Text, nullable=False),
    Column("at", Float, nullable=False),
    sqlite_with_rowid=False,
)
aliases = Table(
    "aliases",
    metadata,
    Column("name", Text, primary_key=True),
    Column("sha256", Text, nullable=False),
    Column("file", Text, nullable=False),
    Column("size", Integer, nullable=False),
    Column("at", Float, nullable=False),
)
nodes = Table(
    "nodes",
    metadata,
    Column("name", Text, primary_key=True),
    Column("body", Text, nullable=False),
    Column("at", Float, nullable=False),
)
events = Table(
    "events",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("at", Float, nullable=False),
    Column("kind", Text, nullable=False),
    Column("body", Text, nullable=False),
)
node_states = Table(
    "node_states",
    metadata,
    Column("name", Text, primary_key=True),
    Column("first", Float, nullable=False),
    Column("instance", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("past_fails", Integer, nullable=False, default=0),
    Column("past_restarts", Integer, nullable=False, default=0),
    Column("past_closeness", Float, nullable=False, default=0.0),
    Column("past_last", Float, nullable=False, default=0.0),
)
node_events = Table(
    "node_events",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("name", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("at", Float, nullable=False),
    Column("why", Text, nullable=False),
)
copies = Table(
    "copies",
    metadata,
    Column("origin", Text, primary_key=True),
    Column("holder", Text, primary_key=True),
    Column("reason", Text, primary_key=True),
    Column("job", Text, primary_key=True),
    Column("metrics", Text, nullable=False),
    Column("detail", Text, nullable=False),
    Column("since", Float, nullable=False),
)
Index("jobs_of_pipeline", jobs.c.pipeline)
Index("events_of_node", node_events.c.name)


def prepare(connection: Connection) -> None:
    """Makes the tables that are missing; refuses a database of another version."""
    if not inspect(connection).has_table(meta.name):
        metadata.create_all(connection)
        connection.execute(meta.insert(), [{"key": "schema", "value": VERSION}])
        return
    found = connection.execute(select(meta.c.value).where(meta.c.key == "schema")).scalar()
    if found != VERSION:
        raise RepositoryError(
            f"the store has schema version {found}, this Fogline knows version {VERSION}",
            "use the Fogline that wrote it, or another folder",
        )
    metadata.create_all(connection)
