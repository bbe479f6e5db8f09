"""The ingest process: every subscription of the site into its log, and copies between its logs.

What comes through the site's own broker is read from that broker's journal, and that and all copies
are the work of one thread; every subscription at another broker has a connection and a thread of
its own. Subscriptions and copies come and go while it runs.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fogline.agent.brokers import broker_options, connect
from fogline.agent.children import Parent, tell
from fogline.agent.intake import Intake, Subscription
from fogline.agent.journal_intake import JournalIntake, Target, keep_working
from fogline.broker import BrokerClosedError, open_broker
from fogline.errors import FoglineError
from fogline.links.copier import Copier, Copy
from fogline.links.inlet import BadLinks, Inlet
from fogline.links.starting import START
from fogline.log import SiteLog

_STATUS_SECONDS = 0.5
_TICK_SECONDS = 0.02
_NOTE_SECONDS = 1.0
_STOP_SECONDS = 5.0


def main() -> None:
    parent = Parent()
    ingest = Ingest(parent.config)
    told, due = -1, 0.0
    while not parent.gone.wait(_TICK_SECONDS):
        if (config := parent.changed()) is not None:
            ingest.change(config)
        try:
            ingest.tick()
        except FoglineError as error:
            sys.exit(f"ingest: {error}")
        if ingest.begun and (ingest.in_force != told or time.monotonic() >= due):
            told, due = ingest.in_force, time.monotonic() + _STATUS_SECONDS
            tell(ingest.status())
    ingest.stop()


class Worker:
    """The thread that reads the journal and makes the copies."""

    @dataclass(frozen=True)
    class Plan:
        subscriptions: tuple[Subscription, ...]
        copies: tuple[Copy, ...]
        others: tuple[Inlet, ...]
        """Logs that are fed by threads of their own and take copies too."""

    def __init__(self, journal: Path | None, logs: SiteLog, bad: BadLinks) -> None:
        self.journal: JournalIntake | None = None
        self.copiers: list[Copier] = []
        self.done: Worker.Plan | None = None
        """What is in force."""
        self._folder = journal
        self._logs = logs
        self._bad = bad
        self._plan = Worker.Plan((), (), ())
        self._note_due = 0.0
        self._error: Exception | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def want(self, plan: Worker.Plan) -> None:
        """Makes it so, soon. Raises what has ended the thread."""
        self._plan = plan
        if self._error is not None:
            raise self._error
        if self._thread.ident is None:
            self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join(_STOP_SECONDS)

    def _run(self) -> None:
        try:
            keep_working(self._step, self._stop)
            self._close()
        except Exception as error:
            self._error = error

    def _step(self) -> int:
        plan = self._plan
        if plan is not self.done:
            self._change(plan)
        moved = self.journal.step(self._stop) if self.journal is not None else 0
        moved += sum(copier.step() for copier in self.copiers)
        if time.monotonic() >= self._note_due:
            self._note_due = time.monotonic() + _NOTE_SECONDS
            for copier in self.copiers:
                copier.note()
        return moved

    def _change(self, plan: Worker.Plan) -> None:
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
        self.done = plan

    def _change_journal(self, subscriptions: Sequence[Subscription]) -> None:
        if self.journal is not None:
            self.journal.change(subscriptions)
        elif self._folder is not None:
            self.journal = JournalIntake(self._folder, subscriptions, self._logs, self._bad)

    def _close(self) -> None:
        for copier in self.copiers:
            copier.close()
        if self.journal is not None:
            self.journal.finish()


class Feed:
    """A subscription at a broker that has no journal here: its connection and its thread."""

    def __init__(
        self, subscription: Subscription, config: dict[str, Any], logs: SiteLog, bad: BadLinks
    ) -> None:
        client = f"{config['client']}-{subscription.log}"
        options = broker_options(client, config["tls"], persistent=True)
        self._broker = open_broker(subscription.broker, options)
        self.intake = Intake(subscription, self._broker, logs, bad)
        self._stop = threading.Event()
        self._given_up = False
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def holds_up(self) -> bool:
        """Whether something could still be missed that is sent to this site."""
        return self.intake.subscription.own and not self.intake.subscribed

    def check(self) -> None:
        """Raises what has ended the thread."""
        if self._error is not None:
            raise self._error

    def end(self, for_good: bool) -> bool:
        """Ends it while the process goes on; whether that is done."""
        self._given_up = for_good
        self._stop.set()
        if not self.intake.subscribed:
            self._broker.close(timeout=0)
        return not self._thread.is_alive()

    def stop(self, seconds: float) -> None:
        """Ends it for now, in that time if possible: the broker goes on collecting for us."""
        self._stop.set()
        self._thread.join(seconds)

    def _run(self) -> None:
        try:
            if connect(self._broker, self._stop, self._tell):
                self.intake.run(self._stop)
                if self._given_up:
                    self.intake.unsubscribe()
        except BrokerClosedError:
            return
        except Exception as error:
            self._error = error
        finally:
            self.intake.close()
            self._broker.close()

    def _tell(self, text: str) -> None:
        self.intake.state = text


class Ingest:
    """What is wanted, and the way there: `tick` is called again and again by one thread."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.in_force = 0
        """Grows when a configuration is in force; 0 as long as none is."""
        self._logs = SiteLog(Path(config["logs"]), min_free_bytes=config["min_free_bytes"])
        self._bad = BadLinks(self._logs)
        journal = config.get("journal")
        self._worker = Worker(Path(journal) if journal else None, self._logs, self._bad)
        self._journaled = bool(journal)
        self._feeds: dict[Subscription, Feed] = {}
        self._revision = 0
        self._plan = Worker.Plan((), (), ())
        self.change(config)

    @property
    def begun(self) -> bool:
        """Whether all logs are there."""
        return self._worker.done is not None and len(self._feeds) >= len(self._others)

    def change(self, config: dict[str, Any]) -> None:
        wanted = tuple(Subscription(**item) for item in config["subscriptions"])
        self._config = config
        self._own = tuple(s for s in wanted if self._journaled and not s.broker)
        self._others = tuple(s for s in wanted if s not in self._own)
        self._copies = tuple(copy_of(item) for item in config.get("copies", ()))
        self._changing = True

    def tick(self) -> None:
        """A step on the way. Raises what has ended one of the threads."""
        for feed in self._feeds.values():
            feed.check()
        if self._changing and (plan := self._possible()) != self._plan:
            self._plan = plan
        self._worker.want(self._plan)
        if self._changing and self._worker.done is self._plan:
            self._end_feeds()
            self._open_feeds()
            self._settle()

    def _possible(self) -> Worker.Plan:
        """What is wanted, but no copy for a log that is not open yet: it would miss some of it."""
        own = [subscription for subscription in self._others if subscription.own]
        inlets = [self._feeds[s].intake for s in own if s in self._feeds]
        missing = [s for s in own if s not in self._feeds]
        copies = [c for c in self._copies if not any(s.takes(c.topic) for s in missing)]
        return Worker.Plan(self._own, tuple(copies), tuple(inlets))

    def _end_feeds(self) -> None:
        """One that comes back in another way is not given up at its broker."""
        logs = {subscription.log for subscription in self._others}
        vanished = [(s, feed) for s, feed in self._feeds.items() if s not in self._others]
        for subscription, feed in vanished:
            if feed.end(for_good=subscription.log not in logs):
                del self._feeds[subscription]

    def _open_feeds(self) -> None:
        taken = {subscription.log for subscription in self._feeds}
        for subscription in self._others:
            if subscription.log not in taken:
                feed = Feed(subscription, self._config, self._logs, self._bad)
                self._feeds[subscription] = feed

    def _settle(self) -> None:
        feeds = [self._feeds.get(subscription) for subscription in self._others]
        there = all(feed is not None and not feed.holds_up for feed in feeds)
        if there and len(self._feeds) == len(self._others) and self._plan == self._possible():
            self._changing = False
            self._revision = self._config.get("revision", 0)
            self.in_force += 1

    def stop(self) -> None:
        """Copies end before the logs they are for are closed."""
        self._worker.stop()
        for seconds in (0, _STOP_SECONDS):
            for feed in self._feeds.values():
                feed.stop(seconds)
        self._bad.close()

    def status(self) -> dict[str, Any]:
        targets = self._worker.journal.targets if self._worker.journal else []
        feeds = [feed.intake for feed in self._feeds.values()]
        intakes: list[Target | Intake] = [*targets, *feeds]
        unwell = [i.state for i in intakes if i.state != "running"]
        return {
            "state": unwell[0] if unwell else "running",
            "revision": self._revision,
            "subscriptions": [
                {
                    "pattern": i.subscription.pattern,
                    "log": i.subscription.log,
                    "state": i.state,
                    "messages": i.messages,
                    "repeated": i.repeated,
                    "bytes": i.bytes,
                }
                for i in intakes
            ],
            "copies": [
                {
                    "log": c.copy.log,
                    "topic": c.copy.topic,
                    "reader": c.copy.reader,
                    "state": c.state,
                    "messages": c.messages,
                    "lag": c.lag,
                }
                for c in self._worker.copiers
            ],
            "bad_links": self._bad.count,
        }


def copy_of(item: dict[str, Any]) -> Copy:
    return Copy(item["log"], item["topic"], item["reader"], item.get("begin", START))


if __name__ == "__main__":
    main()
