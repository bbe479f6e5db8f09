"""One copy of another node's values: a store that follows its origin, exactly once.

Everything that matters is in the store's manifest, together with the values: which store they are
of, and for each group of metrics up to which number they are here. Values keep the numbers that
their origin gave them, and a number that is here already is not taken again.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from fogline.fabric.errors import NodeUnreachable
from fogline.fabric.membership.node_client import portions
from fogline.fabric.membership.peers import Block, CopyInfo, PeerReport
from fogline.storage.catalog.metadata import MetadataStore
from fogline.storage.limits import StoreLimits
from fogline.storage.query.changes import WAIT_US, Changes
from fogline.storage.store import SiteStore, now_us
from fogline.storage.values import BATCH, with_seq

MetricGroup = tuple[str, ...] | None
"""Metrics that are asked for together; None means all."""
_ID, _INCLUDES, _FOLLOW, _COMPLETE, _UNTIL = "id/", "includes/", "follow/", "complete/", "until"
_FIRST = "first"
_UNTIL_US = 5_000_000
"""How much of `until` a crash may forget while nothing comes."""


class Origin(Protocol):
    def changes(self, after: int, metrics: MetricGroup, limit: int) -> tuple[Changes, str]: ...


class StoreCopy:
    """Followed by one thread, read by any. `close` waits for those who read."""

    def __init__(self, folder: Path, limits: StoreLimits, metadata: MetadataStore) -> None:
        """Goes on with what is in the folder. Raises `StoreBusy` and `StoreDamaged`."""
        self.folder = folder
        self.store = SiteStore(folder, limits=limits, metadata=metadata)
        self.store.start()
        self._ended: dict[MetricGroup, int] = {}
        """When a group was asked for last, and nothing was missing."""
        self.until = self.store.position(_UNTIL) or None
        self._users = 0
        self._closed = False
        self._free = threading.Condition()

    @property
    def id(self) -> str:
        """Of the store that this is a copy of; empty before it is known."""
        return next((log.removeprefix(_ID) for log in self.store.positions(_ID)), "")

    @property
    def groups(self) -> dict[MetricGroup, str]:
        """Each group and the log that holds its position."""
        logs = sorted(self.store.positions(_FOLLOW), key=_restores)
        return {_group(log.split("/", 2)[2]): log for log in logs}

    def begin(self, store: str, metrics: MetricGroup) -> None:
        """A new copy of a store."""
        self._note(f"{_ID}{store}", 1)
        for group in portions(metrics):
            self._note(_follow(0, group), 0)
        self.store.flush()

    def extend(self, metrics: MetricGroup) -> bool:
        """More metrics, old values included; false when fewer are desired than there are."""
        held = list(self.groups)
        if metrics is not None:
            names = [name for group in held for name in group or ()]
            if None in held or not set(names) <= set(metrics):
                return False
            added = tuple(name for name in metrics if name not in set(names))
        else:
            added = None
        if None not in held and added != ():
            for group in portions(added):
                self._note(_follow(self._restores, group), 0)
        return True

    def step(self, origin: Origin, report: PeerReport, rows: int) -> bool:
        """Takes a page of every group; whether there is more at once. Raises `NodeUnreachable`."""
        self._renew(report)
        if report.first > self.store.position(_FIRST):
            self._note(_FIRST, report.first)
        more = False
        for group, log in self.groups.items():
            asked = now_us()
            after = self.store.position(log) - 1
            page, store = origin.changes(after, group, rows)
            if store != self.id:
                raise NodeUnreachable("it has another store now")
            self.store.metadata.merge(page.signed)
            self.store.ingest(with_seq(page.table), log, page.last + 1)
            if page.end:
                self._ended[group] = asked
                self._complete(group)
            more |= not page.end
        if not more:
            self._all_there()
        return more

    def changes(
        self,
        after: int,
        metrics: MetricGroup,
        limit: int,
        share: float,
        without: Collection[str] = (),
    ) -> Changes:
        """For who follows the origin by way of this copy: up to where nothing is missing here.

        Raises `NodeUnreachable` when the next values are no longer here."""
        if self._since is not None and after < self.store.evicted[0]:
            raise NodeUnreachable("the copy does not hold the next values any more")
        logs = [log for group, log in self.groups.items() if self.store.position(_complete(group))]
        last = min(map(self.store.committed, logs), default=0) - 1
        page = self.store.changes(after, metrics, limit, share, without)
        if page.last <= last:
            return page
        rows = page.table.filter(pc.less_equal(page.table["seq"], last))
        return Changes(rows, max(after, last), end=True)

    def info(self) -> CopyInfo:
        groups = list(self.groups)
        complete = [group for group in groups if self.store.position(_complete(group))]
        state = self.store.state()
        return CopyInfo(
            self.id,
            _union(complete or groups),
            self.until if complete else None,
            state.disk_bytes,
            state.rows + state.waiting,
            self.store.last_seq,
            self._includes(),
            self._since,
        )

    @property
    def _since(self) -> int | None:
        """From when on everything is here that the origin had when it was last followed.

        None where nothing was evicted here but what the origin had evicted too."""
        seq, last = self.store.evicted
        return None if last is None or seq < self.store.position(_FIRST) else last + 1

    @contextmanager
    def using(self) -> Iterator[SiteStore]:
        """The store, open until the block is left. Raises `NodeUnreachable` when it is closed."""
        with self._free:
            if self._closed:
                raise NodeUnreachable("the copy is no longer here")
            self._users += 1
        try:
            yield self.store
        finally:
            with self._free:
                self._users -= 1
                self._free.notify_all()

    def close(self) -> None:
        with self._free:
            if self._closed:
                return
            self._closed = True
            self._free.wait_for(lambda: not self._users)
        self.store.close()

    @property
    def _restores(self) -> int:
        return max(map(_restores, self.store.positions(_FOLLOW)), default=0)

    def _renew(self, report: PeerReport) -> None:
        """Old values that came back to the origin have low numbers: it is read from the start.

        What is here already is not taken again.
        """
        for old, block in report.restored.items():
            self._note(f"{_INCLUDES}{old}/{block.room}", block.base)
        for group, log in self.groups.items():
            if _restores(log) != report.restores:
                self._note(_follow(report.restores, group), 0)
                self.store.forget(log)
                self.store.forget(_FIRST)

    def _complete(self, group: MetricGroup) -> None:
        if not self.store.position(_complete(group)):
            self._note(_complete(group), 1)

    def _all_there(self) -> None:
        groups = self.groups
        until = min(self._ended[group] for group in groups) - WAIT_US
        self.until = max(self.until or 0, until)
        if self.until - self.store.position(_UNTIL) >= _UNTIL_US:
            self._note(_UNTIL, self.until)
        joined = portions(_union(list(groups)))
        if len(joined) < len(groups):
            self._join(groups, joined)

    def _join(self, groups: Mapping[MetricGroup, str], joined: list[MetricGroup]) -> None:
        """Groups that have all come to the end go on together from the lowest number."""
        lowest = min(self.store.position(log) for log in groups.values())
        restores = self._restores
        for group in joined:
            self._complete(group)
            if group not in groups:
                self._note(_follow(restores, group), lowest)
        for group, log in groups.items():
            if group not in joined:
                self.store.forget(log)
                self.store.forget(_complete(group))
        self._ended.clear()

    def _includes(self) -> dict[str, Block]:
        found = {}
        for log, base in self.store.positions(_INCLUDES).items():
            old, room = log.removeprefix(_INCLUDES).split("/")
            found[old] = Block(base, int(room))
        return found

    def _note(self, log: str, position: int) -> None:
        self.store.ingest(_NOTHING, log, position)


_NOTHING: pa.Table = BATCH.empty_table()


def _follow(restores: int, group: MetricGroup) -> str:
    return f"{_FOLLOW}{restores}/{json.dumps(group)}"


def _restores(log: str) -> int:
    return int(log.split("/", 2)[1])


def _complete(group: MetricGroup) -> str:
    return f"{_COMPLETE}{json.dumps(group)}"


def _group(text: str) -> MetricGroup:
    found = json.loads(text)
    return None if found is None else tuple(found)


def _union(groups: list[MetricGroup]) -> MetricGroup:
    if None in groups:
        return None
    return tuple(dict.fromkeys(name for group in groups for name in group or ()))
