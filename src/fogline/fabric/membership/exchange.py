"""Looks at every other node every two seconds: how it is, how far, and what it knows anew."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait

from fogline.common.errors import FoglineError
from fogline.fabric.errors import NodeUnreachable
from fogline.fabric.membership.clients import Clients
from fogline.fabric.membership.health import Health, HealthValues
from fogline.fabric.membership.options import FabricOptions
from fogline.fabric.membership.peers import PeerReport, PeerView, read_state
from fogline.storage.errors import BadValue, StoreError
from fogline.storage.store import SiteStore, now_us
from fogline.storage.values import from_values

_say = logging.getLogger(__name__)
_AT_ONCE = 16


class Exchange:
    """A thread, from `start` until `close`. `done` is called by it after every round."""

    def __init__(
        self,
        store: SiteStore,
        clients: Clients,
        health: Health,
        options: FabricOptions,
        done: Callable[[Mapping[str, PeerView]], None],
    ) -> None:
        self._store = store
        self._clients = clients
        self._health = health
        self._seconds = options.exchange_seconds
        self._done = done
        self._values = HealthValues()
        self._since: dict[str, tuple[str, int]] = {}
        """By node: of which store the metadata was fetched, and up to which change."""
        self._looks: dict[str, Future[None]] = {}
        self._stop = threading.Event()
        self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="exchange")
        self._thread = threading.Thread(target=self._run, name="fabric exchange", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """What is seen from now on counts for nothing: clients may be closed."""
        self._stop.set()

    def close(self) -> None:
        """Waits for the nodes that are being asked, as long as their clients do."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def round(self) -> None:
        """Asks every node once, all at the same time.

        One that lets us wait for longer than a round is left to its thread: the others are looked
        at meanwhile.
        """
        for name, known in self._health.all().items():
            if name not in self._looks or self._looks[name].done():
                self._looks[name] = self._pool.submit(self._look, name, known)
        wait(self._looks.values(), self._seconds)
        if self._stop.is_set():
            return
        seen = self._health.all()
        self._looks = {node: look for node, look in self._looks.items() if node in seen}
        for left in self._since.keys() - seen.keys():
            del self._since[left]
        values = self._values.of(seen, now_us())
        if values:
            self._store.ingest(from_values(values))
        self._done(seen)

    def _run(self) -> None:
        while not self._stop.is_set():
            begun = time.monotonic()
            try:
                self.round()
            except FoglineError as error:
                _say.warning("what was seen of other nodes is not stored: %s", error)
            except Exception:
                _say.exception("a round of looking at other nodes failed")
            self._stop.wait(max(self._seconds - (time.monotonic() - begun), 0.05))

    def _look(self, name: str, known: PeerView) -> None:
        if self._stop.is_set():
            return
        begun = time.monotonic()
        try:
            report = self._state(name, known.address)
            latency = round((time.monotonic() - begun) * 1000, 3)
            self._health.note_answer(name, known.address, report, latency)
            self._fetch_metadata(name, known.address, report)
        except StoreError as error:
            self._health.note_failure(name, known.address, error)

    def _state(self, name: str, address: str) -> PeerReport:
        client = self._clients.to(name, address)
        data = client.state()
        if data.get("node") != name:
            raise NodeUnreachable(
                f"{address} is not {name}", "look at the configuration of its address"
            )
        try:
            return read_state(data)
        except BadValue as error:
            raise NodeUnreachable(f"{address} cannot be understood: {error.message}") from error

    def _fetch_metadata(self, name: str, address: str, report: PeerReport) -> None:
        store, since = self._since.get(name, (report.id, 0))
        if store != report.id or report.metadata < since:
            since = 0
        client = self._clients.to(name, address)
        while since < report.metadata and not self._stop.is_set():
            items, following = client.metadata_changes(since)
            try:
                self._store.metadata.merge(items)
            except StoreError as error:
                _say.warning("metadata of %s is not taken: %s", name, error)
                return
            if following <= since:
                break
            since = following
            self._since[name] = report.id, since
