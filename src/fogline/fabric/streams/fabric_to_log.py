"""Live streams from the storage fabric: what comes to any node goes into logs of this site.

One thread serves all logs. A node that is unreachable is left alone for a while and caught up with
later; its changes wait in its store.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping

from fogline.common.backoff import Backoff
from fogline.common.errors import FoglineError
from fogline.fabric.contract import FabricLog, FabricLogStatus
from fogline.fabric.query.query_types import ChangeSource
from fogline.fabric.streams.fabric_log import Describe, FeedLog, forget
from fogline.log import LogError, SiteLog
from fogline.model.question import Question
from fogline.model.sites import FABRIC_LOGS

_POLL_SECONDS = 0.5
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 15.0
_BROKEN_SECONDS = 2.0
_RUNNING = "running"
_say = logging.getLogger(__name__)


class FabricFeed:
    """`set_logs` says which logs are desired, before `start` or later; `close` ends the thread.

    `sources` gives the nodes that can be asked a question now, this one among them; `describe` what
    is known about metrics. Both are called from the thread, again and again, and may raise a
    FoglineError.
    """

    def __init__(
        self,
        logs: SiteLog,
        sources: Callable[[Question], Mapping[str, ChangeSource]],
        describe: Describe = dict,
    ) -> None:
        self._logs = logs
        self._sources = sources
        self._describe = describe
        self._desired: dict[str, Question] = {}
        self._fractions: dict[str, Mapping[str, float]] = {}
        self._feeds: dict[str, FeedLog] = {}
        self._states: dict[str, str] = {}
        self._resting: dict[str, _Rest] = {}
        self._asked: dict[str, dict[str, str]] = {}
        """For each log, whom the values of a node came from last."""
        self._statuses: tuple[FabricLogStatus, ...] = ()
        self._changed = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="fabric logs")

    def set_logs(self, logs: Iterable[FabricLog]) -> None:
        listed = list(logs)
        self._fractions = {item.log: item.shares for item in listed}
        self._desired = {item.log: item.question for item in listed}
        self._changed.set()

    def start(self) -> None:
        self._changed.set()
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        self._changed.set()
        if self._thread.is_alive():
            self._thread.join()

    def status(self) -> tuple[FabricLogStatus, ...]:
        return self._statuses

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                more = False
                try:
                    if self._changed.is_set():
                        self._changed.clear()
                        self._reconcile()
                    more = self._round()
                except Exception as error:
                    self._note_failure(error)
                self._update_status()
                if not more:
                    self._changed.wait(_POLL_SECONDS)
        finally:
            for feed in self._feeds.values():
                feed.close()

    def _note_failure(self, error: Exception) -> None:
        """Reported at every log; after a pause all is looked at again."""
        _say.error("a round of fabric logs failed", exc_info=error)
        ours = isinstance(error, FoglineError | OSError)
        why = str(error) if ours else f"a bug: {error!r:.200}"
        self._states |= dict.fromkeys({*self._desired, *self._feeds}, why)
        self._update_status()
        self._stop.wait(_BROKEN_SECONDS)
        self._changed.set()

    def _reconcile(self) -> None:
        """Ends logs that are no longer desired, also those of an earlier start, and begins new
        ones."""
        desired = self._desired
        self._states = {name: state for name, state in self._states.items() if name in desired}
        for name in [n for n, feed in self._feeds.items() if desired.get(n) != feed.question]:
            self._states.pop(name, None)
            self._asked.pop(name, None)
            self._feeds.pop(name).end()
        for name in self._logs.topics():
            if name.startswith(FABRIC_LOGS) and name not in desired:
                forget(self._logs, name)
        for name, question in desired.items():
            if name not in self._feeds:
                self._feeds[name] = FeedLog(self._logs, name, question)
            self._feeds[name].shares = self._fractions.get(name, {})

    def _round(self) -> bool:
        """One page of each node into each log; whether there is more at once."""
        more = False
        for feed in self._feeds.values():
            try:
                sources = self._sources(feed.question)
            except FoglineError as error:
                self._states[feed.name] = str(error)
                continue
            for node, source in sources.items():
                if not self._stop.is_set() and not self._rests(node):
                    more |= self._step(feed, node, source)
        return more

    def _step(self, feed: FeedLog, node: str, source: ChangeSource) -> bool:
        try:
            more = feed.step(node, source, self._describe)
        except (LogError, OSError) as error:
            self._states[feed.name] = f"cannot be written: {error}"
            return False
        except FoglineError as error:
            self._resting.setdefault(node, _Rest()).begin(str(error))
            return False
        except Exception as error:
            _say.exception("the changes of %s cannot be followed", node)
            self._resting.setdefault(node, _Rest()).begin(f"a bug: {error!r:.200}")
            return False
        self._states[feed.name] = _RUNNING
        self._asked.setdefault(feed.name, {})[node] = source.at
        self._resting.pop(node, None)
        return more

    def _rests(self, node: str) -> bool:
        rest = self._resting.get(node)
        return rest is not None and time.monotonic() < rest.until

    def _update_status(self) -> None:
        resting = {node: rest.why for node, rest in self._resting.items()}
        begun = [
            FabricLogStatus(
                log=name,
                state=self._states.get(name, "starting"),
                values=feed.values,
                nodes=dict(feed.places),
                shares=dict(feed.shares),
                copies={n: at for n, at in self._asked.get(name, {}).items() if n != at},
                away=resting,
            )
            for name, feed in self._feeds.items()
        ]
        unbegun = sorted(self._states.keys() - self._feeds.keys())
        others = [FabricLogStatus(n, self._states[n], 0, {}, {}, {}, resting) for n in unbegun]
        self._statuses = (*begun, *others)


class _Rest:
    """A node that is not asked for a while, longer with every failure."""

    def __init__(self) -> None:
        self.until = 0.0
        self.why = ""
        self._backoff = Backoff(_FIRST_PAUSE, _LONGEST_PAUSE)

    def begin(self, why: str) -> None:
        self.why = why
        self.until = time.monotonic() + self._backoff.next()
