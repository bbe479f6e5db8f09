"""The site's logs into its store: one thread for all of them, which rests when they are quiet."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Iterable, Mapping

from fogline.fabric.contract import FeedStatus, StoreFeed
from fogline.fabric.streams.stored_log import FedLog
from fogline.log import LogError, LogNotifier, SiteLog, forget_reader
from fogline.storage.ingest.log_to_store import READER
from fogline.storage.store import SiteStore

_say = logging.getLogger(__name__)
_GATHER_SECONDS = 0.1
"""Between two rounds while values come: many at a time cost little more than one."""
_REST_SECONDS = 0.5
"""After a round without values, unless a log grows before."""
_REMOVED_SECONDS = 0.5
_STRAY_SECONDS = 600.0
"""So long a log that nobody names may hold on to our place in it: its job may not be back yet."""


class Feeding:
    """`set_feeds` says which logs, before `start` or later; `close` ends the thread.

    A log that is no longer configured is taken up to its end of that moment, and then its retention
    need not wait for the store any more.
    """

    def __init__(self, store: SiteStore, logs: SiteLog) -> None:
        self._store = store
        self._logs = logs
        self._desired: Mapping[str, StoreFeed] = {}
        self._in_force: Mapping[str, StoreFeed] = self._desired
        self._fed: dict[str, FedLog] = {}
        self._ending: dict[str, FedLog] = {}
        self._ended: dict[str, FedLog] = {}
        """Whose logs are still there."""
        self._reported: list[FedLog] = []
        self._removed_due = 0.0
        self._strays_due = time.monotonic() + _STRAY_SECONDS
        self._notifier = LogNotifier()
        self._hurry = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="feeding", daemon=True)

    def set_feeds(self, feeds: Iterable[StoreFeed]) -> None:
        """Of several about one log the first holds."""
        desired: dict[str, StoreFeed] = {}
        for feed in feeds:
            desired.setdefault(feed.log, feed)
        self._desired = desired
        self._wake()

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """What was read is in the store, though not on disk yet."""
        self._stop.set()
        self._wake()
        if self._thread.is_alive():
            self._thread.join()

    @property
    def settled(self) -> bool:
        """Whether the desired configuration is in force."""
        return self._desired is self._in_force

    def status(self) -> tuple[FeedStatus, ...]:
        return tuple(fed.status for fed in self._reported)

    def _wake(self) -> None:
        self._hurry.set()
        self._notifier.notify()

    def _run(self) -> None:
        while not self._stop.is_set():
            self._hurry.clear()
            try:
                moved = self._round()
            except Exception:
                _say.exception("a round of feeding failed")
                moved = 0
            if not moved:
                self._notifier.wait(_REST_SECONDS)
            elif not any(fed.behind for fed in self._fed.values()):
                self._hurry.wait(_GATHER_SECONDS)
        for fed in (*self._fed.values(), *self._ending.values()):
            fed.close()

    def _round(self) -> int:
        desired = self._desired
        if desired is not self._in_force:
            self._change(desired)
            self._in_force = desired
        moved, now = 0, time.monotonic()
        for fed in (*self._fed.values(), *self._ending.values()):
            if self._stop.is_set():
                break
            moved += fed.turn(now)
        self._forget_ended()
        if now >= self._removed_due:
            self._removed_due = now + _REMOVED_SECONDS
            self._forget_removed()
        if now >= self._strays_due:
            self._strays_due = now + _STRAY_SECONDS
            self._forget_strays()
        return moved

    def _change(self, desired: Mapping[str, StoreFeed]) -> None:
        for log in [log for log in self._fed if log not in desired]:
            self._ending[log] = self._fed.pop(log)
            self._ending[log].end()
        for log, declared in desired.items():
            self._ended.pop(log, None)
            known = self._fed.get(log) or self._ending.pop(log, None)
            if known is not None and (known.declared != declared or log not in self._fed):
                known.close()
                known = None
            self._fed[log] = known or FedLog(self._store, self._logs, declared)
        self._reported = [*self._fed.values(), *self._ending.values()]
        self._notifier.watch(fed.folder for fed in self._reported if fed.folder is not None)

    def _forget_ended(self) -> None:
        ended = [log for log, fed in self._ending.items() if fed.ended]
        for log in ended:
            self._ended[log] = self._ending.pop(log)
        if ended:
            self._reported = [*self._fed.values(), *self._ending.values()]

    def _forget_removed(self) -> None:
        for log in [log for log, fed in self._ended.items() if fed.is_removed()]:
            del self._ended[log]

    def _forget_strays(self) -> None:
        """Places in logs that were fed before a restart and are not any more."""
        for topic in self._logs.topics():
            if topic not in self._fed and topic not in self._ending:
                with contextlib.suppress(LogError, OSError):
                    forget_reader(self._logs.folder(topic), READER)
