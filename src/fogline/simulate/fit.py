"""Fitness sensors: ten people with accelerometers, gyroscopes, magnetometers and an ECG.

Each person goes through twelve activities and rest (label 0 to 12), a minute each, in an order of
their own. Motion and heart rate follow the activity; gravity stays in the accelerometers.
"""

from __future__ import annotations

import numpy as np

from fogline.simulate import series
from fogline.simulate.schema import Columns, FieldSchema, FieldValue, Floats, Ints, StreamKind

PEOPLE = 10
ACTIVITIES = 13
ACTIVITY_MS = 60_000
MISSING, SPIKED = 0.0005, 0.0005

# How strongly each activity moves the body, how often a second, and the heart rate it brings.
MOTION = np.array([0.05, 0.05, 0.05, 0.02, 1.0, 1.6, 1.2, 0.9, 1.1, 2.0, 2.6, 3.2, 3.6])
STEPS = np.array([0.2, 0.1, 0.1, 0.1, 1.7, 1.5, 0.6, 0.5, 0.5, 1.2, 2.4, 2.8, 2.2])
HEART = np.array([72, 75, 66, 60, 95, 112, 90, 92, 98, 118, 140, 155, 150]) / 60.0

# Unit, resting value on each axis and response to motion of every sensor.
SENSORS = {
    "acc_chest": ("m/s2", (-9.3, -0.7, 2.1), 1.5),
    "acc_ankle": ("m/s2", (-0.4, -9.8, -1.6), 3.0),
    "gyro_ankle": ("deg/s", (-0.15, -0.17, 0.76), 0.4),
    "magnetometer_ankle": ("tesla", (-0.4, 0.3, 0.15), 2.0),
    "acc_arm": ("m/s2", (-2.1, -9.6, -0.6), 2.5),
    "gyro_arm": ("deg/s", (-0.69, -0.28, -0.43), 0.4),
    "magnetometer_arm": ("tesla", (0.2, 0.45, -1.08), 2.0),
}
CHANNELS = tuple(f"{sensor}_{axis}" for sensor in SENSORS for axis in "xyz")


def _fields() -> tuple[FieldSchema, ...]:
    motion = {
        f"{s}_{axis}": FieldSchema(f"{s}_{axis}", SENSORS[s][0], 5)
        for s in SENSORS
        for axis in "xyz"
    }
    chest = [motion.pop(f"acc_chest_{axis}") for axis in "xyz"]
    ecg = [FieldSchema(f"ecg_lead_{lead}", "mV", 6) for lead in (1, 2)]
    return (
        FieldSchema("subjectId", "string"),
        *chest,
        *ecg,
        *motion.values(),
        FieldSchema("label", "number", 0),
    )


FIELDS = _fields()


def heartbeat(phase: Floats) -> Floats:
    """One beat of an ECG over the phase 0 to 1: P wave, sharp R peak, T wave."""
    return np.asarray(
        0.12 * np.exp(-(((phase - 0.2) / 0.03) ** 2))
        + 1.1 * np.exp(-(((phase - 0.38) / 0.012) ** 2))
        - 0.2 * np.exp(-(((phase - 0.42) / 0.015) ** 2))
        + 0.3 * np.exp(-(((phase - 0.65) / 0.05) ** 2)),
        dtype=np.float64,
    )


class Fit:
    """The people of one seed; called with events, it gives their readings."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng([seed, 3])
        self.names = [f"subject{number}" for number in range(1, PEOPLE + 1)]
        self.order = np.array([rng.permutation(ACTIVITIES) for _ in range(PEOPLE)])
        self.phase = rng.random((PEOPLE, len(CHANNELS)))
        rest = np.array([axis for _, axes, _ in SENSORS.values() for axis in axes])
        self.rest = rest + rng.normal(0, 0.05, (PEOPLE, len(CHANNELS)))
        self.response = np.repeat([response for _, _, response in SENSORS.values()], 3)
        self.fitness = rng.uniform(0.9, 1.1, PEOPLE)

    def __call__(self, rng: np.random.Generator, index: Ints, time_ms: Ints) -> Columns:
        person = index % PEOPLE
        seconds = time_ms % series.DAY_MS / 1000.0
        label = self.order[person, time_ms // ACTIVITY_MS % ACTIVITIES]
        beat = (seconds * HEART[label] * self.fitness[person]) % 1.0
        columns: Columns = {"subjectId": series.pick(self.names, person)}
        for place, channel in enumerate(CHANNELS):
            turn = seconds * STEPS[label] + self.phase[person, place]
            moved = MOTION[label] * np.sin(2 * np.pi * turn) + rng.normal(0, 0.08, index.size)
            value = self.rest[person, place] + self.response[place] * moved
            columns[channel] = self._make_values(rng, value, 5)
        for lead, gain in ((1, 1.0), (2, 0.8)):
            value = gain * heartbeat(beat) + rng.normal(0, 0.03, index.size)
            columns[f"ecg_lead_{lead}"] = self._make_values(rng, value, 6)
        columns["label"] = series.numbers(label.astype(np.float64), 0)
        return {field.name: columns[field.name] for field in FIELDS}

    def _make_values(
        self, rng: np.random.Generator, value: Floats, decimals: int
    ) -> list[FieldValue]:
        spiked = series.spikes(rng, value, SPIKED, 2.0)
        return series.with_gaps(rng, series.numbers(spiked, decimals), MISSING)


STREAM = StreamKind("fit", "ten people: 24 body sensors and the activity", "senml", FIELDS, Fit)
