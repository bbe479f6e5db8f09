"""Road traffic: detectors of 480 lane segments on twelve roads, watched by six sites.

Speed falls and occupancy rises as the flow nears what a lane can carry, twice a day. Some segments
have an incident for a quarter of an hour: traffic there crawls.
"""

from __future__ import annotations

import numpy as np

from fogline.simulate import series
from fogline.simulate.schema import Columns, FieldSchema, Floats, Ints, StreamKind

ROADS, SEGMENTS_PER_ROAD, LANES, SITES = 12, 20, 2, 6
DETECTORS = ROADS * SEGMENTS_PER_ROAD * LANES
INCIDENT_MS, INCIDENT_SHARE = 900_000, 0.01
MISSING = 0.002
VEHICLES = 100_000

FIELDS = (
    FieldSchema("segment", "string"),
    FieldSchema("road", "string"),
    FieldSchema("lane", "number", 0),
    FieldSchema("vehicle", "string"),
    FieldSchema("speed", "km/h", 1),
    FieldSchema("occupancy", "per", 1),
    FieldSchema("count", "number", 0),
    FieldSchema("site", "string"),
)


class Traffic:
    """The detectors of one seed; called with events, it gives their readings."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng([seed, 4])
        detector = rng.permutation(DETECTORS)
        road, rest = np.divmod(detector, SEGMENTS_PER_ROAD * LANES)
        segment, lane = np.divmod(rest, LANES)
        self.seed = seed
        self.lane = (lane + 1).astype(np.int64)
        self.road = [f"road-{number + 1:02d}" for number in road.tolist()]
        places = zip(self.road, segment.tolist(), self.lane.tolist(), strict=True)
        self.segment = [f"{name}-s{part + 1:02d}-l{track}" for name, part, track in places]
        self.site = [f"site-{number % SITES + 1}" for number in road.tolist()]
        self.limit = rng.choice([50.0, 80.0, 100.0, 120.0], ROADS)[road]
        self.demand = rng.uniform(0.45, 1.0, ROADS)[road] * rng.uniform(0.85, 1.15, DETECTORS)
        self.phase = rng.random(DETECTORS)

    def __call__(self, rng: np.random.Generator, index: Ints, time_ms: Ints) -> Columns:
        detector = index % DETECTORS
        size = index.size
        hour = series.hour_of_day(time_ms)
        daily = 0.25 + 0.65 * series.rush(hour, 8, 1.2) + 0.7 * series.rush(hour, 17.5, 1.5)
        daily = daily + 0.2 * (series.wave(hour, 13) + 1) / 2
        wander = 1 + 0.15 * series.drift(time_ms, self.phase[detector], 11)
        load = np.clip(self.demand[detector] * daily * wander, 0.02, 1.2)
        slowed = 1 / (1 + 0.6 * load**4) * np.where(self.incident(detector, time_ms), 0.25, 1.0)
        speed = np.clip(self.limit[detector] * slowed * rng.normal(1, 0.06, size), 3, 180)
        occupancy = np.clip(22 * load / slowed + rng.normal(0, 1, size), 0, 100)
        vehicles = rng.poisson(load * 15)
        vehicle = rng.integers(0, VEHICLES, size).tolist()
        return {
            "segment": series.pick(self.segment, detector),
            "road": series.pick(self.road, detector),
            "lane": list(self.lane[detector].tolist()),
            "vehicle": [f"v{number:05d}" for number in vehicle],
            "speed": series.with_gaps(rng, series.numbers(speed, 1), MISSING),
            "occupancy": series.with_gaps(rng, series.numbers(occupancy, 1), MISSING),
            "count": list(vehicles.tolist()),
            "site": series.pick(self.site, detector),
        }

    def incident(self, detector: Ints, time_ms: Ints) -> Floats:
        """Whether a segment has an incident now: the same answer for a quarter of an hour."""
        draw = np.sin(detector * 12.9898 + time_ms // INCIDENT_MS * 78.233 + self.seed % 1000)
        return np.asarray(draw * 43758.5453 % 1.0 < INCIDENT_SHARE)


STREAM = StreamKind(
    "traffic", "480 road detectors: speed, occupancy, count", "json", FIELDS, Traffic
)
