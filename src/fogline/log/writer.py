"""Writing a log: records are appended, and a commit makes them durable and visible at once."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

from fogline.common import atomic_files
from fogline.common.state_files import set_aside
from fogline.log import repair
from fogline.log.errors import LogError, write_failed
from fogline.log.files import committed, damage, sources
from fogline.log.files.committed import End
from fogline.log.files.frames import LogRecord
from fogline.log.files.lock import WriterLock
from fogline.log.files.names import folder_name, topic_bytes
from fogline.log.files.segments import require_current
from fogline.log.pending import Pending
from fogline.log.tail import Tail

SEGMENT_BYTES = 64 << 20
MIN_FREE_BYTES = 64 << 20


def now_us() -> int:
    return time.time_ns() // 1000


class LogWriter:
    """The one writer of a log; not for use by two threads at once.

    When `append` or `commit` raises, everything since the last commit is taken back and the writer
    stays usable. Should even taking back fail, every later call says so until the log is reopened.
    """

    def __init__(
        self,
        folder: Path,
        topic: str,
        *,
        segment_bytes: int = SEGMENT_BYTES,
        min_free_bytes: int = MIN_FREE_BYTES,
        clock: Callable[[], int] = now_us,
    ) -> None:
        """Makes the log if it is new, else repairs it. May raise any of the family."""
        self._folder = folder
        self._clock = clock
        self._pending: Pending | None = None
        self._end = End(0, 0)
        self._epochs: dict[int, int] = {}
        self._new_epochs: dict[int, int] = {}
        self._committed_fd = -1
        self._written = False
        self._usable = True
        raw = topic_bytes(topic)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = WriterLock(folder)
            with _closing_on_error(self._lock.close):
                self._open(raw)
        except OSError as error:
            raise write_failed(folder, error) from error
        self._tail = Tail(folder, self._end, segment_bytes, min_free_bytes, self._settle_segment)

    @property
    def folder(self) -> Path:
        return self._folder

    @property
    def sources(self) -> frozenset[int]:
        """Whose records it holds, as far as that is known."""
        return frozenset(self._epochs)

    def has_space(self) -> bool:
        """Whether the disk has more free than is kept free."""
        return self._tail.has_space()

    @property
    def position(self) -> int:
        """The end of the last commit."""
        return self._end.position

    @property
    def number(self) -> int:
        """How many records were ever committed."""
        return self._end.number

    def last_epoch(self, source: int) -> int:
        """The epoch in the last committed frame of a source, −1 when there is none."""
        return self._epochs.get(source, -1)

    def append(
        self,
        records: Iterable[LogRecord],
        source: int = 0,
        epoch: int = -1,
        arrival: int | None = None,
    ) -> None:
        """Adds records, each a topic and a payload, to the commit that is being made.

        Nothing of it can be read before `commit`; one frame is held in memory at most.
        """
        with self._all_or_nothing():
            rest = iter(records)
            record = next(rest, None)
            if record is not None:
                self._begin(source, epoch, arrival)
            while record is not None:
                record = self._fill(chain((record,), rest))

    def commit(self) -> int:
        """Everything appended is on disk and visible to readers; returns the log's end."""
        if self._pending is None:
            return self._end.position
        with self._all_or_nothing():
            self._write(self._pending, last=True)
            self._tail.sync()
            end = End(self._tail.end, self._tail.number)
            committed.store(self._committed_fd, end)
        self._end = end
        self._epochs.update(self._new_epochs)
        self._forget_pending()
        return self._end.position

    def rollback(self) -> None:
        """Takes back everything since the last commit."""
        if self._written and self._usable:
            self._usable = False
            try:
                self._tail.cut(self._end)
            except OSError as error:
                raise write_failed(self._folder, error) from error
            self._usable = True
        self._forget_pending()

    def close(self) -> None:
        """Takes back what is not committed and lets the next writer in."""
        if self._committed_fd < 0:
            return
        try:
            self.rollback()
        finally:
            self._usable = False
            self._tail.close()
            os.close(self._committed_fd)
            self._committed_fd = -1
            self._lock.close()

    def __enter__(self) -> LogWriter:
        return self

    def __exit__(self, *reason: object) -> None:
        self.close()

    def _open(self, topic: bytes) -> None:
        self._claim(topic)
        fd = self._committed_fd = committed.create(self._folder)
        with _closing_on_error(lambda: os.close(fd)):
            self._end = self._repair()
            end = self._end.position
            self._epochs = sources.load_until(self._folder, end).epochs

    def _claim(self, topic: bytes) -> None:
        """The file `topic` says which topic this is; another one in it means a wrong folder, unless
        the folder has the topic's name: then it is damaged and written anew."""
        path = self._folder / "topic"
        own = self._folder.name == folder_name(topic.decode())
        said = path.read_bytes() if path.exists() else b""
        if said and own and said != topic:
            set_aside(path)
            said = b""
        if not said:
            atomic_files.replace(path, topic.decode())
            atomic_files.sync(self._folder.parent)
        elif said != topic:
            raise LogError(f"{self._folder} is the log of another topic", f"see {path}")

    def _repair(self) -> End:
        claimed = committed.load(self._committed_fd)
        if claimed is None:
            require_current(self._folder)
        end = repair.find_end(self._folder, claimed)
        repair.cut(self._folder, end.position)
        known = claimed.position if claimed else 0
        repair.sync_from(self._folder, min(known, end.position))
        os.ftruncate(self._committed_fd, committed.SIZE)
        committed.store(self._committed_fd, end)
        os.fsync(self._committed_fd)
        if claimed is None and end.position:
            damage.note_committed(self._folder, end.position)
        return end

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.rollback()
            raise write_failed(self._folder, error) from error
        except BaseException:
            self.rollback()
            raise

    def _begin(self, source: int, epoch: int, arrival: int | None) -> None:
        """There is a pending frame of this source and epoch (and arrival, where one is given)."""
        if not self._usable:
            raise LogError(f"the log {self._folder} is closed or failed", "open it again")
        old = self._pending
        if old is not None:
            same = (old.source, old.epoch) == (source, epoch)
            if same and arrival in (None, old.arrival):
                return
            self._write(old, last=False)
        self._pending = Pending(source, epoch, self._clock() if arrival is None else arrival)

    def _fill(self, records: Iterable[LogRecord]) -> LogRecord | None:
        """Fills the pending frame and writes it when a record is left for which there was no
        space."""
        pending = self._pending
        assert pending is not None
        left = pending.fill(records)
        if left is not None:
            self._write(pending, last=False)
            self._pending = Pending(pending.source, pending.epoch, pending.arrival)
        return left

    def _write(self, pending: Pending, last: bool) -> None:
        self._written = True
        self._tail.write(pending.body(last))
        if pending.source:
            self._new_epochs[pending.source] = pending.epoch

    def _forget_pending(self) -> None:
        self._pending = None
        self._new_epochs.clear()
        self._written = False

    def _settle_segment(self) -> None:
        """What `committed` and `sources` say lags by one segment at most."""
        os.fdatasync(self._committed_fd)
        sources.store(self._folder, self._end.position, self._epochs)


@contextmanager
def _closing_on_error(close: Callable[[], None]) -> Iterator[None]:
    try:
        yield
    except BaseException:
        close()
        raise
