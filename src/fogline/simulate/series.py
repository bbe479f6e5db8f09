"""The pieces sensor values are made of: daily cycles, drift, gaps, spikes and identifiers.

Values depend on the seed, the sensor and the event time only, never on how many events were made
before, so a run needs no memory of its sensors.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fogline.simulate.schema import FieldValue, Floats, Ints, plain

DAY_MS = 86_400_000
LETTERS = np.array(list("0123456789abcdefghijklmnopqrstuvwxyz"))
HEX = np.array(list("0123456789ABCDEF"))


def hour_of_day(time_ms: Ints, longitude: Floats | float = 0.0) -> Floats:
    """Solar hour, 0 to 24, at a longitude."""
    return np.asarray((time_ms / 3_600_000 + longitude / 15.0) % 24.0, dtype=np.float64)


def wave(hour: Floats, peak: float) -> Floats:
    """A daily cycle between -1 and 1 that is highest at the hour `peak`."""
    return np.asarray(np.cos((hour - peak) * (2 * np.pi / 24)), dtype=np.float64)


def rush(hour: Floats, peak: float, width: float = 1.5) -> Floats:
    """A bump between 0 and 1 around an hour of the day."""
    distance = np.minimum(np.abs(hour - peak), 24 - np.abs(hour - peak))
    return np.asarray(np.exp(-0.5 * (distance / width) ** 2), dtype=np.float64)


def drift(time_ms: Ints, phase: Floats, minutes: float) -> Floats:
    """Slow wandering between about -1 and 1, different for each phase (0 to 1)."""
    turn = time_ms / (minutes * 60_000) + phase * 97
    return np.asarray(
        0.6 * np.sin(2 * np.pi * turn) + 0.4 * np.sin(2 * np.pi * (turn * 2.7 + phase)),
        dtype=np.float64,
    )


def spikes(rng: np.random.Generator, values: Floats, fraction: float, factor: float) -> Floats:
    """Multiplies a small fraction of the values, as a disturbed sensor does."""
    hit = rng.random(values.size) < fraction
    return np.where(hit, values * factor, values)


def numbers(values: Floats, decimals: int) -> list[FieldValue]:
    """Python floats rounded to `decimals`; ints for 0 decimals."""
    rounded = np.round(values, decimals)
    if decimals == 0:
        return list(rounded.astype(np.int64).tolist())
    # Adding zero turns -0.0 into 0.0.
    return list((rounded + 0.0).tolist())


def with_gaps(
    rng: np.random.Generator, column: list[FieldValue], fraction: float
) -> list[FieldValue]:
    """The column with a small fraction of its values missing (changed in place)."""
    for place in np.flatnonzero(rng.random(len(column)) < fraction).tolist():
        column[place] = None
    return column


def pick(names: Sequence[str], index: Ints) -> list[FieldValue]:
    """The names at these places."""
    return [names[place] for place in index.tolist()]


def identifiers(rng: np.random.Generator, count: int, length: int, upper_hex: bool) -> list[str]:
    """Distinct random identifiers: upper-case hexadecimal, or lower-case letters and digits."""
    alphabet = HEX if upper_hex else LETTERS
    made: dict[str, None] = {}
    while len(made) < count:
        made[plain("".join(rng.choice(alphabet, length).tolist()))] = None
    return list(made)
