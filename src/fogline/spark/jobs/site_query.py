"""One Spark query of a job at a site: kept running, restarted from its checkpoint when it fails."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import compress
from pathlib import Path
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

from fogline.common.backoff import Backoff
from fogline.model.sites import QueryStatus
from fogline.spark.jobs.checkpoint_damage import CheckpointDamage, file_damage, find_damage
from fogline.spark.session.failures import python_traceback, summarise_failure
from fogline.spark.session.session import engine_has_ended

_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0
_HEALTHY_SECONDS = 60.0
"""A query that ran this long before it failed starts again without a long pause."""
_say = logging.getLogger(__name__)


class SiteQuery:
    """`start` makes and starts the query; it is called again after every failure.

    In real time there is no `trigger_ms`, one batch follows the other; `counts` then gives what has
    been found while a batch runs, as far as that is known. `counted` says for every source whether
    its records count here: another query may read them too. Without it all do.

    A query whose checkpoint is damaged is not started again until it no longer is."""

    def __init__(
        self,
        name: str,
        start: Callable[[], StreamingQuery],
        trigger_ms: int | None,
        counted: Sequence[bool] | None = None,
        counts: Callable[[], dict[str, Any]] = dict,
        checkpoint: Path | None = None,
    ) -> None:
        self.name = name
        self._counted = counted
        self._counts = counts
        self._start = start
        self._checkpoint = checkpoint
        self._damage: CheckpointDamage | None = None
        self._trigger_ms = trigger_ms
        self._query: StreamingQuery | None = None
        self._problem = self._detail = ""
        self._backoff = Backoff(_FIRST_PAUSE, _LONGEST_PAUSE)
        self._due = 0.0
        self._started = 0.0
        self._run = ""
        self._reported = ""
        """When what the last report is about began."""
        self._progress: dict[str, Any] = {}
        self._delay_ms = 0

    def keep_running(self) -> None:
        """Starts the query if it does not run and its pause is over; called again and again."""
        if self._query is not None and self._query.isActive:
            return
        if self._query is not None:
            self._note(self._query.exception())
            self._query = None
        if time.monotonic() < self._due or self._is_damaged():
            return
        self._started = time.monotonic()
        try:
            self._query = self._start()
            self._run = str(self._query.runId)
            self._reported, self._progress = "", {}
        except Exception as error:  # the user's code may raise anything
            if engine_has_ended(error):
                raise
            self._note(error)

    def _note(self, error: BaseException | None) -> None:
        self._problem = str(summarise_failure(error)) if error is not None else "it was stopped"
        self._detail = python_traceback(error) if error is not None else ""
        healthy = time.monotonic() - self._started > _HEALTHY_SECONDS
        if healthy:
            self._backoff.reset()
        self._due = time.monotonic() + self._backoff.next()
        if self._checkpoint is not None:
            self._damage = next(find_damage(self._checkpoint), None)
            if self._damage is not None:
                self._problem = self._damage.text(self._checkpoint)
                _say.error("query %s: %s", self.name, self._problem)

    def _is_damaged(self) -> bool:
        """Whether what made it fail is still there."""
        if self._damage is None or self._checkpoint is None:
            return False
        if file_damage(self._checkpoint, self._damage.file) is None:
            self._damage = None
            return False
        self._due = time.monotonic() + _LONGEST_PAUSE
        return True

    def stop(self) -> None:
        if self._query is not None:
            self._query.stop()

    def needed_positions(self) -> list[int | None]:
        """For every source, the log position from which the query would be restarted, as of the
        last call of `status`."""
        return [_position(source["startOffset"]) for source in self._progress.get("sources", ())]

    def status(self) -> QueryStatus:
        if self._query is None or not self._query.isActive:
            return QueryStatus(self.name, "failed", self._problem, detail=self._detail)
        if not self._look():
            begun = not str(self._query.status["message"]).startswith("Initializing")
            state = "running" if begun else "starting"
            status = QueryStatus(self.name, state, run=self._run)
        else:
            status = self._make_status()
        return replace(status, **self._counts()) if status.state == "running" else status

    def _look(self) -> bool:
        """Takes Spark's last report, if it is another one, as one text: its parts one by one take
        a hundred calls."""
        assert self._query is not None
        report = self._query._jsq.lastProgress()
        if report is None:
            return False
        begun = str(report.timestamp())
        if begun != self._reported:
            before, self._progress = self._progress, json.loads(str(report.json()))
            self._reported = begun
            self._delay_ms = _delay(before, self._progress, self._trigger_ms)
        return True

    def _make_status(self) -> QueryStatus:
        progress = self._progress
        sources = [source.get("metrics") or {} for source in progress["sources"]]
        counted = sources if self._counted is None else list(compress(sources, self._counted))
        states = progress["stateOperators"]
        took = int(progress["batchDuration"])
        newest = (progress.get("eventTime") or {}).get("max")
        done = _epoch_ms(progress["timestamp"]) + took
        return QueryStatus(
            self.name,
            "running",
            run=self._run,
            batches=progress["batchId"] + 1,
            rows_per_second=round(progress.get("processedRowsPerSecond") or 0.0, 1),
            batch_ms=took,
            delay_ms=self._delay_ms,
            latency_ms=0 if newest is None else done - _epoch_ms(newest),
            state_rows=sum(state["numRowsTotal"] for state in states),
            state_bytes=sum(state["memoryUsedBytes"] for state in states),
            records=_sum(counted, "records"),
            bad=_sum(counted, "bad"),
            late=_sum(counted, "late"),
            bytes=_sum(counted, "bytes"),
            lag_bytes=_sum(sources, "lag"),
        )


def _sum(metrics: list[dict[str, str]], name: str) -> int:
    return sum(int(m.get(name, 0)) for m in metrics)


def _epoch_ms(text: str) -> int:
    return round(datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1000)


def _delay(before: dict[str, Any], now: dict[str, Any], trigger_ms: int | None) -> int:
    """How much later than a trigger interval after the one before the last batch began, in real
    time after the end of the one before; 0 where that was not seen."""
    if not before or before["batchId"] + 1 != now["batchId"] or not before["numInputRows"]:
        return 0
    apart = _epoch_ms(now["timestamp"]) - _epoch_ms(before["timestamp"])
    if trigger_ms is None:
        return max(0, apart - int(before["batchDuration"]))
    return max(0, apart - max(trigger_ms, 1)) if before["batchDuration"] > trigger_ms else 0


def _position(offset: Any) -> int | None:
    """The position in an offset of the log source; nothing for other sources."""
    files = (offset or {}).get("files", {}) if isinstance(offset, dict | None) else {}
    return int(files["log"]) if "log" in files else None
