"""The store process of a site: its store, fed from its logs, and its part in the fabric.

A child of the agent (`fogline.common.process.parent`). It goes on when the store cannot be opened
or written: it says so, and tries again. What cannot change while it runs ends it, and the agent
starts it anew.
"""

from __future__ import annotations

import ctypes
import logging
import os
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import pyarrow as pa

from fogline.broker import Tls
from fogline.common.backoff import Backoff
from fogline.common.errors import FoglineError, UsageError
from fogline.common.http.server import listen_again
from fogline.common.process.parent import Parent
from fogline.common.process.priority import step_back
from fogline.fabric.api.node import FabricNode
from fogline.fabric.api.rest import make_app
from fogline.fabric.api.tokens_file import Callers
from fogline.fabric.contract import ControlBroker, StoreProcessConfig, StoreStatus
from fogline.fabric.http.secrets import Secrets
from fogline.fabric.membership.options import FabricOptions
from fogline.fabric.query.records import Descriptions, descriptions_of
from fogline.fabric.query.space_keys import SpaceKeys
from fogline.fabric.streams.fabric_to_log import FabricFeed
from fogline.fabric.streams.log_to_store import Feeding
from fogline.fabric.streams.stored_log import FULL, RUNNING
from fogline.log import SiteLog
from fogline.storage.errors import StoreDamaged
from fogline.storage.limits import HOUR_US, MEBIBYTE, StoreLimits
from fogline.storage.store import SiteStore

_NICENESS = 10
"""What comes in and what is computed goes before: it waits in memory, this waits in a log."""
_STATUS_SECONDS = 2.0
_TICK_SECONDS = 0.5
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 30.0
_ARENAS, _FEW = -8, 2
"""glibc keeps memory by thread; with many threads that never comes back."""
_FIXED = ("site", "folder", "host", "hosts", "port", "limits", "control")
"""What a running process cannot change."""
_UNITS = {
    "hours": ("age_us", HOUR_US),
    "megabytes": ("disk_bytes", MEBIBYTE),
    "memory_megabytes": ("latest_bytes", MEBIBYTE),
}
_COUNTS = ("flush_rows", "flush_us", "wait_rows", "file_rows", "merge_files")


def main() -> None:
    os.umask(0o077)  # what it stores is for its owner only
    step_back(_NICENESS)
    save_memory()
    parent = Parent(StoreProcessConfig)
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    backoff = Backoff(_FIRST_PAUSE, _LONGEST_PAUSE)
    while not parent.ended.is_set():
        try:
            run(parent)
            return
        except (FoglineError, OSError) as error:
            state = "damaged" if isinstance(error, StoreDamaged) else "failed"
            hint = error.hint if isinstance(error, FoglineError) else ""
            print(f"store: {error}", file=sys.stderr, flush=True)
            failure = StoreStatus(state, why=str(error), hint=hint)
            if _wait(parent, failure, backoff.next()):
                backoff.reset()


def run(parent: Parent[StoreProcessConfig]) -> None:
    """Until the parent has ended or asks for what only a new process can do."""
    store = StoreProcess(parent.config)
    try:
        store.start()
        due, reported = 0.0, ("", 0)
        while not parent.ended.is_set():
            if (config := parent.take_change()) is not None:
                if any(getattr(config, key) != getattr(parent.config, key) for key in _FIXED):
                    return
                parent.config = config
                store.change(config)
            store.sign()
            news = store.state(), store.revision()
            if news != reported or time.monotonic() >= due:
                due, reported = time.monotonic() + _STATUS_SECONDS, news
                parent.report_status(store.status())
            parent.wait(_TICK_SECONDS)
    finally:
        store.stop()


