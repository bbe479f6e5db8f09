"""Smart-grid meters: 1000 households and shops on 40 feeders of eight substations.

Power is voltage times current times a power factor; energy only ever grows; voltage sags with the
load of the feeder; all meters see the same grid frequency.
"""

from __future__ import annotations

import numpy as np

from fogline.simulate import series
from fogline.simulate.schema import Columns, FieldSchema, Floats, Ints, StreamKind

METERS, FEEDERS, SUBSTATIONS = 1000, 40, 8
MISSING, SPIKED = 0.001, 0.001
POWER_FACTOR = 0.95
INSTALLED_MS = 1_735_689_600_000  # 2025-01-01T00:00:00Z

FIELDS = (
    FieldSchema("meter", "string"),
    FieldSchema("feeder", "string"),
    FieldSchema("substation", "string"),
    FieldSchema("voltage", "V", 1),
    FieldSchema("current", "A", 2),
    FieldSchema("power_kw", "kW", 3),
    FieldSchema("energy_kwh", "kWh", 4),
    FieldSchema("frequency", "Hz", 3),
)


class Grid:
    """The meters of one seed; called with events, it gives their readings."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng([seed, 5])
        feeder = rng.permutation(METERS) % FEEDERS
        self.meter = [f"m{number:07d}" for number in rng.choice(9_999_999, METERS, False).tolist()]
        self.feeder = [f"feeder-{number + 1:02d}" for number in feeder.tolist()]
        self.substation = [f"substation-{n % SUBSTATIONS + 1}" for n in feeder.tolist()]
        self.mean_kw = rng.lognormal(-0.4, 0.7, METERS)
        self.peak = rng.choice([13.0, 19.5], METERS, p=[0.3, 0.7])
        self.energy = rng.uniform(500, 40_000, METERS)
        self.phase = rng.random(METERS)
        self.weakness = rng.uniform(0.5, 3.0, FEEDERS)[feeder]

    def __call__(self, rng: np.random.Generator, index: Ints, time_ms: Ints) -> Columns:
        meter = index % METERS
        size = index.size
        hour = series.hour_of_day(time_ms)
        daily = 1 + 0.5 * np.cos((hour - self.peak[meter]) * (2 * np.pi / 24))
        wander = 1 + 0.3 * series.drift(time_ms, self.phase[meter], 23)
        load_kw = self.mean_kw[meter] * daily * wander * rng.lognormal(0, 0.08, size)
        load_kw = series.spikes(rng, load_kw, SPIKED, 4)
        sag = self.weakness[meter] * daily
        voltage = np.round(231.5 - sag + rng.normal(0, 0.6, size), 1)
        current = np.round(load_kw * 1000 / (voltage * POWER_FACTOR), 2)
        swing = 0.02 * np.sin(2 * np.pi * time_ms / 37_000) + 0.01 * np.sin(time_ms / 4_100)
        frequency = 50 + swing + rng.normal(0, 0.002, size)
        return {
            "meter": series.pick(self.meter, meter),
            "feeder": series.pick(self.feeder, meter),
            "substation": series.pick(self.substation, meter),
            "voltage": series.with_gaps(rng, series.numbers(voltage, 1), MISSING),
            "current": series.with_gaps(rng, series.numbers(current, 2), MISSING),
            "power_kw": series.numbers(voltage * current * POWER_FACTOR / 1000, 3),
            "energy_kwh": series.numbers(self.counter(meter, time_ms), 4),
            "frequency": series.numbers(frequency, 3),
        }

    def counter(self, meter: Ints, time_ms: Ints) -> Floats:
        """Energy since the meter came: the integral of the mean daily load, so it never falls."""
        hours = (time_ms - INSTALLED_MS) / 3_600_000
        turn = 2 * np.pi / 24
        bend = np.sin((hours - self.peak[meter]) * turn) + np.sin(self.peak[meter] * turn)
        used = self.mean_kw[meter] * (hours + 0.5 * bend / turn)
        return np.asarray(self.energy[meter] + used, dtype=np.float64)


STREAM = StreamKind(
    "grid", "1000 smart meters: voltage, current, power, energy", "json", FIELDS, Grid
)
