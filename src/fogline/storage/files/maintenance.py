"""What to do with the files, decided without touching them, and the thread that does it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence

from fogline.common.errors import FoglineError
from fogline.storage.files.manifest import DataFile, Manifest
from fogline.storage.limits import StoreLimits

FASTEST = 24
"""Of a clock that jumped forward eviction follows a day an hour."""
_say = logging.getLogger(__name__)


def to_evict(manifest: Manifest, limits: StoreLimits, now: int) -> tuple[DataFile, ...]:
    """Files whose values are all too old, and then the oldest until the rest fits the disk."""
    evicted = [file for file in manifest.files if file.arrived_last < now - limits.age_us]
    left = manifest.bytes - sum(file.bytes for file in evicted)
    for file in (file for file in manifest.files if file not in evicted):
        if left <= limits.disk_bytes:
            break
        evicted.append(file)
        left -= file.bytes
    return tuple(evicted)


def to_merge(manifest: Manifest, limits: StoreLimits) -> tuple[DataFile, ...]:
    """The first run of at least `merge_files` neighbours that fit one file and are worth it.

    A merge at least doubles the file of every value in it, so that a value is rewritten a few times
    at most, however long it is kept.
    """
    for run in _runs(manifest.files, limits):
        while len(run) >= limits.merge_files:
            largest = max(range(len(run)), key=lambda place: run[place].rows)
            if 2 * run[largest].rows <= sum(file.rows for file in run):
                return tuple(run)
            run = run[largest + 1 :]
    return ()


def _runs(files: Sequence[DataFile], limits: StoreLimits) -> list[list[DataFile]]:
    """Neighbours that fit one file together, in rows, bytes and the arrivals they cover."""
    runs: list[list[DataFile]] = [[]]
    for file in files:
        run = [*runs[-1], file]
        first = min(item.arrived for item in run)
        last = max(item.arrived_last for item in run)
        fits = last - first <= limits.merge_span_us
        fits &= sum(item.bytes for item in run) <= limits.file_bytes
        if runs[-1] and not (fits and sum(item.rows for item in run) <= limits.file_rows):
            runs.append([])
        runs[-1].append(file)
    return runs


class EvictionClock:
    """The time that eviction by age goes by: the clock's, but it never runs ahead of steady time by
    more than `FASTEST` times.

    So a clock that jumps forward, or is wrong at a start, does not empty the store at once: there
    is time to set it right, and then nothing more goes. A clock that is set back is followed at
    once. `oldest_due` is when the oldest of what is there is due.
    """

    def __init__(self, now: int, steady: int, oldest_due: int | None = None) -> None:
        self._time = now if oldest_due is None else min(now, oldest_due)
        self._steady = steady

    def move(self, now: int, steady: int) -> int:
        """The time at this moment; both in microseconds, `steady` of a clock nobody can set."""
        passed, self._steady = steady - self._steady, steady
        self._time = min(now, self._time + FASTEST * passed)
        return self._time


class Upkeep:
    """Calls `work` every `seconds` in a thread of its own, from `start` until `close`.

    Whatever goes wrong is kept in `problem` until a round succeeds; the next round tries again.
    """

    def __init__(self, work: Callable[[], None], seconds: float) -> None:
        self.problem: str | None = None
        self._work = work
        self._seconds = seconds
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="store-upkeep", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Waits for the round that runs."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(self._seconds):
            try:
                self._work()
                self.problem = None
            except FoglineError as error:
                self.problem = error.message
            except Exception as error:
                if self.problem is None:
                    _say.exception("upkeep of the store failed")
                self.problem = f"a bug: {error!r:.200}"
