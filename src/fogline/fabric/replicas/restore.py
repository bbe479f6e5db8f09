"""A node that lost its store takes its values back from the copies that others hold.

The values of each old store get a block of numbers of their own: their old number and the block's
base. So whichever copies there are, whenever they are heard of, and however they overlap, each
value comes back once. The store reports which copies it has taken as a whole; their holders wait
for that before they give up the old values.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from fogline.common.errors import FoglineError
from fogline.fabric.errors import NodeUnreachable
from fogline.fabric.membership.clients import Clients
from fogline.fabric.membership.node_client import NodeClient
from fogline.fabric.membership.options import FabricOptions
from fogline.fabric.membership.peers import Block, CopyInfo, PeerView
from fogline.fabric.query.query_types import ANSWERED
from fogline.storage.errors import BadValue, StoreError
from fogline.storage.store import SiteStore
from fogline.storage.values import BATCH, with_seq

SLACK = 1 << 40
"""Numbers of a block beyond the last that is known: another copy may know later ones."""
_BLOCK, _TAKING, _TAKEN, _SETTLED = "restored/", "taking/", "taken/", "settled"

_say = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RestoreJob:
    """A copy of an old store of this node, and who holds it where."""

    holder: str
    address: str
    copy: CopyInfo
    lost: str = ""
    """Of a copy of the store of now: the damaged file whose values are missing."""


def to_take(
    seen: Mapping[str, PeerView], here: str, store: str, taken: Collection[tuple[str, str]]
) -> list[RestoreJob]:
    """The copies of old stores that were not taken yet, of nodes that answer."""
    found = []
    for holder, other in sorted(seen.items()):
        copy = other.report.copies.get(here)
        if other.state != ANSWERED or copy is None or copy.id == store:
            continue
        if (copy.id, holder) not in taken:
            found.append(RestoreJob(holder, other.address, copy))
    return found


def to_repair(
    seen: Mapping[str, PeerView],
    here: str,
    store: str,
    tried: Collection[tuple[str, str]],
    lost: str,
) -> list[RestoreJob]:
    """The copies of this store, which may hold what was in a damaged file."""
    found = []
    for holder, other in sorted(seen.items()):
        copy = other.report.copies.get(here)
        if other.state != ANSWERED or copy is None or copy.id != store:
            continue
        if (holder, lost) not in tried:
            found.append(RestoreJob(holder, other.address, copy, lost))
    return found


class Restore:
    """A thread, from `start` until `close`; `look` gives it what the others hold."""

    def __init__(
        self, here: str, store: SiteStore, clients: Clients, options: FabricOptions
    ) -> None:
        self._here = here
        self._store = store
        self._clients = clients
        self._options = options
        self._settled = bool(store.position(_SETTLED))
        self._begun = time.monotonic()
        self._jobs: list[RestoreJob] = []
        self._tried: set[tuple[str, str]] = set()
        """Who was asked for the values of which damaged file."""
        self._news = threading.Condition()
        self._stop = False
        self._thread = threading.Thread(target=self._run, name="fabric restore", daemon=True)

    @property
    def restoring(self) -> bool:
        """Whether values may still come back: copies are being taken, or a new store has not
        heard of the others yet."""
        return not self._settled or any(not job.lost for job in self._jobs)

    def restored_blocks(self) -> dict[str, Block]:
        """The old stores whose values are here, and whose copies of them were taken."""
        taken = sorted(self._taken_copies())
        found = {}
        for log, base in self._store.positions(_BLOCK).items():
            old, room = log.removeprefix(_BLOCK).split("/")
            sources = tuple(holder for store, holder in taken if store == old)
            found[old] = Block(base, int(room), sources)
        return found

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        with self._news:
            self._stop = True
            self._news.notify_all()
        if self._thread.is_alive():
            self._thread.join()

    def look(self, seen: Mapping[str, PeerView]) -> None:
        """After a round of looking at all nodes."""
        jobs = to_take(seen, self._here, self._store.id, self._taken_copies())
        waits = bool(jobs)
        for lost in self._store.lost:
            jobs += to_repair(seen, self._here, self._store.id, self._tried, lost.name)
        with self._news:
            self._jobs = jobs
            self._news.notify_all()
        waited = time.monotonic() - self._begun >= self._options.settle_seconds
        if not waits and not self._settled and waited:
            self._note(_SETTLED, 1)
            self._settled = True

    def take(self, job: RestoreJob) -> None:
        """All values of a copy that are not here yet. Raises `StoreError`; may be repeated."""
        client = self._clients.to(job.holder, job.address).copy_of(self._here)
        log = f"{_TAKING}{job.copy.id}/{job.holder}"
        end = False
        while not end and not self._stop:
            after = self._store.position(log) - 1
            page, store = client.changes(after, None, self._options.page_rows)
            if store != job.copy.id:
                return
            self._store.metadata.merge(page.signed)
            table = self._renumber_rows(with_seq(page.table), job.copy)
            self._store.ingest(table, log, page.last + 1)
            end = page.end
        if end:
            self._base(job.copy.id, job.copy.last + 1 + SLACK)
            self._store.flush()
            self._note(f"{_TAKEN}{job.copy.id}/{job.holder}", 1)
            self._store.forget(log)
            self._store.flush()

    def repair(self, job: RestoreJob) -> None:
        """The values of a damaged file that the copy has. Raises `StoreError`; may be repeated."""
        client = self._clients.to(job.holder, job.address).copy_of(self._here)
        for lost in self._store.lost:
            if lost.name == job.lost:
                pages = self._pages(client, lost.seq_first - 1, lost.seq_last)
                rows = self._store.take_back(lost, pages)
                text = "%d of %d lost values are back from the copy at %s"
                _say.warning(text, rows, lost.rows, job.holder)
        self._tried.add((job.holder, job.lost))

    def _pages(self, client: NodeClient, after: int, last: int) -> Iterator[pa.Table]:
        while after < last and not self._stop:
            page, store = client.changes(after, None, self._options.page_rows)
            if store != self._store.id:
                raise NodeUnreachable("its copy is of another store now")
            self._store.metadata.merge(page.signed)
            yield with_seq(page.table)
            if page.end:
                return
            after = page.last

    def _run(self) -> None:
        while True:
            with self._news:
                self._news.wait_for(lambda: self._stop or bool(self._jobs))
                if self._stop:
                    return
                job = self._jobs[0]
            try:
                _say.info("values come back from the copy at %s", job.holder)
                if job.lost:
                    self.repair(job)
                else:
                    self.take(job)
            except FoglineError as error:
                _say.warning("values do not come back from %s: %s", job.holder, error)
            except Exception:
                _say.exception("taking values back from %s failed", job.holder)
            with self._news:
                # A copy that was not taken as a whole is found again by the next look.
                self._jobs = [other for other in self._jobs if other != job]

    def _renumber_rows(self, table: pa.Table, copy: CopyInfo) -> pa.Table:
        """The rows with numbers of this store.

        Values that the old store had itself taken back from an older one belong to that one's
        block: they may also come from a copy of the older store.
        """
        seqs = table["seq"].to_numpy()
        own = np.ones(len(seqs), bool)
        numbers = np.zeros(len(seqs), np.int64)
        for old, block in copy.includes.items():
            inside = (seqs >= block.base) & (seqs < block.base + block.room)
            if inside.any():
                numbers[inside] = self._place_numbers(old, seqs[inside] - block.base, block.room)
                own &= ~inside
        if own.any():
            numbers[own] = self._place_numbers(copy.id, seqs[own], copy.last + 1 + SLACK)
        place = table.schema.get_field_index("seq")
        return table.set_column(place, table.schema.field("seq"), pa.array(numbers))

    def _place_numbers(self, old: str, offsets: np.ndarray, room: int) -> np.ndarray:
        if old == self._store.id:
            return offsets
        base, room = self._base(old, room)
        if offsets.max() >= room:
            raise BadValue(f"a copy of {old} holds numbers that cannot be")
        return np.asarray(base + offsets)

    def _base(self, old: str, room: int) -> tuple[int, int]:
        """Where the block of an old store begins, and how large it is; made when it is new."""
        known = self._store.positions(f"{_BLOCK}{old}/")
        for log, base in known.items():
            return base, int(log.rsplit("/", 1)[1])
        base = self._store.reserve(f"{_BLOCK}{old}/{room}", room)
        self._store.flush()
        return base, room

    def _taken_copies(self) -> set[tuple[str, str]]:
        found = set()
        for log in self._store.positions(_TAKEN):
            old, _, holder = log.removeprefix(_TAKEN).partition("/")
            found.add((old, holder))
        return found

    def _note(self, log: str, position: int) -> None:
        try:
            self._store.ingest(BATCH.empty_table(), log, position)
        except StoreError as error:
            _say.warning("%s is not noted: %s", log, error)
