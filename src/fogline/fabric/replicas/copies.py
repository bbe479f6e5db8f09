"""The copies that this node keeps: which are desired, one thread that follows their origins.

A copy whose origin has another store, or of which less is desired, is made anew beside the old one,
which answers until the new one is complete. Of an origin that lost its store this happens only
after it has taken back all that the copy holds.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from fogline.common.errors import FoglineError
from fogline.fabric.errors import NodeRefused, NodeUnreachable
from fogline.fabric.membership.clients import Clients
from fogline.fabric.membership.health import Health
from fogline.fabric.membership.options import FabricOptions
from fogline.fabric.membership.peers import CopyInfo, PeerReport, PeerView
from fogline.fabric.replicas.copy import MetricGroup, StoreCopy
from fogline.fabric.replicas.copy_answers import CopyAnswers
from fogline.fabric.replicas.copy_folders import CopyFolders
from fogline.fabric.replicas.desired_replicas import DesiredCopies
from fogline.model.nodes import is_name
from fogline.model.question import Question
from fogline.storage.errors import BadQuery, StoreError
from fogline.storage.names import parse_all
from fogline.storage.query.changes import Changes
from fogline.storage.store import SiteStore

_say = logging.getLogger(__name__)


class Copies:
    """`start` opens what is there and begins to follow, `close` ends it; the rest from any
    thread in between."""

    def __init__(
        self,
        here: str,
        own: SiteStore,
        folder: Path,
        clients: Clients,
        health: Health,
        options: FabricOptions,
    ) -> None:
        self._here = here
        self._folders = CopyFolders(folder, own.limits, own.metadata)
        self._clients = clients
        self._health = health
        self._options = options
        self._desired = DesiredCopies(folder)
        self._held: dict[str, StoreCopy] = {}
        self._next: dict[str, StoreCopy] = {}
        self._problems: dict[str, str] = {}
        self._guard = threading.Lock()
        self._stop = threading.Event()
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._run, name="fabric copies", daemon=True)

    def start(self) -> None:
        for origin in self._desired.all():
            self._reopen(origin)
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join()
        with self._guard:
            copies = [*self._held.values(), *self._next.values()]
            self._held, self._next = {}, {}
        for copy in copies:
            copy.close()

    def keep(self, origin: str, metrics: MetricGroup) -> None:
        """From now on; old values come too. Raises `BadQuery`, and `StoreError` when what is
        desired cannot be written down."""
        if not is_name(origin) or origin == self._here:
            raise BadQuery(f"there is no copy of {origin!r:.80} here", "copies are of other nodes")
        if metrics == ():
            raise BadQuery("a copy of no metrics", "name some, or end the copy")
        parse_all(metrics)
        self._desired.keep(origin, None if metrics is None else tuple(dict.fromkeys(metrics)))
        self._wake.set()

    def drop(self, origin: str) -> None:
        """Ends the copy, which is removed soon. One that is not there is no error."""
        self._desired.drop(origin)
        self._wake.set()

    def infos(self) -> dict[str, CopyInfo]:
        desired = self._desired.all()
        with self._guard:
            held = {origin: copy for origin, copy in self._held.items() if origin in desired}
        found = {}
        for origin, copy in held.items():
            try:
                with copy.using():
                    info = copy.info()
            except NodeUnreachable:
                continue
            if info.id:
                found[origin] = info
        return found

    def status(self) -> dict[str, dict[str, Any]]:
        """By origin: what is desired and what is there."""
        infos = self.infos()
        found: dict[str, dict[str, Any]] = {}
        for origin, metrics in self._desired.all().items():
            desired = None if metrics is None else list(metrics)
            payload: dict[str, Any] = {
                "metrics": desired,
                "until": None,
                "bytes": 0,
                "wanted": desired,
            }
            if origin in infos:
                payload |= infos[origin].as_json()
            problem = self._problems.get(origin, "")
            found[origin] = payload | ({"problem": problem} if problem else {})
        return found

    def copy_of(self, origin: str) -> CopyAnswers | None:
        return None if self.current(origin) is None else CopyAnswers(origin, self.current)

    def current(self, origin: str) -> StoreCopy | None:
        with self._guard:
            return self._held.get(origin) if origin in self._desired.all() else None

    def changes(
        self,
        origin: str,
        after: int,
        question: Question,
        limit: int,
        whole: bool = False,
        without: Collection[str] = (),
    ) -> tuple[Changes, str]:
        """What the copy holds, by number, and of which store; for an origin that lost it.

        With `whole`, for who follows the origin, only up to where nothing is missing.
        """
        copy = self.current(origin)
        if copy is None:
            raise NodeUnreachable(f"there is no copy of {origin!r:.80} here")
        metrics, share = question.metrics, question.share
        with copy.using() as store:
            if whole:
                return copy.changes(after, metrics, limit, share, without), copy.id
            store.flush()
            return store.changes(after, metrics, limit, share, without), copy.id

    def step(self) -> bool:
        """A page of every copy, and the removal of those that are not desired; whether there is
        more to do at once. The thread does this."""
        desired = self._desired.all()
        self._bury(desired)
        more = False
        for origin, metrics in desired.items():
            if self._stop.is_set():
                break
            more |= self._try_follow(origin, metrics)
        return more

    # ── in the thread ────────────────────────────────────────────────────────────────────────────

    def _run(self) -> None:
        while not self._stop.is_set():
            more = False
            try:
                more = self.step()
            except Exception:
                _say.exception("following the origins of copies failed")
            if not more:
                self._wake.wait(self._options.copy_seconds)
                self._wake.clear()

    def _try_follow(self, origin: str, metrics: MetricGroup) -> bool:
        if origin not in self._held:
            self._reopen(origin)
        seen = self._health.get(origin)
        if seen is None or not seen.report.id or not seen.can_be_asked:
            return False
        try:
            more = self._follow(origin, metrics, seen)
            self._problems.pop(origin, None)
        except (NodeUnreachable, NodeRefused) as error:
            self._health.note_failure(origin, seen.address, error)
            self._problems[origin] = error.message
            return False
        except (FoglineError, OSError) as error:
            self._problems[origin] = str(error)
            return False
        return more

    def _follow(self, origin: str, metrics: MetricGroup, seen: PeerView) -> bool:
        client = self._clients.to(origin, seen.address)
        self._give_up_damaged(origin)
        copy = self.current(origin)
        if copy is None:
            return not seen.report.restoring and self._begin(origin, metrics, seen.report)
        if copy.id == seen.report.id and copy.extend(metrics):
            self._end_next(origin)
            return copy.step(client, seen.report, self._options.page_rows)
        if copy.id != seen.report.id and not self._was_taken_back(copy, seen.report):
            return False
        return self._follow_anew(origin, metrics, seen)

    def _give_up_damaged(self, origin: str) -> None:
        """A copy that has lost a file is made anew: its origin has the values."""
        copy = self._held.get(origin)
        if copy is None or not copy.store.lost:
            return
        with self._guard:
            del self._held[origin]
        copy.close()
        self._folders.set_aside(origin, copy.store.lost[0].reason)

    def _was_taken_back(self, copy: StoreCopy, report: PeerReport) -> bool:
        block = report.restored.get(copy.id)
        taken = block is not None and self._here in block.sources
        return not report.restoring and (taken or copy.info().rows == 0)

    def _begin(self, origin: str, metrics: MetricGroup, report: PeerReport) -> bool:
        made = self._folders.open(origin)
        made.begin(report.id, metrics)
        with self._guard:
            self._held[origin] = made
        return True

    def _follow_anew(self, origin: str, metrics: MetricGroup, seen: PeerView) -> bool:
        coming = self._next.get(origin)
        if coming is None or coming.id != seen.report.id or not coming.extend(metrics):
            self._end_next(origin)
            coming = self._folders.open_next(origin)
            coming.begin(seen.report.id, metrics)
            self._next[origin] = coming
        client = self._clients.to(origin, seen.address)
        more = coming.step(client, seen.report, self._options.page_rows)
        if not more:
            self._switch(origin)
        return more

    def _switch(self, origin: str) -> None:
        """The new copy takes the place of the old one; both are closed while folders move."""
        with self._guard:
            old = self._held.pop(origin)
        coming = self._next.pop(origin)
        old.close()
        coming.close()
        made = self._folders.switch(origin)
        with self._guard:
            self._held[origin] = made

    def _end_next(self, origin: str) -> None:
        coming = self._next.pop(origin, None)
        if coming is not None:
            coming.close()
        self._folders.remove_next(origin)

    def _bury(self, desired: Mapping[str, MetricGroup]) -> None:
        for origin in [name for name in {*self._held, *self._next} if name not in desired]:
            self._end_next(origin)
            with self._guard:
                copy = self._held.pop(origin, None)
            if copy is not None:
                copy.close()
            self._folders.remove(origin)
            self._problems.pop(origin, None)

    def _reopen(self, origin: str) -> None:
        """Goes on with what is there."""
        try:
            found = self._folders.reopen(origin)
        except (StoreError, OSError) as error:
            self._problems[origin] = str(error)
            return
        if found is not None:
            with self._guard:
                self._held[origin] = found
