"""The history of one site: files that the manifest lists, and recent values that still wait.

One lock guards the state in memory and is never held during work on files; a second one orders
changes of the manifest. A view holds one state: its files stay until it is closed.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fogline.storage.errors import BadValue, StoreError, StoreFull
from fogline.storage.files import data_files, manifest
from fogline.storage.files.manifest import UNKNOWN, DataFile, LostFile, Manifest
from fogline.storage.files.verify import Verified
from fogline.storage.values import add_numbers, as_one_array, join_tables

_say = logging.getLogger(__name__)
_FEWEST_ROWS = 1_000
"""Of a file that is written because more would be too large."""


@dataclass(frozen=True)
class WaitingBatch:
    """A batch that waits: its numbered rows and when they came, or the first and last of them."""

    table: pa.Table
    arrival: int
    last: int | None = None

    @property
    def arrived_last(self) -> int:
        return self.arrival if self.last is None else self.last


@dataclass(frozen=True, eq=False)
class View:
    """One state of the history: every value in it is in one file or in `recent`, never both."""

    folder: Path
    manifest: Manifest
    waiting: tuple[WaitingBatch, ...] = field(repr=False)

    @cached_property
    def recent(self) -> pa.Table:
        return join_tables([item.table for item in self.waiting])

    def paths(self, start: int, end: int) -> list[str]:
        """The files that can hold event times from `start` up to, not including, `end`."""
        matching = [file for file in self.manifest.files if file.first < end and file.last >= start]
        return [str(self.folder / file.name) for file in matching]


class HistoryFiles:
    """Opened by one process, used by any of its threads, closed once.

    `ingest` never waits for a file. `flush`, `merge` and `drop` work on files; they may run beside
    `ingest`, views and each other. Nothing is called after `close`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        data = folder / "data"
        data.mkdir(exist_ok=True)
        self._data = data
        self._manifest = manifest.load(folder)
        data_files.remove_strays(data, self._manifest.files)
        self._verified = Verified(data)
        self._next_file = self._manifest.next_file
        self._next_seq = self._manifest.next_seq
        self._positions = dict(self._manifest.positions)
        self._waiting: tuple[WaitingBatch, ...] = ()
        self._waiting_rows = 0
        self._views: list[View] = []
        self._shared: View | None = None
        self._doomed: set[str] = set()
        self._guard = threading.Lock()
        self._commits = threading.Lock()
        self._flushes = threading.Lock()
        self._checks = threading.Lock()
        for file in self._manifest.files:
            self._check(file)
        self._manifest = _with_seqs(self._manifest, data)

    @property
    def manifest(self) -> Manifest:
        """What is on disk."""
        return self._manifest

    @property
    def waiting_rows(self) -> int:
        return self._waiting_rows

    @property
    def waiting_since(self) -> int | None:
        """The arrival of the first value that waits."""
        waiting = self._waiting
        return waiting[0].arrival if waiting else None

    @property
    def has_news(self) -> bool:
        """Whether a flush would change anything."""
        return bool(self._waiting) or self._positions != self._manifest.positions

    def position(self, log: str) -> int:
        """Where reading of a log goes on; 0 for one that was never read."""
        return self._positions.get(log, 0)

    def committed(self, log: str) -> int:
        """Up to where a log is on disk here; retention must keep what is behind."""
        return self._manifest.positions.get(log, 0)

    def positions(self, prefix: str) -> dict[str, int]:
        """Of every log whose name begins so."""
        with self._guard:
            return {log: at for log, at in self._positions.items() if log.startswith(prefix)}

    def reserve(self, log: str, numbers: int) -> int:
        """Numbers that the store will give to nothing; the first one becomes the log's position."""
        with self._guard:
            first = self._next_seq
            self._next_seq += numbers
            self._positions[log] = first
            return first

    def forget(self, log: str) -> None:
        """Its position is 0 again."""
        with self._guard:
            self._positions.pop(log, None)

    @property
    def last_seq(self) -> int:
        """The highest number given or reserved so far, -1 for none."""
        return self._next_seq - 1

    def unknown(self, table: pa.Table) -> pa.Table:
        """The rows of a numbered table whose numbers are not in the history yet."""
        numbers = as_one_array(table["seq"]).to_numpy()
        if not len(numbers):
            return table
        first, last = numbers.min(), numbers.max()
        known = np.zeros(len(numbers), bool)
        with self.view() as view:
            for file in view.manifest.files:
                if file.seq_first <= last and file.seq_last >= first:
                    held = data_files.read(self._data / file.name, ["seq"])["seq"]
                    known |= np.isin(numbers, held.to_numpy())
            for item in view.waiting:
                known |= np.isin(numbers, item.table["seq"].to_numpy())
        return table.filter(pa.array(~known)) if known.any() else table

    def ingest(self, table: pa.Table, arrival: int, log: str = "", position: int = 0) -> None:
        """Adds a batch, visible at once, and notes that the log has been read up to `position`.

        Rows that have numbers keep them; others get the next ones.
        """
        with self._guard:
            if log and position < self._positions.get(log, 0):
                raise BadValue(f"the log {log} was already read beyond {position}")
            if len(table):
                last = self._next_seq + len(table) - 1
                if "seq" in table.column_names:
                    last = pc.max(table["seq"]).as_py()
                else:
                    table = add_numbers(table, self._next_seq)
                self._waiting += (WaitingBatch(table, arrival),)
                self._next_seq = max(self._next_seq, last + 1)
                self._waiting_rows += len(table)
            if log:
                self._positions[log] = position
            self._shared = None

    @contextmanager
    def view(self) -> Iterator[View]:
        """A state that stays the same, and its files there, until the block is left. A file that
        was changed by somebody else is not in it."""
        self._look()
        with self._guard:
            if self._shared is None:
                self._shared = View(self._data, self._manifest, self._waiting)
            view = self._shared
            self._views.append(view)
        try:
            yield view
        finally:
            with self._guard:
                self._views.remove(view)
            self._sweep()

    def flush(self, file_bytes: int | None = None) -> int:
        """Writes what waits, with the positions; returns the rows written.

        That is one file, or several of about `file_bytes` each: after a while without a flush much
        may wait, and what is in one file is evicted together.
        """
        with self._flushes, _no_space(self.folder):
            with self._guard:
                taken, positions = self._waiting, dict(self._positions)
                next_seq = self._next_seq
            written = self._write_all(_pieces(taken, file_bytes))
            self._verified.note_new(written, _steady_us())
            with self._commits:
                new = self._manifest.with_flush(written, positions, next_seq)
                self._commit(new, len(taken))
            return sum(file.rows for file in written)

    def _write_all(self, pieces: Iterable[WaitingBatch]) -> list[DataFile]:
        """All of them or none."""
        written: list[DataFile] = []
        try:
            for piece in pieces:
                with self._guard:
                    path = self._new_path(True)
                arrived = piece.arrival, piece.arrived_last
                written.append(data_files.write(path, piece.table, arrived))
        except BaseException:
            for file in written:
                (self._data / file.name).unlink(missing_ok=True)
            raise
        return written

    def merge(self, old: Sequence[DataFile]) -> None:
        """Replaces neighbouring files by one. Only one merge or drop at a time. Where one of them
        is damaged it is set aside, and nothing is merged."""
        right = [self._check(file) for file in old]
        if not all(right):
            return
        with self._guard:
            path = self._new_path(True)
        with _no_space(self.folder):
            table = data_files.merge(self._data / file.name for file in old)
            arrived = min(file.arrived for file in old), max(file.arrived_last for file in old)
            new = data_files.write(path, table, arrived)
            self._verified.note_new([new], _steady_us())
            names = [file.name for file in old]
            with self._commits:
                self._commit(self._manifest.with_merge(names, new), 0, names)

    def drop(self, old: Sequence[DataFile]) -> None:
        """Forgets files; they are removed when no view needs them. One merge or drop at a time."""
        names = [file.name for file in old]
        with self._commits, _no_space(self.folder):
            self._commit(self._manifest.evict_files(names), 0, names)

    @property
    def damaged_folder(self) -> Path:
        """Where files are that were damaged."""
        return self.folder / "damaged"

    def verify_next(self) -> None:
        """Looks at a file that nobody looked at for a day, if there is one."""
        file = self._verified.due(self._manifest.files, _steady_us())
        if file is not None:
            self._check(file)

    def found_again(self, lost: LostFile, rows: int) -> None:
        """So many rows of a lost file are here again, and on disk."""
        with self._commits, _no_space(self.folder):
            self._commit(self._manifest.with_found(lost.name, rows), 0)
        if all(other.name != lost.name for other in self._manifest.lost):
            (self.damaged_folder / lost.name).unlink(missing_ok=True)

    def _look(self) -> None:
        for file in self._verified.find_changed(self._manifest.files, _steady_us()):
            self._check(file)

    def _check(self, file: DataFile) -> bool:
        """Whether a file is as it was written; one that is not is set aside and counts as lost."""
        with self._checks:
            if file not in self._manifest.files:
                return True  # somebody else was faster
            wrong = self._verified.check(file, _steady_us())
            if wrong:
                self._lose(file, wrong)
            return not wrong

    def _lose(self, file: DataFile, reason: str) -> None:
        what = f"{manifest.amount(file.rows, file.first, file.last)} are lost"
        _say.error("%s: %s; %s", self._data / file.name, reason, what)
        with _no_space(self.folder):
            self.damaged_folder.mkdir(exist_ok=True)
            aside = self.damaged_folder / file.name
            aside.unlink(missing_ok=True)
            with contextlib.suppress(FileNotFoundError):
                os.link(self._data / file.name, aside)
            with self._commits:
                lost = self._manifest.with_loss(file, reason, time.time_ns() // 1000)
                self._commit(lost, 0, [file.name])
        self._verified.forget([file.name])

    def newest(self) -> Iterator[tuple[pa.Table, int]]:
        """File by file, in the order of arrival, the newest values and when they arrived."""
        for file in self._manifest.files:
            yield data_files.newest(self._data / file.name), file.arrived_last

    def _new_path(self, take: bool) -> Path:
        path = self._data / data_files.file_name(self._next_file)
        self._next_file += take
        return path

    def _commit(self, new: Manifest, flushed: int, removed: Sequence[str] = ()) -> None:
        """The new manifest is on disk, then in memory; whoever calls holds the lock of commits."""
        new = replace(new, next_file=self._next_file, version=manifest.VERSION)
        manifest.store(self.folder, new)
        with self._guard:
            self._manifest = new
            written, self._waiting = self._waiting[:flushed], self._waiting[flushed:]
            self._waiting_rows -= sum(len(item.table) for item in written)
            self._doomed.update(removed)
            self._shared = None
        self._sweep()

    def _sweep(self) -> None:
        """Removes forgotten files that no view holds."""
        with self._guard:
            if not self._doomed:
                return
            held = {file.name for view in self._views for file in view.manifest.files}
            free = self._doomed - held
            self._doomed &= held
        for name in free:
            (self._data / name).unlink(missing_ok=True)


def _pieces(taken: Sequence[WaitingBatch], file_bytes: int | None) -> Iterator[WaitingBatch]:
    """What waits, in its order, in as many parts as make files of about this size."""
    if not taken:
        return
    table = join_tables([item.table for item in taken])
    arrivals = np.repeat([item.arrival for item in taken], [len(item.table) for item in taken])
    parts = 1 if file_bytes is None else -(-table.nbytes // file_bytes)
    rows = max(-(-len(table) // parts), _FEWEST_ROWS)
    for at in range(0, len(table), rows):
        came = arrivals[at : at + rows]
        yield WaitingBatch(table.slice(at, rows), int(came[0]), int(came[-1]))


def _with_seqs(known: Manifest, data: Path) -> Manifest:
    """The manifest with what an older one does not contain."""
    listed = []
    for file in known.files:
        if file.seq_last == UNKNOWN:
            first, last = data_files.seqs_of(data / file.name)
            file = replace(file, seq_first=first, seq_last=last)
        listed.append(file)
    return replace(known, files=tuple(listed))


def _steady_us() -> int:
    return time.monotonic_ns() // 1000


@contextmanager
def _no_space(folder: Path) -> Iterator[None]:
    """Failed writes as errors of the store; the state is as it was."""
    try:
        yield
    except OSError as error:
        if error.errno in (28, 122, 27):
            raise StoreFull(f"no space left for the store {folder}") from error
        raise StoreError(f"cannot write the store {folder}: {error.strerror or error}") from error
