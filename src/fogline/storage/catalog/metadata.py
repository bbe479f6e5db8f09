"""What is known about each metric, with versions that let sites agree without asking each other.

A change gets a version above every one seen of its key. Of two versions the higher one holds, of
equal ones that of the greater site name, so merging in any order gives the same. Removing leaves a
mark, because another site may still send what was removed.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace

import pyarrow as pa

from fogline.storage.catalog.database import Database
from fogline.storage.catalog.signed import Signed, after, signer, signing
from fogline.storage.errors import BadQuery, BadValue
from fogline.storage.names import parse_all
from fogline.storage.values import NAME_BYTES

_MAX_BYTES = 65_536
_TABLE = """
CREATE TABLE IF NOT EXISTS metadata (
    metric TEXT, entity TEXT, version INTEGER, origin TEXT, removed INTEGER, body TEXT,
    change INTEGER, PRIMARY KEY (metric, entity)) WITHOUT ROWID"""
_INDEX = "CREATE UNIQUE INDEX IF NOT EXISTS metadata_change ON metadata (change)"


@dataclass(frozen=True, slots=True)
class Description:
    """Thirteen things to know about a metric, and a map for everything else."""

    name: str = ""
    description: str = ""
    unit: str = ""
    type: str = ""
    group: str = ""
    entity_type: str = ""
    minimum: float | None = None
    maximum: float | None = None
    higher_is_better: bool | None = None
    source: str = ""
    interval_ms: int | None = None
    location: str = ""
    owner: str = ""
    extra: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Metadata:
    """A description of a metric of an entity (empty: of every entity) in one version."""

    metric: str
    entity: str
    description: Description
    version: int
    origin: str
    removed: bool = False

    @property
    def rank(self) -> tuple[int, str, str]:
        """Decides between two versions; the text makes it total, whatever a site sends."""
        return self.version, self.origin, _encode_metadata(self)


class MetadataStore:
    """The metadata a site knows; for any thread, as long as its database is open."""

    def __init__(self, database: Database, site: str) -> None:
        self._database = database
        self._site = site
        self._guard = threading.Lock()
        self.signed = Signed()
        database.run(_TABLE)
        database.run(_INDEX)
        for row in database.ask(f"{_SELECT} WHERE entity GLOB ?", (signing("*"),)):
            self._note_signed(_decode_metadata(row))

    def put(self, metric: str, description: Description, entity: str = "") -> Metadata:
        """A new version of this site."""
        return self._change(metric, entity, description, removed=False)

    def remove(self, metric: str, entity: str = "") -> None:
        self._change(metric, entity, Description(), removed=True)

    def get(self, metric: str, entity: str = "") -> Metadata | None:
        """That of the entity, else that of every entity; nothing where there is none."""
        for candidate in dict.fromkeys((entity, "")):
            found = self._load(metric, candidate)
            if found is not None and not found.removed:
                return found
        return None

    def find(self, metrics: str | Iterable[str] | None = None) -> list[Metadata]:
        """All that is there, of these metrics; prefixes as in questions."""
        patterns = parse_all(metrics)
        rows = self._database.ask(f"{_SELECT} WHERE NOT removed ORDER BY metric, entity")
        found = [_decode_metadata(row) for row in rows if signer(row[1]) is None]
        return [item for item in found if patterns is None or patterns.matches(item.metric)]

    def sign(self, outlets_by_metric: Mapping[str, Mapping[str, str | None]]) -> None:
        """This site's insights: by metric, of each job that publishes it the key that it needs, or
        None. What others have sent of the metric before stays. Repeating it changes nothing."""
        with self._guard:
            for metric, outlets in outlets_by_metric.items():
                known = self.signed.outlets(self._site, metric)
                updated = after(known, outlets)
                if updated != known and len(metric.encode()) <= NAME_BYTES:
                    what = Description(extra=updated)
                    self._renew(metric, signing(self._site), what, removed=not updated)

    def signatures(self, node: str) -> tuple[Metadata, ...]:
        """What a node has signed, for who gets its values."""
        found = (self._load(metric, signing(node)) for metric in self.signed.metrics(node))
        return tuple(item for item in found if item is not None)

    def changes(self, since: int, limit: int = 1_000) -> tuple[list[Metadata], int]:
        """What changed here after `since`, in order, and the `since` for the next call."""
        query = f"{_SELECT} WHERE change > ? ORDER BY change LIMIT ?"
        rows = self._database.ask(query, (since, limit))
        return [_decode_metadata(row) for row in rows], rows[-1][6] if rows else since

    @property
    def version(self) -> int:
        """The `since` behind the last change: another number means that there are changes."""
        found = self._database.ask("SELECT coalesce(max(change), 0) FROM metadata")
        return int(found[0][0])

    def merge(self, items: Iterable[Metadata]) -> int:
        """Takes over what is newer than what is known; returns how many that were."""
        taken = 0
        with self._guard:
            for item in items:
                _check(item)
                known = self._load(item.metric, item.entity)
                if known is None or item.rank > known.rank:
                    self._save(item)
                    taken += 1
        return taken

    def table(self, without: Collection[str] = ()) -> pa.Table:
        """For SQL: a row per description; `extra` is a JSON object."""
        rows = [
            {"metric": item.metric, "entity": item.entity, **asdict(item.description)}
            | {"extra": json.dumps(dict(item.description.extra)), "version": item.version}
            for item in self.find()
            if item.metric not in without
        ]
        return pa.Table.from_pylist(rows, schema=_ARROW)

    def _change(self, metric: str, entity: str, what: Description, removed: bool) -> Metadata:
        with self._guard:
            return self._renew(metric, entity, what, removed)

    def _renew(self, metric: str, entity: str, what: Description, removed: bool) -> Metadata:
        known = self._load(metric, entity)
        version = known.version + 1 if known else 1
        item = Metadata(metric, entity, what, version, self._site, removed)
        _check(item)
        self._save(item)
        return item

    def _load(self, metric: str, entity: str) -> Metadata | None:
        rows = self._database.ask(f"{_SELECT} WHERE metric = ? AND entity = ?", (metric, entity))
        return _decode_metadata(rows[0]) if rows else None

    def _save(self, item: Metadata) -> None:
        key = (
            item.metric,
            item.entity,
            item.version,
            item.origin,
            item.removed,
            _encode_metadata(item),
        )
        newest = "(SELECT coalesce(max(change), 0) + 1 FROM metadata)"
        self._database.run(f"REPLACE INTO metadata VALUES (?, ?, ?, ?, ?, ?, {newest})", key)
        self._note_signed(item)

    def _note_signed(self, item: Metadata) -> None:
        node = signer(item.entity)
        if node is not None:
            self.signed.learn(node, item.metric, {} if item.removed else item.description.extra)


_SELECT = "SELECT metric, entity, version, origin, removed, body, change FROM metadata"
_KINDS = {"minimum": pa.float64(), "maximum": pa.float64(), "interval_ms": pa.int64()}
_NAMES = [item.name for item in fields(Description)]
_ARROW = pa.schema(
    [("metric", pa.string()), ("entity", pa.string())]
    + [
        (name, pa.bool_() if name == "higher_is_better" else _KINDS.get(name, pa.string()))
        for name in _NAMES
    ]
    + [("version", pa.int64())]
)


def _encode_metadata(item: Metadata) -> str:
    return json.dumps(asdict(replace(item.description, extra=dict(item.description.extra))))


def _decode_metadata(row: tuple[str, str, int, str, int, str, int]) -> Metadata:
    metric, entity, version, origin, removed, body, _ = row
    description = Description(**json.loads(body))
    return Metadata(metric, entity, description, version, origin, bool(removed))


def _check(item: Metadata) -> None:
    try:
        sizes = [len(name.encode()) for name in (item.metric, item.entity, item.origin)]
        body = _encode_metadata(item)
    except (UnicodeEncodeError, TypeError, AttributeError) as error:
        raise BadValue("this metadata cannot be written as text") from error
    if not item.metric or max(sizes) > NAME_BYTES or len(body) > _MAX_BYTES:
        raise BadValue("metadata must have a metric, and names and texts must not be too long")
    if not 0 < item.version < 1 << 53:
        raise BadQuery(f"a version must be a positive number, not {item.version}")
