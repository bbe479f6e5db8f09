"""`fogline run` without `--input`: a whole site in one command, its insights on the screen.

The site lives in a folder of its own, which is removed at the end.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import click

from fogline.agent.config.site import BrokerConfig, JobConfig, SiteConfig
from fogline.agent.config.store import StoreConfig
from fogline.agent.contracts.site_status import SiteStatus
from fogline.agent.supervisor.site import Site
from fogline.cli.run.screen import Screen
from fogline.common.process.interrupts import ctrl_c
from fogline.common.settings import Settings
from fogline.log import LogReader
from fogline.model.results import Account, StreamCount
from fogline.model.sites import insight_log
from fogline.plan.analysis.query_file import LoadedQuery

_POLL_SECONDS = 0.05

Ready = Callable[[str], None]
"""Called once with the broker's address when everything runs."""


def run_live(
    loaded: LoadedQuery,
    screen: Screen,
    settings: Settings,
    port: int = 0,
    seconds: float | None = None,
    on_ready: Ready | None = None,
) -> None:
    """Runs until the time is up or Ctrl-C; always prints a summary."""
    with _folder() as folder, screen:
        site = Site(_config(loaded, folder, settings, port))
        run = _LiveRun(site, loaded, screen)
        try:
            site.start()
            click.echo(f"devices connect to {site.broker_address}", err=True)
            with ctrl_c() as asked:
                run.until(seconds, asked.is_set, on_ready)
        finally:
            screen.say("stopping")
            site.stop()
        run.finish()


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="fogline-site-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _config(loaded: LoadedQuery, folder: Path, settings: Settings, port: int) -> SiteConfig:
    return SiteConfig(
        site="local",
        folder=folder,
        jobs=(JobConfig(_job(loaded), loaded.path),),
        broker=BrokerConfig(port=port),
        store=StoreConfig(metrics=False),
        engine=settings.engine,
        memory=settings.memory,
    )


def _job(loaded: LoadedQuery) -> str:
    return loaded.path.stem


class _LiveRun:
    """One run as the screen sees it."""

    def __init__(self, site: Site, loaded: LoadedQuery, screen: Screen) -> None:
        self._site = site
        self._screen = screen
        shown = [e.name for e in loaded.plan.emits if not e.hidden]
        topics = {name: insight_log(_job(loaded), name) for name in shown}
        self._tails = {name: _Tail(site.logs.reader(topic)) for name, topic in topics.items()}
        self._began: float | None = None
        self._counts: Counter[str] = Counter()
        self._said = ""
        self._status: SiteStatus | None = None

    def until(
        self, seconds: float | None, stopped: Callable[[], bool], on_ready: Ready | None
    ) -> None:
        """`seconds` count from when everything runs."""
        while not stopped() and not self._screen.reader_ended and not self._is_over(seconds):
            self._site.tick()
            status = self._look()
            if self._began is None and status.healthy:
                self._began = time.monotonic()
                if on_ready is not None:
                    on_ready(self._site.broker_address)
            time.sleep(_POLL_SECONDS)

    def _is_over(self, seconds: float | None) -> bool:
        begun = self._began
        return seconds is not None and begun is not None and time.monotonic() - begun >= seconds

    def _look(self) -> SiteStatus:
        self._status = status = self._site.status()
        self._show()
        if self._began is None:
            self._screen.say(_waiting_for(status))
        else:
            self._screen.tick(self._account(status))
        self._say_problem(status)
        return status

    def _show(self) -> None:
        for name, tail in self._tails.items():
            payloads = tail.read()
            if payloads:
                self._counts[name] += len(payloads)
                self._screen.lines(b"\n".join(payloads) + b"\n")

    def _say_problem(self, status: SiteStatus) -> None:
        for job in status.jobs:
            for query in job.queries:
                problem = query.problem if query.state == "failed" else ""
                if problem and problem != self._said:
                    self._said = problem
                    click.echo(f"{job.name}: {problem}; retrying", err=True)

    def _account(self, status: SiteStatus) -> Account:
        ingest = status.ingest.report
        received = sum(s.messages for s in ingest.subscriptions) if ingest is not None else 0
        bad, late = sum(job.bad for job in status.jobs), sum(job.late for job in status.jobs)
        count = StreamCount(received, bad, late)
        return Account({"messages": count}, self._counts.total(), self._counts)

    def finish(self) -> None:
        """Shows results that were in transit when everything stopped."""
        self._show()
        self._screen.counts = self._counts
        seconds = time.monotonic() - self._began if self._began is not None else 0.0
        account = self._account(self._status) if self._status is not None else None
        self._screen.finish(account, seconds, None, None)


def _waiting_for(status: SiteStatus) -> str:
    states = {"broker": status.broker.state}
    states |= {name: child.state for name, child in status.processes.items() if name != "store"}
    return next(
        (f"{name}: {state}" for name, state in states.items() if state != "running"), "running"
    )


class _Tail:
    def __init__(self, reader: LogReader) -> None:
        self._reader = reader
        self._position = 0

    def read(self) -> list[bytes]:
        if self._reader.committed() <= self._position:
            return []
        records, self._position = self._reader.read(self._position)
        return [payload for _, payload in records]
