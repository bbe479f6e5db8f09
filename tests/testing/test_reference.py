"""The reference, against numbers worked out by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest

from fogline.language.ast import (
    And,
    Binary,
    Call,
    Comparison,
    Condition,
    EventWindow,
    Expression,
    Insight,
    KeyExpression,
    Membership,
    Metric,
    Negate,
    Not,
    Number,
    Options,
    Parameter,
    Provider,
    QueryFile,
    Reference,
    SessionWindow,
    Stream,
    Text,
    TimeWindow,
    WindowClause,
)
from fogline.language.parser import parse
from fogline.testing.reference import ReferenceRecord, evaluate

X, Y = Metric("x"), Metric("y")
DEVICE, CITY = Metric("device"), Metric("city")
S = 1000


def seconds(n: float) -> TimeWindow:
    return TimeWindow(round(n * S))


def call(
    function: str,
    *arguments: Expression,
    window: WindowClause | None = None,
    offset: TimeWindow | None = None,
    parameters: tuple[float, ...] = (),
    condition: Condition | None = None,
    keys: tuple[KeyExpression, ...] = (),
) -> Call:
    return Call(function, arguments, parameters, condition, window, offset, keys)


def stream(name: str = "s", provider: str = "memory", **parameters: str) -> Stream:
    return Stream(name, Provider(provider, tuple(Parameter(k, v) for k, v in parameters.items())))


def at(time: float, **fields: Any) -> ReferenceRecord:
    return {"time": round(time * S), "fields": fields}


def xs(*values: float) -> list[ReferenceRecord]:
    """One record a second from second 0."""
    return [at(i, x=value) for i, value in enumerate(values)]


def run(
    records: list[ReferenceRecord], *insights: Insight, streams: tuple[Stream, ...] = ()
) -> list[Any]:
    return evaluate(QueryFile((*(streams or (stream(),)), *insights)), records)


def of(results: list[Any], name: str = "i") -> list[tuple[float, Any]]:
    """End in seconds and value."""
    return [(r["window"]["end"] / S, r["value"]) for r in results if r["insight"] == name]


def value_of(expression: Expression, records: list[ReferenceRecord], **more: Any) -> Any:
    """The value at second 10 of an insight evaluated every ten seconds."""
    found = run(records, Insight("i", expression, every=seconds(10), **more))
    assert len(found) <= 1
    return found[0]["value"] if found else None


# ── windows and moments ────────────────────────────────────────────────────────────────────────


def test_sliding_windows_first_and_last_included() -> None:
    records = [at(1, x=1), at(5, x=3)]
    found = run(records, Insight("i", call("SUM", X, window=seconds(4)), every=seconds(2)))
    # Second 1 is in the windows that end at 2 and 4, second 5 in those at 6 and 8;
    # the window that ends at 4 is [0, 4), the one at 6 is [2, 6).
    assert of(found) == [(2, 1), (4, 1), (6, 3), (8, 3)]
    assert found[0] == {
        "insight": "i",
        "window": {"start": -2000, "end": 2000},
        "keys": {},
        "value": 1,
        "count": 1,
    }


def test_a_window_begins_at_its_start_and_ends_before_its_end() -> None:
    found = run([at(2, x=7)], Insight("i", call("COUNT", X), every=seconds(2)))
    assert of(found) == [(4, 1)]


def test_an_offset_moves_the_window_back() -> None:
    expression = call("SUM", X, window=seconds(2), offset=seconds(3))
    found = run([at(1, x=5)], Insight("i", expression, every=seconds(1)))
    # Second 1 lies in [E-5, E-3) for E = 5 and 6.
    assert of(found) == [(5, 5), (6, 5)]
    assert found[0]["window"]["start"] == 0


def test_an_aggregate_over_nothing_is_null_and_null_is_not_emitted() -> None:
    late = call("SUM", X, window=seconds(1), offset=seconds(1))
    both = Binary("+", call("SUM", X, window=seconds(1)), late)
    assert of(run(xs(1, 2), Insight("i", both, every=seconds(1)))) == [(2, 3)]


def test_running_aggregates_are_due_where_the_period_holds_a_record() -> None:
    records = [at(0, x=1), at(1, x=2), at(20, x=6)]
    found = run(records, Insight("i", call("RUNNING_AVG", X), every=seconds(5)))
    assert of(found) == [(5, 1.5), (25, 3)]
    assert [(r["window"]["start"], r["count"]) for r in found] == [(0, 2), (20000, 3)]


def test_on_arrival_the_window_trails_each_record() -> None:
    records = [at(0, x=1), at(2, x=2), at(3, x=4)]
    found = run(records, Insight("i", call("SUM", X, window=seconds(2))))
    # (0, 2] leaves the record of second 0 out.
    assert of(found) == [(0, 1), (2, 2), (3, 6)]
    assert found[1]["window"] == {"start": 0, "end": 2000}


def test_on_arrival_ties_go_in_order_of_value_and_do_not_see_each_other_early() -> None:
    records = [at(1, x=5), at(1, x=2)]
    assert of(run(records, Insight("i", call("SUM", X, window=seconds(1))))) == [(1, 2), (1, 7)]
    assert of(run(records, Insight("i", call("DIFF", X)))) == [(1, 3)]


def test_every_n_events() -> None:
    found = run(xs(1, 2, 3, 4, 5), Insight("i", call("SUM", X), every=EventWindow(2)))
    assert of(found) == [(1, 3), (3, 7)]
    assert found[1]["window"] == {"start": 2000, "end": 3000}


def test_a_window_of_events_skips_records_without_a_value() -> None:
    records = [at(0, x=1), at(1, x=2), at(2, y=9), at(3, x=4)]
    expression = call("SUM", X, window=EventWindow(2))
    found = run(records, Insight("i", expression, every=seconds(10)))
    assert of(found) == [(10, 6)]
    assert (found[0]["window"]["start"], found[0]["count"]) == (1000, 2)


def test_a_session_ends_when_nothing_comes_for_the_gap() -> None:
    records = [at(0, x=1), at(4, x=2), at(9, x=4), at(11, x=8)]
    found = run(records, Insight("i", call("SUM", X, window=SessionWindow(5000))))
    # 9 is five seconds after 4: a new session.
    assert of(found) == [(9, 3), (16, 12)]
    assert [r["window"]["start"] for r in found] == [0, 9000]


def test_a_record_at_a_time() -> None:
    expression = Binary("/", X, Y)
    records = [at(1, x=6, y=3, device="a"), at(2, x=6, y=0), at(3, x=6)]
    found = run(records, Insight("i", expression, keys=(DEVICE,)))
    window = {"start": 1000, "end": 1000}
    assert found == [
        {"insight": "i", "window": window, "keys": {"device": "a"}, "value": 2, "count": 1}
    ]


def test_a_bare_metric_is_the_latest_value() -> None:
    records = [at(0, x=1, y=10), at(3, x=2), at(4, y=20)]
    assert value_of(Binary("-", call("SUM", X), Y), records) == 3 - 20
    assert of(run(records, Insight("i", X, every=seconds(2)))) == [(2, 1), (4, 2)]
    trailing = Binary("-", call("SUM", X, window=seconds(2)), Y)
    # At 3: 2 - 10 (the latest y so far); at 4: (2, 4] holds the 2 of second 3.
    assert of(run(records, Insight("i", trailing))) == [(0, -9), (3, -8), (4, -18)]


# ── functions ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("function", "parameters", "values", "expected"),
    [
        ("AVG", (), (1, 2, 6), 3),
        ("ARITHMETIC_MEAN", (), (1, 2, 6), 3),
        ("COUNT", (), (1, 2, 6), 3),
        ("SUM", (), (1, 2, 6), 9),
        ("MIN", (), (3, -2, 6), -2),
        ("MAX", (), (3, -2, 6), 6),
        ("VARIANCE", (), (1, 2, 6), 7),  # (4 + 1 + 9) / 2
        ("STD", (), (1, 3, 5), 2),  # (4 + 0 + 4) / 2 = 4
        ("SDEV", (), (1,), None),
        ("MEDIAN", (), (5, 1, 2, 4), 3),
        ("PERCENTILE", (25.0,), (10, 20, 30), 15),  # place 0.5
        ("PERCENTILE", (100.0,), (10, 20, 30), 30),
        ("MODE", (), (3, 1, 3, 1, 2), 1),
        ("GEOMETRIC_MEAN", (), (1, 4, 16), 4),
        ("GEOMETRIC_MEAN", (), (1, 0), None),
        ("SLOPE", (), (1, 3, 5), 2),
        ("SLOPE", (), (1,), None),
        ("DISTINCT", (), (1, 3, 1), 2),
        ("FIRST", (), (7, 1, 9), 7),
        ("LAST", (), (7, 1, 9), 9),
        ("TOP_K", (2.0,), (7, 1, 9), [9, 7]),
        ("RUNNING_COUNT", (), (7, 1, 9), 3),
        ("RUNNING_MIN", (), (7, 1, 9), 1),
        ("RUNNING_MAX", (), (7, 1, 9), 9),
        ("RUNNING_STD", (), (1, 3, 5), 2),
        ("DIFF", (), (7, 1, 9), 8),
        ("DIFF", (), (7,), None),
        ("EWMA", (0.5,), (4, 8, 2), 4),  # 4, 6, 4
        # x = 2, p = 1; then p = 2, k = 2/3, x = 2 + 2/3 * 3 = 4, p = 2/3;
        # then p = 5/3, k = 5/8, x = 4 + 5/8 * 8 = 9.
        ("KALMAN", (1.0, 1.0), (2, 5, 12), 9),
    ],
)
def test_functions(
    function: str, parameters: tuple[float, ...], values: tuple[float, ...], expected: Any
) -> None:
    found = value_of(call(function, X, parameters=parameters), xs(*values))
    assert found == pytest.approx(expected) if expected is not None else found is None


def test_correlation_needs_spread_in_both() -> None:
    rising = [at(0, x=1, y=2), at(1, x=2, y=4), at(2, x=9), at(3, x=3, y=6)]
    assert value_of(call("CORRELATION", X, Y), rising) == pytest.approx(1)
    assert value_of(call("CORRELATION", X, Y), [at(0, x=1, y=2), at(1, x=2, y=2)]) is None
    # Means 2 and 2: products (-1)(-1) + (0)(1) + (1)(0) = 1, spreads 2 and 2; 1 / sqrt(2 * 2).
    mixed = [at(0, x=1, y=1), at(1, x=2, y=3), at(2, x=3, y=2)]
    assert value_of(call("CORRELATION", X, Y), mixed) == pytest.approx(0.5)


def test_first_and_last_of_equal_times() -> None:
    records = [at(1, x=5), at(1, x=2)]
    assert value_of(call("FIRST", X), records) == 2
    assert value_of(call("LAST", X), records) == 5


def test_pewma() -> None:
    # Second record: no spread yet, so a value off the mean is as unlikely as can be, and the past
    # weighs one half: mean (2 + 4) / 2 = 3, variance 0.5 * 0.5 * 2² = 1.
    assert value_of(call("PEWMA", X, parameters=(0.5,)), xs(2, 4)) == 3
    # Third: z = 7 / 1, p = 9e-12: the past weighs one half again.
    found = value_of(call("PEWMA", X, parameters=(0.5,)), xs(2, 4, 10))
    assert found == pytest.approx(6.5, abs=1e-9)
    # A likely third value, z = 0.5: p = exp(-1/8) / sqrt(2 pi) = 0.35207, the past weighs 0.32397.
    found = value_of(call("PEWMA", X, parameters=(0.5,)), xs(2, 4, 3.5))
    assert found == pytest.approx(0.32397 * 3 + 0.67603 * 3.5, abs=1e-4)


def test_pewma_of_equal_values() -> None:
    assert value_of(call("PEWMA", X, parameters=(0.3,)), xs(2.5, 2.5, 2.5)) == 2.5


def test_histogram() -> None:
    found = value_of(call("HISTOGRAM", X, parameters=(2.0,)), xs(0, 1, 2, 4))
    assert found == [{"from": 0, "to": 2, "count": 2}, {"from": 2, "to": 4, "count": 2}]
    found = value_of(call("HISTOGRAM", X, parameters=(2.0,)), xs(3, 3))
    assert found == [{"from": 3, "to": 3, "count": 2}]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        # Buckets of 10 s in the window [0, 40), forecast one step ahead.
        ((None, None, None, 10), 10),
        ((None, None, 10, 14), 18),  # level 14, trend 4
        ((None, 10, 14, None), 22),  # level 14 + 4, trend 4
        ((None, 10, None, 14), 16),  # two steps from 10 to 14: trend 2
        # Expected 18; level (20 + 18) / 2 = 19; trend 0.3 * 5 + 0.7 * 4 = 4.3.
        ((None, 10, 14, 20), 23.3),
    ],
)
def test_forecast(values: tuple[float | None, ...], expected: float) -> None:
    records = [at(10 * i, x=x) for i, x in enumerate(values) if x is not None]
    expression = call("FORECAST", X, window=seconds(40), parameters=(1.0,))
    found = dict(of(run(records, Insight("i", expression, every=seconds(10)))))
    assert found[40] == pytest.approx(expected)


def test_a_bucket_of_a_forecast_counts_by_its_mean() -> None:
    # [0, 2) holds 10, [2, 4) holds 12 and 16: level 14, trend 4, two steps ahead 22.
    expression = call("FORECAST", X, window=seconds(4), parameters=(2.0,))
    records = [at(0, x=10), at(2, x=12), at(3.999, x=16)]
    found = run(records, Insight("i", expression, every=seconds(2)))
    assert (found[1]["window"], found[1]["value"]) == ({"start": 0, "end": 4000}, 22)


def test_outliers_and_their_company() -> None:
    records = xs(1, 1.5, 2, 9, 9.5, 30)
    options = Options(algorithm="pmcod", neighbours=2, radius=1.0)
    found = value_of(call("OUTLIER_DETECTION", X), records, options=options)
    described = [(o["value"], o["neighbours"], o["kind"], o["size"]) for o in found]
    assert described == [(9, 1, "cluster", 2), (9.5, 1, "cluster", 2), (30, 0, "isolated", 1)]
    assert found[0]["time"] == "1970-01-01T00:00:03.000Z"
    assert value_of(call("OUTLIER_DETECTOR", X), records[:3], options=options) is None


def test_an_outlier_beside_others_that_are_none_is_isolated() -> None:
    # Of 1, 1.5, 2 and 3 with a radius of 1 only 3 has fewer than two others near it: the 2.
    options = Options(neighbours=2, radius=1.0)
    found = value_of(call("OUTLIER_DETECTION", X), xs(1, 1.5, 2, 3), options=options)
    assert [(o["value"], o["neighbours"], o["kind"], o["size"]) for o in found] == [
        (3, 1, "isolated", 1)
    ]


def test_per_record_functions() -> None:
    records = [at(0, x=-9, lat=57.64911, lon=10.40744)]
    place = Call("GEOHASH", (Metric("lat"), Metric("lon")), (11.0,))
    assert of(run(records, Insight("i", place))) == [(0, "u4pruydqqvj")]
    assert of(run(records, Insight("i", Call("SQRT", (X,))))) == []
    inside = call("SUM", Binary("+", Call("SQR", (X,)), Call("ABS", (X,))))
    assert value_of(inside, records) == 90
    found = run(records, Insight("i", call("COUNT", X), keys=(place,), every=seconds(1)))
    assert found[0]["keys"] == {"geohash": "u4pruydqqvj"}


# ── values, keys and conditions ────────────────────────────────────────────────────────────────


def test_values_are_read_as_numbers() -> None:
    records = [at(i, x=x) for i, x in enumerate(["2.5", True, None, "off", math.nan, 4])]
    assert value_of(call("SUM", X), records) == 7.5
    assert value_of(call("AVG", X), records) == 2.5


@pytest.mark.parametrize(
    ("operator", "expected"), [("+", -5), ("-", -9), ("*", -14), ("/", -3.5), ("%", -1)]
)
def test_arithmetic(operator: str, expected: float) -> None:
    assert value_of(Binary(operator, X, Y), [at(0, x=-7, y=2)]) == expected
    assert value_of(Negate(Binary(operator, X, Y)), [at(0, x=-7, y=2)]) == -expected


def test_nothing_can_be_divided_by_zero() -> None:
    assert value_of(Binary("/", X, Y), [at(0, x=1, y=0)]) is None
    assert value_of(Binary("%", X, Y), [at(0, x=1, y=0)]) is None


def test_keys_are_strings_unless_a_schema_says_otherwise() -> None:
    records = [at(0, x=1, device=12.0), at(0, x=2, device="12"), at(0, x=4)]
    insight = Insight("i", call("SUM", X), keys=(DEVICE,), every=seconds(1))
    found = [(r["keys"]["device"], r["value"]) for r in run(records, insight)]
    assert found == [("12", 3), (None, 4)]
    typed = (stream(schema="x double, device long"),)
    found = [(r["keys"]["device"], r["value"]) for r in run(records, insight, streams=typed)]
    assert found == [(12, 3), (None, 4)]


def test_the_condition_of_a_call_filters_its_records() -> None:
    records = [at(0, x=1, city="a", y=1), at(1, x=2, city="b", y=5), at(2, x=4, city="b")]
    in_b = Comparison("==", CITY, Metric("b"))
    assert value_of(call("SUM", X, condition=in_b), records) == 6
    assert value_of(call("SUM", X, condition=Not(in_b)), records) == 1
    high = Comparison(">", Y, Number(2))
    assert value_of(call("SUM", X, condition=And(in_b, high)), records) == 2
    # Where y is missing, "not y > 2" is neither true nor false.
    assert value_of(call("SUM", X, condition=Not(high)), records) == 1
    listed = Membership(CITY, (Text("a"), Text("c")))
    assert value_of(call("SUM", X, condition=listed), records) == 1


def test_the_condition_of_an_insight_filters_what_it_emits() -> None:
    def kept(when: Condition) -> list[tuple[float, Any]]:
        records = [at(0, x=1, device="a"), at(2, x=5, device="a", y=1)]
        insight = Insight("i", call("SUM", X), (DEVICE,), when, seconds(2))
        return of(run(records, insight))

    assert kept(Comparison(">", None, Number(3))) == [(4, 5)]
    assert kept(Comparison(">=", None, call("RUNNING_MAX", X))) == [(2, 1), (4, 5)]
    assert kept(Comparison(">", Y, Number(0))) == [(4, 5)]
    assert kept(Comparison("==", DEVICE, Text("b"))) == []
    assert kept(Comparison("==", DEVICE, Metric("a"))) == [(2, 1), (4, 5)]
    assert kept(Not(Membership(None, (Number(1),)))) == [(4, 5)]


def test_the_count_is_the_largest_behind_any_aggregate() -> None:
    expression = Binary("+", call("SUM", X, window=seconds(1)), call("RUNNING_COUNT", X))
    found = run(xs(1, 1, 1), Insight("i", expression, every=seconds(1)))
    assert [r["count"] for r in found] == [1, 2, 3]


# ── streams ────────────────────────────────────────────────────────────────────────────────────


def test_a_metric_comes_from_the_streams_it_names() -> None:
    records: list[ReferenceRecord] = [
        {"time": 0, "fields": {"x": 1}, "stream": "a"},
        {"time": 0, "fields": {"x": 2}, "stream": "b"},
        {"time": 0, "fields": {"x": 4}},
    ]
    streams = (stream("a"), stream("b"))

    def total(*names: str) -> Any:
        insight = Insight("i", call("SUM", Metric("x", names)), every=seconds(1))
        return run(records, insight, streams=streams)[0]["value"]

    assert (total("a"), total("b"), total("a", "b"), total()) == (5, 6, 7, 7)


def test_records_that_name_their_metric() -> None:
    records = [at(0, m="cpu", v=3), at(1, m="disk", v=5), at(2, cpu=7)]
    streams = (stream(metric="m", value="v"),)
    insight = Insight("i", call("SUM", Metric("cpu")), every=seconds(10))
    assert run(records, insight, streams=streams)[0]["value"] == 10
    whole = Insight("i", call("SUM", Metric("s")), every=seconds(10))
    assert run(records, whole, streams=streams)[0]["value"] == 8


def test_a_storage_fabric_stream_filters_its_records() -> None:
    records = [
        at(0, metricID="robot_in", entityType="POD", value=1),
        at(0, metricID="robot_out", entityType="POD", value=2),
        at(0, metricID="robot_in", entityType="NODE", value=4),
        at(0, metricID="walker_in", entityType="POD", value=8),
    ]
    streams = (stream("robot", "storageFabric", metricID="robot_%", entityType="POD"),)

    def total(name: str) -> Any:
        insight = Insight("i", call("SUM", Metric(name)), every=seconds(1))
        return run(records, insight, streams=streams)[0]["value"]

    assert (total("robot"), total("robot_in")) == (3, 1)


def test_a_stream_of_whole_records_can_be_counted() -> None:
    insight = Insight("i", call("COUNT", Metric("s")), every=seconds(10))
    assert of(run([at(0, x=1), at(1, y=1)], insight)) == [(10, 2)]


# ── aggregates of aggregates, references ───────────────────────────────────────────────────────


def by_device() -> list[ReferenceRecord]:
    return [
        at(0, x=1, device="a", city="n"),
        at(0, x=5, device="b", city="n"),
        at(1, x=2, device="a", city="n"),
        at(1, x=3, device="c", city="m"),
    ]


def test_an_aggregate_of_an_aggregate() -> None:
    inner = call("SUM", X, keys=(DEVICE,))
    assert value_of(call("MAX", inner), by_device()) == 5
    assert value_of(call("COUNT", inner), by_device()) == 3


def test_top_k_of_an_aggregate_names_the_keys() -> None:
    inner = call("SUM", X, keys=(CITY, DEVICE))
    found = value_of(call("TOP_K", inner, parameters=(2.0,)), by_device())
    # a and c both have 3; {"city":"m",… comes before {"city":"n",….
    assert found == [
        {"keys": {"city": "n", "device": "b"}, "value": 5},
        {"keys": {"city": "m", "device": "c"}, "value": 3},
    ]


def test_the_inner_aggregate_keeps_the_outer_keys() -> None:
    expression = call("MAX", call("SUM", X, keys=(DEVICE,)))
    insight = Insight("i", expression, keys=(CITY,), every=seconds(10))
    found = [(r["keys"]["city"], r["value"]) for r in run(by_device(), insight)]
    assert found == [("m", 3), ("n", 5)]


def test_the_outer_window_spans_several_inner_results() -> None:
    expression = call("COUNT", call("SUM", X), window=seconds(4))
    found = of(run(xs(1, 1, 1), Insight("i", expression, every=seconds(2))))
    # Sums at 2 and 4 are records just before; [-2, 2) one, [0, 4) two, [2, 6) one at 4.
    assert found == [(2, 1), (4, 2), (6, 1)]


def test_a_bare_reference_stands_for_the_expression() -> None:
    a = Insight("a", call("SUM", X), (DEVICE,), Comparison(">", None, Number(1)), seconds(1))
    b = Insight("b", call("COUNT", X), (DEVICE,), None, seconds(1))
    found = run(by_device(), a, b, Insight("i", Binary("/", Metric("a"), Reference("b"))))
    # The sum 1 of device a at second 1 fails a's condition, so there is nothing to divide.
    assert [
        (r["window"]["end"], r["keys"]["device"], r["value"]) for r in found if r["insight"] == "i"
    ] == [
        (1000, "b", 5),
        (2000, "a", 2),
        (2000, "c", 3),
    ]


def test_an_aggregate_over_the_results_of_an_insight() -> None:
    a = Insight("a", call("SUM", X), (DEVICE,), None, seconds(1))
    mean = Insight("i", call("AVG", Metric("a")), every=seconds(10))
    found = [r for r in run(by_device(), a, mean) if r["insight"] == "i"]
    assert [(r["keys"]["device"], r["value"], r["count"]) for r in found] == [
        ("a", 1.5, 2),
        ("b", 5, 1),
        ("c", 3, 1),
    ]
    by_none = Insight("i", call("MAX", Reference("a")), keys=(CITY,), every=seconds(10))
    assert of(run(by_device(), a, by_none)) == [(10, 5)]


def test_results_on_arrival_are_records_at_their_own_time() -> None:
    a = Insight("a", call("SUM", X, window=EventWindow(2)))
    last = Insight("i", call("LAST", Metric("a")), every=seconds(1))
    assert of(run(xs(1, 2, 3), a, last)) == [(1, 1), (2, 3), (3, 5)]


def test_a_bare_reference_beside_every_is_the_latest_result() -> None:
    a = Insight("a", call("SUM", X), every=seconds(1))
    found = run(xs(1, 2, 3), a, Insight("i", Negate(Metric("a")), every=seconds(2)))
    assert of(found) == [(2, -2), (4, -3)]


def test_results_come_sorted() -> None:
    names = ("b", "a")
    insights = [Insight(n, call("SUM", X), (DEVICE,), None, seconds(1)) for n in names]
    found = run(list(reversed(by_device())), *insights)
    order = [(r["window"]["end"], r["insight"], r["keys"]["device"]) for r in found]
    assert order == sorted(order)
    assert len(order) == 8


# ── from text ──────────────────────────────────────────────────────────────────────────────────


def test_the_notification_query() -> None:
    text = """
    event_stream = STREAM FROM storageFabric (metricID="dangerous_event");
    notif = COMPUTE (
        SUM("dangerous_event" FROM (event_stream), 10 SECONDS) BY node_id WHEN >= 5.0
    ) EVERY 5 SECONDS;
    """
    records = [
        at(1, metricID="dangerous_event", value=2, node_id="n1"),
        at(2, metricID="dangerous_event", value=4, node_id="n2"),
        at(6, metricID="dangerous_event", value=3, node_id="n1"),
        at(7, metricID="other", value=9, node_id="n2"),
    ]
    # n1 has 2 in [-5, 5), 5 in [0, 10), 3 in [5, 15); n2 never has more than 4.
    assert evaluate(parse(text), records) == [
        {
            "insight": "notif",
            "window": {"start": 0, "end": 10_000},
            "keys": {"node_id": "n1"},
            "value": 5,
            "count": 2,
        }
    ]


def test_the_abnormal_temperature_query() -> None:
    text = """
    temperature = STREAM FROM storageFabric (metricID="temperature");
    abnormal = COMPUTE AVG(temperature, 2 SECONDS) WHEN >
        RUNNING_MEAN(temperature) + 1*RUNNING_STD(temperature)
    """
    records = [at(i, metricID="temperature", value=v) for i, v in enumerate([10, 10, 10, 10, 20])]
    # At second 4 the window (2, 4] holds 10 and 20: 15. All five: mean 12, deviation
    # sqrt((4 * 4 + 64) / 4) = 4.47, together 16.47: not above.
    # A second 20 makes the average 20; mean 13.33, deviation sqrt(133.33 / 5) = 5.16: above.
    assert of(evaluate(parse(text), records), "abnormal") == []
    records.append(at(5, metricID="temperature", value=20))
    found = evaluate(parse(text), records)
    assert of(found, "abnormal") == [(5, 20)]
    assert (found[0]["count"], found[0]["window"]["start"]) == (6, 3000)


@pytest.mark.site
def test_top_devices_of_a_city() -> None:
    text = """
    s: stream from memory(name="s");
    i = compute top_k[1](sum(x, 10 s) by city, device) by city every 10 s;
    """
    found = evaluate(parse(text), by_device())
    assert [(r["keys"], r["value"]) for r in found] == [
        ({"city": "m"}, [{"keys": {"city": "m", "device": "c"}, "value": 3}]),
        ({"city": "n"}, [{"keys": {"city": "n", "device": "b"}, "value": 5}]),
    ]
