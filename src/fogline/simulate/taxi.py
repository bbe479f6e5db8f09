"""Taxi trips, one event at the end of each: 782 taxis, some with two drivers.

A trip starts where the taxi's last trip ended. Distance follows from the two places, time from
distance and the hour's traffic, the fare from distance and time, and the total is the sum of its
parts. About one trip in a hundred has no position (zeros), as real meters send. The fleet is of
fixed size, so at high rates the trips of one taxi overlap in time.
"""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np

from fogline.simulate import series
from fogline.simulate.schema import Columns, FieldSchema, FieldValue, Floats, Ints, StreamKind

TAXIS = 782
TWO_DRIVERS = 0.05
NO_POSITION = 0.01
MISSING = 0.002
MILES_PER_DEGREE = np.array([52.4, 69.0])
CENTRE = np.array([-73.98, 40.75])
# Time zones matter to riders: the rush hours are those of New York.
LONGITUDE = -74.0

FIELDS = (
    FieldSchema("taxi_identifier", "string"),
    FieldSchema("hack_license", "string"),
    FieldSchema("pickup_datetime", "time"),
    FieldSchema("trip_time_in_secs", "second", 0),
    FieldSchema("trip_distance", "meter", 2, fixed=True),
    FieldSchema("pickup_longitude", "lon", 6, fixed=True, as_text=True),
    FieldSchema("pickup_latitude", "lat", 6, fixed=True, as_text=True),
    FieldSchema("dropoff_longitude", "lon", 6, fixed=True, as_text=True),
    FieldSchema("dropoff_latitude", "lat", 6, fixed=True, as_text=True),
    FieldSchema("payment_type", "string"),
    FieldSchema("fare_amount", "dollar", 2, fixed=True),
    FieldSchema("surcharge", "percentage", 2, fixed=True),
    FieldSchema("mta_tax", "percentage", 2, fixed=True),
    FieldSchema("tip_amount", "dollar", 2, fixed=True),
    FieldSchema("tolls_amount", "dollar", 2, fixed=True),
    FieldSchema("total_amount", "dollar", 2, fixed=True),
)


def scatter(seed: int, taxi: Ints, trip: Ints) -> Floats:
    """Four even numbers between 0 and 1 for each trip of each taxi, without any state."""
    start = np.uint64(seed * 0x9E3779B97F4A7C15 % 2**64)
    word = taxi.astype(np.uint64) * np.uint64(0xBF58476D1CE4E5B9) + start
    word = word + trip.astype(np.uint64) * np.uint64(0x94D049BB133111EB)
    rows = []
    for _ in range(4):
        word = word + np.uint64(0x9E3779B97F4A7C15)
        mixed = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        rows.append((mixed ^ (mixed >> np.uint64(31))) / 2.0**64)
    return np.array(rows)


class Taxi:
    """The fleet of one seed; called with events, it gives their trips."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng([seed, 2])
        self.seed = seed
        self.taxis = series.identifiers(rng, TAXIS, 32, True)
        self.drivers = series.identifiers(rng, TAXIS + round(TAXIS * TWO_DRIVERS), 32, True)

    def place(self, taxi: Ints, trip: Ints) -> Floats:
        """Where a taxi is after a trip: mostly Manhattan, now and then far out."""
        a, b, c, d = scatter(self.seed, taxi, trip)
        reach = np.where(d < 0.06, 0.07, 0.018) * np.sqrt(-2 * np.log(1 - a * 0.999))
        angle = 2 * np.pi * b
        offset = np.stack([reach * np.cos(angle) * 0.8, reach * np.sin(angle) * (1 + c)], axis=1)
        return np.asarray(np.round(CENTRE + np.clip(offset, -0.2, 0.2), 6), dtype=np.float64)

    def __call__(self, rng: np.random.Generator, index: Ints, time_ms: Ints) -> Columns:
        taxi, trip = index % TAXIS, index // TAXIS
        size = index.size
        pickup, dropoff = self.place(taxi, trip), self.place(taxi, trip + 1)
        miles = np.hypot(*((dropoff - pickup) * MILES_PER_DEGREE).T) * rng.uniform(1.15, 1.5, size)
        miles = np.round(np.clip(miles, 0.1, 30), 2)
        hour = series.hour_of_day(time_ms, LONGITUDE)
        traffic = series.rush(hour, 8.5) + series.rush(hour, 18)
        mph = (11 + 1.1 * miles) * (1 - 0.35 * np.clip(traffic, 0, 1)) * rng.uniform(0.8, 1.2, size)
        seconds = np.round(np.clip(miles / mph * 3600, 60, 5400))
        fare = 2.5 + 0.5 * np.floor(miles / 0.2) + 0.5 * np.floor(seconds * 0.3 / 60)
        surcharge = np.where((hour >= 20) | (hour < 6), 0.5, np.where(traffic > 0.5, 1.0, 0.0))
        card = rng.random(size) < 0.52
        tip = np.where(card, np.round(fare * rng.choice([0.1, 0.15, 0.2, 0.25], size), 2), 0.0)
        tolls = np.where((miles > 9) & (rng.random(size) < 0.3), 4.8, 0.0)
        total = fare + surcharge + 0.5 + tip + tolls
        lost = rng.random(size) < NO_POSITION
        pickup[lost], dropoff[lost] = 0.0, 0.0
        second_driver = (hour >= 17) & (taxi >= TAXIS - (len(self.drivers) - TAXIS))
        driver = np.where(second_driver, taxi + len(self.drivers) - TAXIS, taxi)

        return {
            "taxi_identifier": series.pick(self.taxis, taxi),
            "hack_license": series.pick(self.drivers, driver),
            "pickup_datetime": clock(time_ms // 1000 - seconds.astype(np.int64)),
            "trip_time_in_secs": series.numbers(seconds, 0),
            "trip_distance": series.numbers(miles, 2),
            "pickup_longitude": series.numbers(pickup[:, 0], 6),
            "pickup_latitude": series.numbers(pickup[:, 1], 6),
            "dropoff_longitude": series.numbers(dropoff[:, 0], 6),
            "dropoff_latitude": series.numbers(dropoff[:, 1], 6),
            "payment_type": ["CRD" if paid else "CSH" for paid in card.tolist()],
            "fare_amount": series.numbers(fare, 2),
            "surcharge": series.numbers(surcharge, 2),
            "mta_tax": series.numbers(np.full(size, 0.5), 2),
            "tip_amount": series.with_gaps(rng, series.numbers(tip, 2), MISSING),
            "tolls_amount": series.numbers(tolls, 2),
            "total_amount": series.numbers(total, 2),
        }


def clock(seconds: Ints) -> list[FieldValue]:
    """`2026-01-01 00:00:00`, in UTC."""
    return [
        datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%d %H:%M:%S")
        for second in seconds.tolist()
    ]


STREAM = StreamKind("taxi", "782 taxis: one event at the end of each trip", "senml", FIELDS, Taxi)
