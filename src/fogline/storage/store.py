"""The store of one site: latest values, history, metadata and application data behind one
interface."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from fogline.common.private_files import private_folder
from fogline.log import LogBusy
from fogline.log.files.lock import WriterLock
from fogline.storage.catalog.database import Database
from fogline.storage.catalog.metadata import MetadataStore
from fogline.storage.catalog.spaces import Spaces
from fogline.storage.errors import StoreBusy
from fogline.storage.files import manifest
from fogline.storage.files.history import HistoryFiles
from fogline.storage.files.identity import store_id
from fogline.storage.files.latest import Latest
from fogline.storage.files.maintenance import EvictionClock, Upkeep, to_evict, to_merge
from fogline.storage.files.manifest import LostFile
from fogline.storage.limits import QueryLimits, StoreLimits
from fogline.storage.names import parse_all
from fogline.storage.query.changes import Changes, Following
from fogline.storage.query.listing import Listing
from fogline.storage.query.queries import AGGREGATES, DEFAULT_ROWS, Page, Queries
from fogline.storage.query.selection import NameFilter, Selection
from fogline.storage.query.sql import Tables
from fogline.storage.query.sql_process import SqlProcess
from fogline.storage.values import END_TIME, FIRST_TIME, without_metrics

UPKEEP_SECONDS = 0.5


def now_us() -> int:
    return time.time_ns() // 1000


def steady_us() -> int:
    return time.monotonic_ns() // 1000


@dataclass(frozen=True, slots=True)
class StoreState:
    """How much there is; `waiting` counts values that are not in a file yet."""

    latest: int
    latest_bytes: int
    rows: int
    waiting: int
    files: int
    disk_bytes: int
    problem: str | None
    lost: tuple[LostFile, ...] = ()
    """What was in damaged files and is not here any more."""


class SiteStore:
    """Made once per folder; `start` begins the upkeep, `close` ends it and writes what waits.

    Every method is for any thread. `ingest` waits for a file only when far more values wait than
    upkeep should ever leave. Nothing is called after `close`.
    """

    def __init__(
        self,
        folder: Path,
        site: str = "",
        limits: StoreLimits | None = None,
        clock: Callable[[], int] = now_us,
        metadata: MetadataStore | None = None,
        steady: Callable[[], int] = steady_us,
    ) -> None:
        """Recovers what is there. Raises `StoreBusy` and `StoreDamaged`.

        `clock` gives arrival times and may be set by anybody, `steady` only ever goes on.

        A store that holds a copy of another site's values is given this site's metadata.
        """
        self.limits = limits or StoreLimits()
        self._clock = clock
        self._steady = steady
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            self._lock = WriterLock(folder)
        except LogBusy as error:
            raise StoreBusy(f"the store {folder} is in use", "only one may open it") from error
        try:
            self._open(folder, site, metadata)
        except BaseException:
            self._lock.close()
            raise

    def start(self) -> None:
        """Flushing, eviction and merging run in the background from now on."""
        self._upkeep.start()

    def close(self) -> None:
        self._upkeep.close()
        try:
            if self._history.has_news:
                self._history.flush(self.limits.file_bytes)
        finally:
            self._queries.close()
            self._sql.close()
            for database in self._databases:
                database.close()
            self._lock.close()

    def __enter__(self) -> SiteStore:
        return self

    def __exit__(self, *reason: object) -> None:
        self.close()

    def ingest(self, table: pa.Table, log: str = "", position: int = 0) -> None:
        """Takes a batch (`values.batch`), visible at once; with a log, up to a position of it.

        One that has numbers (`values.with_seq`) keeps them; rows whose number is there already are
        left out, so that it may be taken twice.

        It survives a crash from the next flush on; what a log fed is read again until then. Raises
        `StoreFull` when too much waits and cannot be written; nothing of the batch is taken then.
        """
        with self._intake:
            if "seq" in table.column_names:
                table = self._history.unknown(table)
            if self._history.waiting_rows + len(table) > self.limits.wait_rows:
                self._history.flush(self.limits.file_bytes)
            arrival = self._clock()
            self._history.ingest(table, arrival, log, position)
            self._latest.apply(table, arrival)

    def position(self, log: str) -> int:
        """Up to where a log has been taken."""
        return self._history.position(log)

    def committed(self, log: str) -> int:
        """Up to where a log is on disk here."""
        return self._history.committed(log)

    def positions(self, prefix: str) -> dict[str, int]:
        """Up to where logs whose names begin so have been taken."""
        return self._history.positions(prefix)

    def reserve(self, log: str, numbers: int) -> int:
        """So many numbers for values that bring their own; the first, kept as a position."""
        return self._history.reserve(log, numbers)

    def forget(self, log: str) -> None:
        """The position of a log is 0 again."""
        self._history.forget(log)

    @property
    def last_seq(self) -> int:
        """The highest number of a value so far, on disk or not; -1 for none."""
        return self._history.last_seq

    @property
    def first_seq(self) -> int:
        """Nothing on disk has a lower number; 0 where there is nothing."""
        return self._history.manifest.first_seq

    @property
    def evicted(self) -> tuple[int, int | None]:
        """The highest number and the latest event time of what was evicted, -1 and None for none.

        Whatever has a higher number, or a later time, is still here."""
        known = self._history.manifest
        return known.evicted_seq, known.evicted_last

    @property
    def lost(self) -> tuple[LostFile, ...]:
        """What was in damaged files, and is not here any more."""
        return self._history.manifest.lost

    @property
    def damaged(self) -> list[Path]:
        """Damaged files that were set aside, until somebody removes them."""
        return sorted(self._history.damaged_folder.glob("*"))

    def take_back(self, lost: LostFile, tables: Iterable[pa.Table]) -> int:
        """Values of a lost file, with their numbers, from a copy: those that are missing here are
        taken, and are on disk when this returns. Returns how many that were."""
        rows = 0
        for table in tables:
            numbers = pc.and_(
                pc.greater_equal(table["seq"], lost.seq_first),
                pc.less_equal(table["seq"], lost.seq_last),
            )
            missing = self._history.unknown(table.filter(numbers))
            self.ingest(missing)
            rows += len(missing)
        self.flush()
        self._history.found_again(lost, rows)
        return rows

    def latest(
        self, metrics: NameFilter = None, entities: NameFilter = None, without: Collection[str] = ()
    ) -> pa.Table:
        """The newest values as a batch; names may be prefixes (`cpu_%`), nothing means all.

        Here and elsewhere, metrics of `without` are left out as if they were not there."""
        found = self._latest.find(parse_all(metrics), parse_all(entities))
        return without_metrics(found, without)

    def range(
        self,
        metrics: NameFilter = None,
        entities: NameFilter = None,
        start: int | None = None,
        end: int | None = None,
        *,
        limit: int = DEFAULT_ROWS,
        cursor: str | None = None,
        descending: bool = False,
    ) -> Page:
        """Values from `start` up to, not including, `end`, by time and then arrival."""
        selection = Selection.of(metrics, entities, start, end)
        return self._queries.range(selection, limit, cursor, descending)

    def rows(
        self,
        metrics: NameFilter = None,
        entities: NameFilter = None,
        start: int | None = None,
        end: int | None = None,
        *,
        limit: int = DEFAULT_ROWS,
        after: tuple[int, int] | None = None,
        descending: bool = False,
        share: float = 1.0,
        without: Collection[str] = (),
    ) -> pa.Table:
        """As `range`, from behind a time and `seq`; the values have their `seq`."""
        selection = Selection.of(metrics, entities, start, end, share, without)
        return self._queries.rows(selection, limit, after, descending)

    def changes(
        self,
        after: int = -1,
        metrics: NameFilter = None,
        limit: int = DEFAULT_ROWS,
        share: float = 1.0,
        without: Collection[str] = (),
    ) -> Changes:
        """Values on disk in the order in which they came, from behind a `seq`."""
        selection = Selection.of(metrics, None, None, None, share, without)
        return self._following.page(after, selection, limit)

    def metrics(self, prefix: str = "", without: Collection[str] = ()) -> pa.Table:
        """Columns `metric` and `entity`, each pair once, of metrics that begin so."""
        return without_metrics(self._listing.pairs(prefix), without)

    def metric_sizes(self) -> dict[str, int]:
        """An estimate of the bytes on disk by metric, half a minute old at most."""
        return self._listing.sizes()

    def aggregate(
        self,
        bucket: int,
        metrics: NameFilter = None,
        entities: NameFilter = None,
        start: int | None = None,
        end: int | None = None,
        *,
        functions: Sequence[str] = tuple(AGGREGATES),
        descending: bool = False,
        without: Collection[str] = (),
    ) -> pa.Table:
        """Numbers by metric, entity and bucket of time (microseconds): a column per function."""
        selection = Selection.of(metrics, entities, start, end, without=without)
        return self._queries.aggregate(selection, bucket, functions, descending)

    def sql(
        self,
        text: str,
        limits: QueryLimits | None = None,
        without: Collection[str] = (),
        undescribed: Collection[str] = (),
    ) -> pa.Table:
        """One SELECT over `history`, `latest` and `metadata`, in a process of its own.

        Of metrics `undescribed` it does not see the metadata."""
        chosen = limits or self.limits.query
        with self._history.view() as view:
            paths = view.paths(FIRST_TIME, END_TIME)
            recent = without_metrics(view.recent, without)
            latest = without_metrics(self._latest.find(), without)
            described = self.metadata.table(undescribed)
            tables = Tables(paths, recent, latest, described, tuple(sorted(without)))
            return self._sql.run(text, tables, chosen)

    def sql_over(
        self,
        text: str,
        history: pa.Table,
        latest: pa.Table,
        undescribed: Collection[str] = (),
    ) -> pa.Table:
        """The same over other values than its own, those of several nodes for example."""
        tables = Tables([], history, latest, self.metadata.table(undescribed))
        return self._sql.run(text, tables, self.limits.query)

    def flush(self) -> int:
        """Writes what waits; returns how many values. Positions of logs are committed with it."""
        return self._history.flush(self.limits.file_bytes) if self._history.has_news else 0

    def maintain(self) -> None:
        """One round of upkeep: flush what is due, evict, merge once. The background does this."""
        with self._maintenance:
            now = self._clock()
            if self._flush_is_due(now):
                self._history.flush(self.limits.file_bytes)
            self._evict()
            merged = to_merge(self._history.manifest, self.limits)
            if merged:
                self._history.merge(merged)
            self._history.verify_next()

    def state(self) -> StoreState:
        known = self._history.manifest
        return StoreState(
            latest=len(self._latest),
            latest_bytes=self._latest.bytes,
            rows=known.rows,
            waiting=self._history.waiting_rows,
            files=len(known.files),
            disk_bytes=known.bytes,
            problem=self._upkeep.problem,
            lost=known.lost,
        )

    def _open(self, folder: Path, site: str, metadata: MetadataStore | None) -> None:
        private_folder(folder)
        self._history = HistoryFiles(folder)
        had_one = (folder / manifest.NAME).exists() and self._history.manifest.version > 1
        self.id = store_id(folder, may_make=not had_one)
        self._latest = Latest(self.limits.latest_bytes)
        for table, arrival in self._history.newest():
            self._latest.apply(table, arrival)
        self._queries = Queries(self._history, self.limits)
        self._sql = SqlProcess(self.limits.threads)
        self._databases = Database(folder / "tables.db"), Database(None)
        self._following = Following(self._history, self._queries, self._clock)
        self._listing = Listing(self._history, self._latest, self._queries)
        self.metadata = metadata or MetadataStore(self._databases[0], site)
        self.spaces = Spaces(*self._databases, self.limits, self._clock)
        self._upkeep = Upkeep(self.maintain, UPKEEP_SECONDS)
        dues = [file.arrived_last + self.limits.age_us for file in self._history.manifest.files]
        self._ages = EvictionClock(self._clock(), self._steady(), min(dues, default=None))
        self._intake = threading.Lock()
        self._maintenance = threading.Lock()

    def _flush_is_due(self, now: int) -> bool:
        since = self._history.waiting_since
        if since is None:
            return self._history.has_news
        many = self._history.waiting_rows >= self.limits.flush_rows
        # A clock that was set back must not keep values waiting.
        return many or abs(now - since) >= self.limits.flush_us

    def _evict(self) -> None:
        now = self._ages.move(self._clock(), self._steady())
        self.spaces.evict(now)
        # Spaces have at most half of the disk space; the rest is for values.
        disk = self.limits.disk_bytes - min(self.spaces.bytes(True), self.limits.disk_bytes // 2)
        evicted = to_evict(self._history.manifest, replace(self.limits, disk_bytes=disk), now)
        if evicted:
            self._history.drop(evicted)
        memory = min(self.spaces.bytes(False), self.limits.latest_bytes // 2)
        self._latest.max_bytes = self.limits.latest_bytes - memory
        self._latest.forget_before(now - self.limits.age_us)
