"""Results of a long, unattended run: a few lines a second.

Each turn shows the newest results of as many insights and keys as fit, and counts the others;
`--json` gives them all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from fogline.cli.run.screen import Screen, result_line
from fogline.model.results import Account, Result

_LINES = 5
_SECONDS = 2.0


class PacedLines(Screen):
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._next = clock()
        self._waiting: dict[tuple[str, str], Result] = {}
        self._others = 0

    def results(self, results: Sequence[Result]) -> None:
        super().count(results)
        for result in results:
            place = (result.insight, result.key)
            self._others += self._waiting.pop(place, None) is not None
            self._waiting[place] = result
            if len(self._waiting) > _LINES * 20:
                del self._waiting[next(iter(self._waiting))]
                self._others += 1
        self._turn()

    def tick(self, account: Account) -> None:
        self._turn()

    def finish(self, *counts: Any) -> None:
        self._show()
        super().finish(*counts)

    def _turn(self) -> None:
        if self._clock() >= self._next and self._waiting:
            self._next = self._clock() + _SECONDS
            self._show()

    def _show(self) -> None:
        shown = _pick_varied(list(reversed(self._waiting.values())))
        others = self._others + len(self._waiting) - len(shown)
        self._waiting, self._others = {}, 0
        lines = [result_line(result) for result in reversed(shown)]
        if others:
            lines.append(f"… and {others:,} more results")
        self._write("".join(f"{line}\n" for line in lines))


def _pick_varied(newest_first: list[Result]) -> list[Result]:
    """A few, of as many insights as possible."""
    firsts = list({result.insight: result for result in reversed(newest_first)}.values())
    others = [result for result in newest_first if result not in firsts]
    return [*reversed(firsts), *others][:_LINES]
