"""The ingest process: every subscription of the site into its log, and copies between its logs.

What comes through the site's own broker is read from that broker's journal, and that and all copies
are the work of one thread; every subscription at another broker has a connection and a thread of
its own. Subscriptions and copies come and go while it runs.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from fogline.agent.broker.connections import broker_options
from fogline.agent.contracts.ingest import (
    CopyStatus,
    IngestConfig,
    IngestStatus,
    Subscription,
    SubscriptionStatus,
)
from fogline.agent.ingest.foreign_topics import ForeignSubscription
from fogline.agent.ingest.intake import SubscriptionIntake
from fogline.agent.ingest.journal_intake import JournalTarget
from fogline.agent.ingest.retained_fetch import RetainedFetch
from fogline.agent.ingest.worker import IngestPlan, IngestWorker
from fogline.common.errors import FoglineError
from fogline.common.process.parent import Parent
from fogline.links.inlet import BadLinks
from fogline.log import SiteLog

_STATUS_SECONDS = 0.5
_TICK_SECONDS = 0.02
_STOP_SECONDS = 5.0


def main() -> None:
    parent = Parent(IngestConfig)
    ingest = Ingest(parent.config)
    reported, due = -1, 0.0
    while not parent.ended.is_set():
        if (config := parent.take_change()) is not None:
            ingest.change(config)
        try:
            ingest.tick()
        except FoglineError as error:
            sys.exit(f"ingest: {error}")
        if ingest.has_all_logs and (ingest.in_force != reported or time.monotonic() >= due):
            reported, due = ingest.in_force, time.monotonic() + _STATUS_SECONDS
            parent.report_status(ingest.status())
        parent.wait(_TICK_SECONDS if ingest.changing else _STATUS_SECONDS)
    ingest.stop()


class Ingest:
    """The desired state, and the way there: `tick` is called again and again by one thread."""

    def __init__(self, config: IngestConfig) -> None:
        self.in_force = 0
        """Grows when a configuration is in force; 0 as long as none is."""
        self._logs = SiteLog(Path(config.logs), min_free_bytes=config.min_free_bytes)
        self._bad = BadLinks(self._logs)
        self._worker = IngestWorker(
            Path(config.journal) if config.journal else None,
            self._logs,
            self._bad,
            _make_retained_fetch(config),
            config.same_machine,
        )
        self._journaled = bool(config.journal)
        self._feeds: dict[Subscription, ForeignSubscription] = {}
        self._revision = 0
        self._plan = IngestPlan()
        self.changing = True
        """Whether the configuration is not in force yet."""
        self.change(config)

    @property
    def has_all_logs(self) -> bool:
        """Whether all logs are there."""
        return self._worker.done is not None and len(self._feeds) >= len(self._others)

    def change(self, config: IngestConfig) -> None:
        self._config = config
        self._own = tuple(s for s in config.subscriptions if self._journaled and not s.broker)
        self._others = tuple(s for s in config.subscriptions if s not in self._own)
        self.changing = True

    def tick(self) -> None:
        """A step on the way. Raises what has ended one of the threads."""
        for feed in self._feeds.values():
            feed.check()
        if self.changing and (plan := self._make_plan()) != self._plan:
            self._plan = plan
        self._worker.set_plan(self._plan)
        if self.changing and self._worker.done is self._plan:
            self._end_feeds()
            self._open_feeds()
            self._settle()

    def _make_plan(self) -> IngestPlan:
        """As configured, but no copy for a log that is not open yet: it would miss some of it."""
        own = [subscription for subscription in self._others if subscription.own]
        inlets = [self._feeds[s].intake for s in own if s in self._feeds]
        missing = [s for s in own if s not in self._feeds]
        copies = [c for c in self._config.copies if not any(s.takes(c.topic) for s in missing)]
        return IngestPlan(self._own, tuple(copies), tuple(inlets))

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
                feed = ForeignSubscription(subscription, self._config, self._logs, self._bad)
                self._feeds[subscription] = feed

    def _settle(self) -> None:
        feeds = [self._feeds.get(subscription) for subscription in self._others]
        there = all(feed is not None and not feed.holds_up for feed in feeds)
        if there and len(self._feeds) == len(self._others) and self._plan == self._make_plan():
            self.changing = False
            self._revision = self._config.revision
            self.in_force += 1

    def stop(self) -> None:
        """Copies end before the logs they are for are closed."""
        self._worker.stop()
        for seconds in (0, _STOP_SECONDS):
            for feed in self._feeds.values():
                feed.stop(seconds)
        self._bad.close()

    def status(self) -> IngestStatus:
        targets = self._worker.journal.targets if self._worker.journal else []
        feeds = [feed.intake for feed in self._feeds.values()]
        intakes: list[JournalTarget | SubscriptionIntake] = [*targets, *feeds]
        unwell = [i.state for i in intakes if i.state != "running"]
        return IngestStatus(
            unwell[0] if unwell else "running",
            self._revision,
            subscriptions=tuple(
                SubscriptionStatus(
                    pattern=i.subscription.pattern,
                    log=i.subscription.log,
                    state=i.state,
                    messages=i.messages,
                    repeated=i.repeated,
                    bytes=i.bytes,
                )
                for i in intakes
            ),
            copies=tuple(
                CopyStatus(c.copy.log, c.copy.topic, c.copy.reader, c.state, c.messages, c.lag)
                for c in self._worker.copiers
            ),
            bad_links=self._bad.count,
        )


def _make_retained_fetch(config: IngestConfig) -> RetainedFetch | None:
    if config.retained is None:
        return None
    return RetainedFetch(config.retained, broker_options(f"{config.client}-retained", config.tls))


if __name__ == "__main__":
    main()
