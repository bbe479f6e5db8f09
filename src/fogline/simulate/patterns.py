"""How the rate changes over a run. Every pattern has the mean rate asked for.

A pattern is a relative rate over the run; event times are its inverse cumulative, so the number of
events is exact and times never fall.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fogline.simulate.schema import Floats, Ints

MAX_GRID = 1_000_000
POINTS_PER_CYCLE = 200

# Relative rate at `run` (0 to 1 over the whole run) and `cycle` (0 to 1 within each cycle).
Shape = Callable[[Floats, Floats], Floats]


def _uniform(run: Floats, cycle: Floats) -> Floats:
    return np.ones_like(run)


def _burst(run: Floats, cycle: Floats) -> Floats:
    """Half the mean rate, and eleven times that in a tenth of each cycle."""
    return np.where((cycle >= 0.45) & (cycle < 0.55), 5.5, 0.5)


def _sawtooth(run: Floats, cycle: Floats) -> Floats:
    return 0.2 + 1.6 * cycle


def _notifier(run: Floats, centre: float, width: float) -> Floats:
    return np.asarray(np.exp(-0.5 * ((run - centre) / width) ** 2), dtype=np.float64)


def _normal(run: Floats, cycle: Floats) -> Floats:
    return 0.1 + _notifier(run, 0.5, 0.15)


def _bimodal(run: Floats, cycle: Floats) -> Floats:
    """Two rush hours, the second one a little larger."""
    return 0.1 + _notifier(run, 0.3, 0.08) + 1.2 * _notifier(run, 0.72, 0.08)


PATTERNS: dict[str, Shape] = {
    "uniform": _uniform,
    "burst": _burst,
    "sawtooth": _sawtooth,
    "normal": _normal,
    "bimodal": _bimodal,
}


class Schedule:
    """The times of all events of a run: `count` of them within `seconds`."""

    def __init__(self, rate: float, seconds: float, pattern: str) -> None:
        self.count = round(rate * seconds)
        self.seconds = seconds
        # A cycle lasts about a minute; short runs still see four.
        cycles = max(4, round(seconds / 60))
        points = min(cycles * POINTS_PER_CYCLE, MAX_GRID)
        middles = (np.arange(points) + 0.5) / points
        weights = PATTERNS[pattern](middles, middles * cycles % 1.0)
        self._grid = np.arange(points + 1) / points
        self._cumulative = np.concatenate(([0.0], np.cumsum(weights) / np.sum(weights)))

    def offsets_ms(self, index: Ints) -> Ints:
        """Milliseconds after the start of the events with these running numbers."""
        fractions = (index + 0.5) / self.count
        run = np.interp(fractions, self._cumulative, self._grid)
        return np.floor(run * self.seconds * 1000).astype(np.int64)
