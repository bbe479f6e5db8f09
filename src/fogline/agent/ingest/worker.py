"""The thread of the ingest process that reads the broker's journal and makes the copies."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fogline.agent.contracts.ingest import Subscription
from fogline.agent.ingest.journal_intake import JournalIntake, keep_working
from fogline.agent.ingest.retained_fetch import RetainedFetch
from fogline.links.copier import Copier, Copy
from fogline.links.inlet import BadLinks, Inlet
from fogline.log import LogNotifier, SiteLog

_NOTE_SECONDS = 1.0
_LISTEN_SECONDS = 0.5
_STOP_SECONDS = 5.0


@dataclass(frozen=True)
class IngestPlan:
    """What the thread is to do."""

    subscriptions: tuple[Subscription, ...] = ()
    copies: tuple[Copy, ...] = ()
    others: tuple[Inlet, ...] = ()
    """Logs that are fed by threads of their own and take copies too."""


class IngestWorker:
    def __init__(
        self,
        journal: Path | None,
        logs: SiteLog,
        bad: BadLinks,
        retained_fetch: RetainedFetch | None = None,
        same_machine: bool = True,
    ) -> None:
        """`same_machine`: all logs that are copied are written here."""
        self.journal: JournalIntake | None = None
        self.copiers: list[Copier] = []
        self.done: IngestPlan | None = None
        """What is in force."""
        self._folder = journal
        self._logs = logs
        self._bad = bad
        self._retained_fetch = retained_fetch
        self._plan = IngestPlan()
        self._notifier = LogNotifier(same_machine)
        self._note_due = self._listen_due = 0.0
        self._error: Exception | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def set_plan(self, plan: IngestPlan) -> None:
        """Makes it so, soon. Raises what has ended the thread."""
        if plan is not self._plan:
            self._plan = plan
            self._notifier.notify()
        if self._error is not None:
            raise self._error
        if self._thread.ident is None:
            self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._notifier.notify()
        if self._thread.ident is not None:
            self._thread.join(_STOP_SECONDS)

    def _run(self) -> None:
        try:
            keep_working(self._step, self._stop, self._notifier)
            self._close()
        except Exception as error:
            self._error = error

    def _step(self) -> int:
        plan = self._plan
        if plan is not self.done:
            self._change(plan)
        moved = self.journal.step(self._stop) if self.journal is not None else 0
        moved += sum(copier.step() for copier in self.copiers)
        if self.journal is not None and time.monotonic() >= self._listen_due:
            self._listen_due = time.monotonic() + _LISTEN_SECONDS
            self.journal.listen()
        if time.monotonic() >= self._note_due:
            self._note_due = time.monotonic() + _NOTE_SECONDS
            for copier in self.copiers:
                copier.note()
        return moved

    def _change(self, plan: IngestPlan) -> None:
        """Copies into a log end before it is closed, and begin when it is there."""
        for copier in self.copiers:
            copier.feed(())
        self._change_journal(plan.subscriptions)
        kept = {copier.copy: copier for copier in self.copiers if copier.copy in plan.copies}
        for copier in self.copiers:
            if copier.copy not in kept:
                copier.close()
        self.copiers = [kept.get(copy) or Copier(copy, self._logs) for copy in plan.copies]
        inlets = [*(self.journal.targets if self.journal else ()), *plan.others]
        for copier in self.copiers:
            copier.feed(inlets)
        read = [self._logs.folder(copy.log) for copy in plan.copies]
        self._notifier.watch([*([self._folder] if self._folder else ()), *read])
        self.done = plan

    def _change_journal(self, subscriptions: Sequence[Subscription]) -> None:
        if self.journal is not None:
            self.journal.change(subscriptions)
        elif self._folder is not None:
            self.journal = JournalIntake(
                self._folder, subscriptions, self._logs, self._bad, self._retained_fetch
            )

    def _close(self) -> None:
        for copier in self.copiers:
            copier.close()
        if self.journal is not None:
            self.journal.finish()
