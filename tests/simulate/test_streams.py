"""Streams repeat themselves exactly, have the events asked for, and behave like sensors."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fogline.common.errors import UsageError
from fogline.simulate import PATTERNS, STREAMS, Event, Run, events
from fogline.simulate.streams import BATCH_SIZE, DEFAULT_START_MS

ENTITIES = {"city": 788, "taxi": 782, "fit": 10, "traffic": 480, "grid": 1000}


def numbers(made: list[Event], field: str) -> np.ndarray:
    return np.array([e.fields[field] for e in made if e.fields[field] is not None], dtype=float)


@pytest.mark.parametrize("name", STREAMS)
def test_same_seed_same_events_other_seed_other_events(name: str) -> None:
    first = list(events(name, 500, 4, seed=7))
    assert first == list(events(name, 500, 4, seed=7))
    other = list(events(name, 500, 4, seed=8))
    assert [e.fields for e in first] != [e.fields for e in other]
    assert [e.time_ms for e in first] == [e.time_ms for e in other]


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_pattern_has_the_count_and_stays_in_the_run(name: str, pattern: str) -> None:
    times = [e.time_ms for e in events(name, 333.3, 30, pattern, seed=1)]
    assert len(times) == round(333.3 * 30)
    assert times == sorted(times)
    assert times[0] >= DEFAULT_START_MS
    assert times[-1] < DEFAULT_START_MS + 30_000


@given(
    rate=st.floats(0.01, 2000),
    seconds=st.floats(0.5, 300),
    pattern=st.sampled_from(sorted(PATTERNS)),
)
def test_counts_hold_for_any_rate(rate: float, seconds: float, pattern: str) -> None:
    run = Run("traffic", min(rate, 20_000 / seconds), seconds, pattern)
    times = [e.time_ms for e in events(run.name, run.rate, run.seconds, pattern)]
    assert len(times) == run.count
    assert times == sorted(times)
    assert all(0 <= t - run.start_ms <= seconds * 1000 for t in times)


def rates(pattern: str) -> list[float]:
    """Events in each twentieth of a four-cycle run, relative to the mean."""
    times = np.array([e.time_ms for e in events("traffic", 500, 40, pattern)]) - DEFAULT_START_MS
    counts, _ = np.histogram(times, bins=20, range=(0, 40_000))
    return list(counts / counts.mean())


def test_patterns_have_their_shapes() -> None:
    assert max(rates("uniform")) - min(rates("uniform")) < 0.02
    assert max(rates("burst")) > 2.5
    assert min(rates("burst")) < 0.6
    saw = rates("sawtooth")
    assert saw[0] < saw[1] < saw[2] < saw[3] < saw[4] > 1.4
    assert saw[5] < 0.6
    normal = rates("normal")
    assert np.argmax(normal) in (9, 10)
    assert normal[0] < 0.5 > normal[-1]
    two = rates("bimodal")
    assert two[5] > 1.5 < two[14]
    assert two[10] < 0.8


@pytest.mark.parametrize(("name", "count"), ENTITIES.items())
def test_every_sensor_reports(name: str, count: int) -> None:
    first = STREAMS[name].fields[0].name
    assert len({e.fields[first] for e in events(name, 1000, 2)}) == count


@pytest.mark.parametrize("name", STREAMS)
def test_events_have_the_fields_of_their_stream_in_order(name: str) -> None:
    names = [field.name for field in STREAMS[name].fields]
    made = list(events(name, BATCH_SIZE + 100, 1))
    assert len(made) == BATCH_SIZE + 100
    assert all(list(e.fields) == names for e in made)
    assert any(value is None for e in made for value in e.fields.values())
    assert all(e.fields[names[0]] for e in made)


def test_city_has_days_and_nights() -> None:
    made = list(events("city", 0.5, 86_400))
    by_sensor: dict[object, list[float]] = defaultdict(list)
    for event in made:
        by_sensor[event.fields["source"]].append(float(event.fields["light"] or 0))
    dark_and_bright = [min(v) == 0 and max(v) > 100 for v in by_sensor.values()]
    assert sum(dark_and_bright) > 0.9 * len(by_sensor)


def test_taxi_trips_add_up() -> None:
    last_dropoff: dict[object, tuple[object, object]] = {}
    chained = 0
    for event in events("taxi", 100, 60, seed=3):
        trip = event.fields
        if trip["tip_amount"] is not None:
            parts = ("fare_amount", "surcharge", "mta_tax", "tip_amount", "tolls_amount")
            assert float(trip["total_amount"] or 0) == pytest.approx(
                sum(float(trip[part] or 0) for part in parts), abs=0.005
            )
        pickup = datetime.fromisoformat(str(trip["pickup_datetime"])).replace(tzinfo=UTC)
        took = event.time_ms // 1000 - pickup.timestamp()
        assert took == trip["trip_time_in_secs"]
        assert 1 < float(trip["trip_distance"] or 0) / (took / 3600) < 70
        where = (trip["pickup_longitude"], trip["pickup_latitude"])
        before = last_dropoff.get(trip["taxi_identifier"])
        if before is not None and where != (0.0, 0.0) and before != (0.0, 0.0):
            assert where == before
            chained += 1
        last_dropoff[trip["taxi_identifier"]] = (
            trip["dropoff_longitude"],
            trip["dropoff_latitude"],
        )
    assert chained > 4000


def test_fit_motion_follows_the_activity() -> None:
    made = list(events("fit", 50, 800))
    rest = [e for e in made if e.fields["label"] == 3]
    run = [e for e in made if e.fields["label"] == 11]
    assert {e.fields["label"] for e in made} == set(range(13))
    assert numbers(run, "acc_ankle_x").std() > 5 * numbers(rest, "acc_ankle_x").std()


def test_traffic_slows_down_in_the_rush_hour() -> None:
    made = list(events("traffic", 0.5, 86_400))

    def mean_speed(hour: int) -> float:
        begin = DEFAULT_START_MS + hour * 3_600_000
        return float(numbers([e for e in made if 0 <= e.time_ms - begin < 3.6e6], "speed").mean())

    assert mean_speed(17) < 0.93 * mean_speed(3)
    assert numbers(made, "speed").min() >= 3
    assert numbers(made, "occupancy").max() <= 100


def test_grid_power_is_voltage_times_current_and_energy_grows() -> None:
    counters: dict[object, float] = {}
    for event in events("grid", 100, 3600 * 0.05, seed=2):
        reading = event.fields
        energy = float(reading["energy_kwh"] or 0)
        assert energy >= counters.get(reading["meter"], 0)
        counters[reading["meter"]] = energy
        assert 49.9 < float(reading["frequency"] or 0) < 50.1
        if reading["voltage"] is not None and reading["current"] is not None:
            power = float(reading["voltage"]) * float(reading["current"]) * 0.95 / 1000
            assert reading["power_kw"] == pytest.approx(power, abs=0.001)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("sea", 1, 1), "sea"),
        (("city", 0, 1), "rate"),
        (("city", 1, -1), "seconds"),
        (("city", float("nan"), 1), "rate"),
        (("city", 1, 1, "wavy"), "wavy"),
        (("city", 1, 1, "uniform", -1), "seed"),
    ],
)
def test_a_wrong_run_is_refused(arguments: tuple[object, ...], word: str) -> None:
    with pytest.raises(UsageError, match=word):
        Run(*arguments)  # type: ignore[arg-type]