class StoreProcess:
    """Everything of it. Raises `FoglineError` from its construction when something is missing."""

    def __init__(self, config: StoreProcessConfig) -> None:
        from fogline.fabric.federation.fabric import (
            Fabric,  # makes columns, which would import pandas
        )

        self._config = config
        self._revision = 0
        site, folder = config.site, Path(config.folder)
        self._secrets = Secrets(config.secrets, config.control is not None)
        limits = limits_of(config.limits)
        with ExitStack() as opened:
            self._store = opened.enter_context(SiteStore(folder / "store", site, limits))
            callers = Callers(folder / "store", self._secrets)
            keys = SpaceKeys(folder / "store")
            memory = folder / "store-port"
            self._server = listen_again(config.host, config.port, memory, config.hosts)
            opened.callback(self._server.stop)
            options = options_of(config.control)
            self._fabric = Fabric(site, self._store, folder, self._secrets, options)
            opened.pop_all()  # from here on `stop` closes them
        logs = SiteLog(folder / "log")
        self._node = FabricNode(site, self._store, self._fabric, callers, keys)
        self._feeding = Feeding(self._store, logs)
        self._streams = FabricFeed(logs, self._fabric.change_sources, self._describe)

    def start(self) -> None:
        self._store.start()
        self.change(self._config)
        self._fabric.start()
        self._feeding.start()
        self._streams.start()
        self._server.start(make_app(self._node))

    def change(self, config: StoreProcessConfig) -> None:
        """Other logs, other nodes. What is signed is known before any value of it comes."""
        self._config = config
        self._secrets.change(config.secrets)
        self.sign()
        self._feeding.set_feeds(config.feeds)
        self._fabric.set_nodes(config.nodes)
        self._streams.set_logs(config.fabric_logs)

    def sign(self) -> None:
        """What the site's jobs say about who may read their insights; again and again, because a
        store that lost its disk gets back from others what it said before."""
        self._store.metadata.sign(self._config.signed)

    def stop(self) -> None:
        """Whatever was taken is on disk afterwards, if there is space."""
        self._server.stop()
        self._feeding.close()
        self._streams.close()
        self._fabric.close()
        self._store.close()

    def state(self) -> str:
        """In a word."""
        if any(feed.state == FULL for feed in self._feeding.status()):
            return FULL
        if self._store.state().problem is not None:
            return "failing"
        return "damaged" if self._store.damaged else RUNNING

    def revision(self) -> int:
        """Of the configuration that is in force."""
        if self._feeding.settled:
            self._revision = self._config.revision
        return self._revision

    def status(self) -> StoreStatus:
        return StoreStatus(
            self.state(),
            self.revision(),
            address=self._server.address,
            store=asdict(self._store.state()),
            damaged=tuple(str(path) for path in self._store.damaged),
            feeds=self._feeding.status(),
            nodes=tuple(self._fabric.nodes()),
            fabric_logs=self._streams.status(),
        )

    def _describe(self) -> Descriptions:
        return descriptions_of(self._store.metadata.table())


def limits_of(config: Mapping[str, float]) -> StoreLimits:
    """The store's limits from `{hours, megabytes, memory_megabytes, …}`. Raises `UsageError`."""
    found: dict[str, int] = {}
    for key, value in config.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e12:
            raise UsageError(
                f"the store's limit {key:.80} must be a number above 0, not {value!r:.80}"
            )
        if key in _UNITS:
            name, unit = _UNITS[key]
            found[name] = max(round(value * unit), 1)
        elif key in _COUNTS:
            found[key] = round(value)
        else:
            raise UsageError(f"unknown store limit {key!r:.80}", ", ".join([*_UNITS, *_COUNTS]))
    return StoreLimits(**found)  # type: ignore[arg-type]


def options_of(control: ControlBroker | None) -> FabricOptions:
    """How nodes are found: at the control broker, if there is one."""
    if control is None:
        return FabricOptions()
    files = {name: Path(path) for name, path in (control.tls or {}).items()}
    return FabricOptions(control=control.url, tls=Tls(**files) if files else None)


def _wait(parent: Parent[StoreProcessConfig], failure: StoreStatus, seconds: float) -> bool:
    """Reports what is wrong for so long, or until the configuration changes, then true."""
    deadline = time.monotonic() + seconds
    while not parent.ended.is_set() and (left := deadline - time.monotonic()) > 0:
        parent.report_status(replace(failure, revision=parent.config.revision))
        parent.wait(min(left, _STATUS_SECONDS))
        if (config := parent.take_change()) is not None:
            parent.config = config
            return True
    return False


def save_memory() -> None:
    """A process with as little memory as can be: before there are threads, and before the first
    column is made."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_ARENAS, _FEW)
    pa.set_memory_pool(pa.system_memory_pool())
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    sys.meta_path.insert(0, _WithoutPandas())


class _WithoutPandas(MetaPathFinder):
    """Arrow imports pandas with the first column if it can: forty megabytes for nothing here."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name == "pandas":
            raise ModuleNotFoundError("the store does without pandas", name=name)
        return None


if __name__ == "__main__":
    main()
