"""Results on a terminal: a table of the newest that redraws itself, one line of rates below.

Only bold and dim, so that it reads on light and dark; names and payloads are text, never markup.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn
from rich.table import Table
from rich.text import Text

from fogline.cli.run.newest import NewestResult, NewestResults
from fogline.cli.run.screen import Screen
from fogline.model.results import Account, Result

_RATE_SECONDS = 5.0
_BESIDE_ROWS = 4
"""Lines that are not rows: the heading, the line of rates, and space for the prompt."""
_LONGEST_LAG = 86_400.0


class Rates:
    """Records and results a second over the last seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = clock()
        self._seen: deque[tuple[float, int, int]] = deque([(self._began, 0, 0)])

    def add(self, records: int, results: int) -> None:
        now = self._clock()
        self._seen.append((now, records, results))
        while len(self._seen) > 2 and now - self._seen[1][0] >= _RATE_SECONDS:
            self._seen.popleft()

    def line(self, lag: float | None) -> str:
        """`up 0:01:23 · 12,345 records (1,000/s) · 317 results (3.1/s) · lag 2.4 s`."""
        (first, records, results), (last, now_records, now_results) = self._seen[0], self._seen[-1]
        seconds = max(last - first, 1.0)
        parts = [
            f"up {_duration(self._clock() - self._began)}",
            f"{now_records:,} records ({_rate((now_records - records) / seconds)})",
            f"{now_results:,} results ({_rate((now_results - results) / seconds)})",
        ]
        if lag is not None:
            parts.append(f"lag {lag:,.1f} s")
        return " · ".join(parts)


def _rate(value: float) -> str:
    return f"{value:,.0f}/s" if value >= 10 else f"{value:.1f}/s"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"


class LiveTable(Screen):
    """With `total_bytes` there is an end, and a bar that shows how far it is."""

    def __init__(
        self, insights: Sequence[str], total_bytes: int | None, console: Console | None = None
    ) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._newest = NewestResults(insights)
        self._names = max((len(name) for name in insights), default=0)
        self._total = total_bytes
        self._read = 0
        self._doing = ""
        self._rates: Rates | None = None
        self._console = console or Console(highlight=False)
        self._live = Live(
            console=self._console,
            refresh_per_second=4,
            get_renderable=self.render,
            vertical_overflow="crop",
        )

    def __enter__(self) -> Screen:
        self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._live.stop()

    def say(self, text: str) -> None:
        self._doing = text

    def results(self, results: Sequence[Result]) -> None:
        super().count(results)
        with self._lock:
            self._newest.add(results)

    def tick(self, account: Account) -> None:
        self._rates = self._rates or Rates()
        self._rates.add(account.records, account.results)
        self._read = sum(s.bytes for s in account.streams.values())

    def finish(self, *counts: Any) -> None:
        self._live.refresh()
        self._live.stop()
        super().finish(*counts)

    def render(self) -> RenderableType:
        height = max(1, self._console.size.height - _BESIDE_ROWS - (self._total is not None))
        with self._lock:
            rows = self._newest.rows(height)
            newest_ms = self._newest.newest_ms
        begun = self._rates is not None
        parts: list[RenderableType] = [self._table(rows)] if begun else []
        parts.append(Text(self._status(newest_ms), style="dim", overflow="ellipsis", no_wrap=True))
        if self._total:
            parts.append(self._bar(self._total))
        return Group(*parts)

    def _status(self, newest_ms: int) -> str:
        if self._rates is None:
            return self._doing
        lag = time.time() - newest_ms / 1000 if newest_ms and self._total is None else None
        return self._rates.line(lag if lag is not None and 0 <= lag < _LONGEST_LAG else None)

    def _table(self, rows: Sequence[NewestResult]) -> Table:
        """The name of an insight is never cut; keys and values share what is left."""
        days = {row.end[:10] for row in rows if row.end}
        clock = slice(11, None) if len(days) == 1 else slice(5, None)
        when = f"{days.pop()} UTC" if len(days) == 1 else "UTC"
        table = Table(box=None, pad_edge=False, expand=True, header_style="bold")
        names = min(self._names, max(10, self._console.size.width // 2))
        table.add_column("insight", min_width=names, overflow="fold")
        table.add_column("keys", ratio=2, no_wrap=True, overflow="ellipsis")
        table.add_column("value", ratio=3, no_wrap=True, overflow="ellipsis")
        table.add_column(when, no_wrap=True, justify="right", overflow="ellipsis")
        table.add_column("results", no_wrap=True, justify="right", overflow="ellipsis")
        before = ""
        for row in rows:
            name = row.insight if row.insight != before else ""
            cells = (row.keys, row.value, row.end[clock], f"{row.count:,}")
            table.add_row(Text(name), *(Text(cell) for cell in cells))
            before = row.insight
        return table

    def _bar(self, total: int) -> RenderableType:
        bar = Progress(TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
        bar.add_task("read", total=total, completed=self._read)
        return bar
