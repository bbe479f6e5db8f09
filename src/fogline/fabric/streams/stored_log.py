"""One log of the site on its way into the store: its feeder, its errors, and its status."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from functools import lru_cache
from pathlib import Path
from typing import cast

import pyarrow as pa

from fogline.common.backoff import Backoff
from fogline.common.errors import FoglineError, UsageError
from fogline.fabric.contract import INSIGHTS, READINGS, RESULTS, FeedStatus, StoreFeed
from fogline.log import LogError, SiteLog, forget_reader
from fogline.log.files.segments import list_segments
from fogline.model.topics import matches
from fogline.storage.errors import StoreFull
from fogline.storage.ingest.decode import FeedSource
from fogline.storage.ingest.log_to_store import READER, Feeder
from fogline.storage.ingest.mapping import CodeResults, Insights, Readings
from fogline.storage.store import SiteStore

RUNNING, FULL, FAILED, NOT_KEPT, ENDING = "running", "full", "failed", "not kept", "ending"
READ_BYTES = 1 << 20
"""At a time, so that no log holds up the others for long."""
_KEEP_SECONDS = 2.0
_FULL_SECONDS = 1.0
_KINDS: Mapping[str, Callable[..., FeedSource]] = {
    READINGS: Readings,
    INSIGHTS: Insights,
    RESULTS: CodeResults,
}
_NOT_OF_SOURCE = ("log", "kind", "leave_out")
_say = logging.getLogger(__name__)


def source_of(declared: StoreFeed) -> FeedSource:
    """What a configuration says about a log's records. Raises `UsageError`."""
    if declared.kind not in _KINDS:
        raise UsageError(f"a log holds {', '.join(_KINDS)}, not {declared.kind!r:.80}")
    names = [item.name for item in fields(declared) if item.name not in _NOT_OF_SOURCE]
    given = {name: getattr(declared, name) for name in names}
    try:
        return _KINDS[declared.kind](**{k: v for k, v in given.items() if v is not None})
    except TypeError as error:
        raise UsageError(f"{declared.kind} are declared otherwise: {error}") from error


def _takers(patterns: Iterable[str]) -> Callable[[str], bool] | None:
    """Whether one of these takes a topic."""
    several = tuple(patterns)
    if not several:
        return None
    return lru_cache(10_000)(lambda topic: any(matches(pattern, topic) for pattern in several))


class FedLog:
    """For one thread; only `status` is for others. `turn` never raises."""

    def __init__(self, store: SiteStore, logs: SiteLog, declared: StoreFeed) -> None:
        self.declared = declared
        self.ended = False
        """Whether all of a log that is no longer configured is in the store, on disk."""
        self._store = _Counting(store)
        self._feeder: Feeder | None = None
        self._ending = False
        self._last: int | None = None
        """Of a log that is no longer configured: up to where it is still taken."""
        self._due = 0.0
        self._keep_due = 0.0
        self._backoff = Backoff()
        self._state, self._why, self._lag = RUNNING, "", 0
        self.folder: Path | None = None
        """Where the log is; nothing where it cannot be."""
        self._source: FeedSource | None = None
        try:
            self.folder = logs.folder(declared.log)
            self._source = source_of(declared)
        except (LogError, UsageError) as error:
            self._state, self._why = NOT_KEPT, error.message
        self.status = self._make_status()

    def end(self) -> None:
        """It is no longer configured: what is there now is still taken."""
        self._state, self._ending = ENDING, True
        self.status = self._make_status()

    def turn(self, now: float) -> int:
        """Takes what comes next; returns how many messages. `now` is any clock in seconds."""
        if now < self._due or self.ended:
            return 0
        moved = 0
        try:
            moved = self._step(now)
            self._went_well()
        except StoreFull as error:
            self._set_failed(FULL, error.message, now + _FULL_SECONDS)
        except (FoglineError, OSError) as error:
            self._set_failed(FAILED, str(error), now + self._backoff.next())
        except Exception as error:
            _say.exception("the log %s cannot be stored", self.folder)
            self._set_failed(FAILED, f"a bug: {error!r:.200}", now + self._backoff.next())
        return moved

    @property
    def behind(self) -> bool:
        """Whether there is enough for another turn at once."""
        return self._lag >= READ_BYTES and self._state in (RUNNING, ENDING)

    def close(self) -> None:
        if self._feeder is not None:
            try:
                self._feeder.close()
            except (FoglineError, OSError) as error:
                _say.warning("the log %s: %s", self.folder, error)
            self._feeder = None

    def _step(self, now: float) -> int:
        if self._source is None or self.folder is None:
            self.ended = self._ending
            return 0
        if self._feeder is None:
            # What the feeder counts it counts from here on; the store knows the position.
            store, others = cast(SiteStore, self._store), self.declared.leave_out
            if not list_segments(self.folder):
                self._forget(self.folder)
            self._feeder = Feeder(store, self.folder, self._source, leave_out=_takers(others))
        feeder = self._feeder
        self._lag = feeder.reader.committed() - feeder.position
        if self._lag < 0:
            self._forget(self.folder)
            self.close()
            return 0
        moved = 0
        if self._lag or now >= self._keep_due:
            self._keep_due = now + _KEEP_SECONDS
            moved = feeder.step(READ_BYTES)
            self._lag = feeder.reader.committed() - feeder.position
            self.status = self._make_status()
        if self._ending:
            self._finish(feeder, self.folder)
        return moved

    def is_removed(self) -> bool:
        """Of one that has ended: whether its log went with its job. The next of that name is
        another log, and read from its beginning."""
        if self.folder is None:
            return True
        if list_segments(self.folder):
            return False
        try:
            self._forget(self.folder)
        except (FoglineError, OSError) as error:
            _say.warning("the log %s is removed: %s", self.folder, error)
            return False
        return True

    def _forget(self, folder: Path) -> None:
        """How far a log was read that is no more."""
        if self._store.position(folder.name):
            self._store.store.forget(folder.name)
            self._store.store.flush()

    def _finish(self, feeder: Feeder, folder: Path) -> None:
        """Once all is taken and on disk, the log need not wait for us any more."""
        if self._last is None:
            self._last = feeder.reader.committed()
        if feeder.position >= self._last:
            self._store.store.flush()
            self.close()
            forget_reader(folder, READER)
            self.ended = True

    def _went_well(self) -> None:
        if self._state in (FULL, FAILED):
            self._state, self._why = ENDING if self._ending else RUNNING, ""
            self.status = self._make_status()
        self._backoff.reset()

    def _set_failed(self, state: str, why: str, due: float) -> None:
        self._state, self._why, self._due = state, why, due
        self.status = self._make_status()

    def _make_status(self) -> FeedStatus:
        feeder = self._feeder
        return FeedStatus(
            log=self.declared.log,
            kind=self.declared.kind,
            state=self._state,
            why=self._why,
            lag=self._lag,
            values=self._store.values,
            rejected=dict(feeder.rejected) if feeder else {},
            skipped_bytes=feeder.reader.skipped if feeder else 0,
        )


class _Counting:
    """What a feeder needs of a store, with a count of the values that went in."""

    def __init__(self, store: SiteStore) -> None:
        self.store = store
        self.values = 0
        self.position = store.position
        self.committed = store.committed

    def ingest(self, table: pa.Table, log: str = "", position: int = 0) -> None:
        self.store.ingest(table, log, position)
        self.values += len(table)
