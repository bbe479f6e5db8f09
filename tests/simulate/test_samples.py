"""Simulated streams look like the public samples: same fields, units, form and ranges.

The samples are not part of the project; without them beside it these tests are skipped.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fogline.simulate import encode, events

SAMPLES = Path(__file__).resolve().parents[3] / "shared" / "data"
FILES = {name: SAMPLES / f"{prefix}_sample_data_senml.csv" for name, prefix in
         [("city", "SYS"), ("taxi", "TAXI"), ("fit", "FIT")]}  # fmt: skip

pytestmark = pytest.mark.skipif(not SAMPLES.is_dir(), reason="the sample streams are not here")


def parse(line: str) -> dict[str, Any]:
    prefix, pack = line.split(",", 1)
    parsed: dict[str, Any] = json.loads(pack)
    assert int(parsed["bt"]) == int(prefix)
    return parsed


@cache
def sample(name: str) -> list[dict[str, Any]]:
    return [parse(line) for line in FILES[name].read_text(encoding="utf-8").splitlines()]


@cache
def simulated(name: str) -> list[dict[str, Any]]:
    """A day of events, so that all hours count."""
    made = events(name, 0.25, 86_400, seed=5)
    return [parse(encode(event, "senml").decode()) for event in made]


def shape(pack: dict[str, Any]) -> list[tuple[str, str, bool]]:
    return [(e["n"], e["u"].strip(), "sv" in e) for e in pack["e"]]


def values(packs: list[dict[str, Any]], field: str) -> np.ndarray:
    texts = [e.get("v", e.get("sv")) for p in packs for e in p["e"] if e["n"] == field]
    return np.array([float(text) for text in texts])


@pytest.mark.parametrize("name", FILES)
def test_fields_units_and_kinds_are_those_of_the_sample(name: str) -> None:
    wanted = shape(sample(name)[0])
    complete = [p for p in simulated(name) if len(p["e"]) == len(wanted)]
    assert len(complete) > 1000
    assert all(shape(pack) == wanted for pack in complete)


@pytest.mark.parametrize(
    ("name", "field", "slack"),
    [
        ("city", "temperature", 0.4),
        ("city", "humidity", 0.2),
        ("city", "light", 0.5),
        ("city", "dust", 0.5),
        ("city", "airquality_raw", 0.2),
        ("taxi", "trip_time_in_secs", 0.6),
        ("taxi", "trip_distance", 0.3),
        ("taxi", "fare_amount", 0.3),
        ("taxi", "total_amount", 0.3),
        ("taxi", "tip_amount", 0.3),
    ],
)
def test_ranges_are_those_of_the_sample(name: str, field: str, slack: float) -> None:
    """The middle 98 % lies in the sample's range; the medians are close for that range."""
    real, made = values(sample(name), field), values(simulated(name), field)
    low, high = np.percentile(real, [0, 100])
    margin = slack * (high - low)
    assert np.percentile(made, 1) >= low - margin
    assert np.percentile(made, 99) <= high + margin
    assert abs(np.median(made) - np.median(real)) <= slack * np.ptp(np.percentile(real, [1, 99]))


def test_taxis_drive_where_the_sample_does() -> None:
    for field in ("pickup_longitude", "pickup_latitude", "dropoff_longitude", "dropoff_latitude"):
        real, made = values(sample("taxi"), field), values(simulated("taxi"), field)
        assert abs(np.median(made) - np.median(real)) < 0.02
        assert 0 < np.mean(made == 0) < 0.03


def test_fit_covers_the_sample() -> None:
    made = simulated("fit")
    for field in [e["n"] for e in made[0]["e"] if e["n"] not in ("subjectId", "label")]:
        real, ours = values(sample("fit"), field), values(made, field)
        assert ours.min() <= real.min(), field
        assert real.max() <= ours.max(), field


def test_sensor_counts_are_those_of_the_sample() -> None:
    for name, field in (("city", "source"), ("taxi", "taxi_identifier")):

        def sensors(packs: list[dict[str, Any]], field: str = field) -> int:
            return len({e["sv"] for p in packs for e in p["e"] if e["n"] == field})

        assert sensors(simulated(name)) == sensors(sample(name))
