"""The second stage over history: every function and node kind against plain Python."""

from __future__ import annotations

import json
import math
import random
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

import pytest
from pyspark.errors.exceptions.captured import IllegalArgumentException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

pytestmark = pytest.mark.spark

NAN = float("nan")
BASE = 1_700_000_000_000
PANE = 1000
SCHEMA = (
    "channel int, key string, pane bigint, nums array<double>, lists array<array<double>>, "
    "blobs array<binary>, pass string, _time timestamp"
)
PARTIALS = [
    {"kind": "sum", "at": 0},
    {"kind": "sum", "at": 1},
    {"kind": "min", "at": 2},
    {"kind": "max", "at": 3},
    {"kind": "moments", "at": 4},
    {"kind": "comoments", "at": 7},
    {"kind": "timed", "at": 13},
    {"kind": "first", "at": 20},
    {"kind": "last", "at": 22},
    {"kind": "sum", "at": 24},
    {"kind": "values", "at": 0},
]
CHANNEL = {"partials": PARTIALS, "events": {"at": 1, "inputs": 2}}

Record = tuple[float, float, float]
Evaluation = tuple[int, int, list[int], list[Any]]


def finite(values: Iterable[float]) -> list[float]:
    return [value for value in values if not math.isnan(value)]


def comoments(pairs: list[tuple[float, float]]) -> list[float]:
    if not pairs:
        return [0.0] * 6
    a, b = (statistics.fmean(side) for side in zip(*pairs, strict=True))
    return [
        float(len(pairs)),
        a,
        b,
        sum((x - a) ** 2 for x, _ in pairs),
        sum((y - b) ** 2 for _, y in pairs),
        sum((x - a) * (y - b) for x, y in pairs),
    ]


def nums(records: list[Record]) -> list[float]:
    xs = finite(a for _, a, _ in records)
    timed = [(t, a) for t, a, _ in records if not math.isnan(a)]
    origin = float(records[0][0] // PANE * PANE)
    moments = [0.0, 0.0, 0.0]
    if xs:
        moments = [float(len(xs)), statistics.fmean(xs), statistics.pvariance(xs) * len(xs)]
    first = min(timed, default=(NAN, NAN))
    last = max(timed, default=(NAN, NAN))
    logs = [math.log(x) for x in xs if x > 0]
    return [
        sum(xs) if xs else NAN,
        float(len(xs)),
        min(xs, default=NAN),
        max(xs, default=NAN),
        *moments,
        *comoments([(a, b) for _, a, b in records if not math.isnan(a + b)]),
        *comoments([((t - origin) / 1000, a) for t, a in timed]),
        origin,
        *first,
        *last,
        sum(logs) if logs else NAN,
    ]


def pane_rows(records: dict[str, list[Record]], rng: random.Random) -> list[tuple[Any, ...]]:
    """Rows as the first stage makes them; lists are in no order."""
    rows = []
    for key, mine in records.items():
        panes = defaultdict(list)
        for record in mine:
            panes[int(record[0] // PANE) * PANE].append(record)
        for pane, inside in panes.items():
            rng.shuffle(inside)
            events = [list(column) for column in zip(*inside, strict=True)]
            lists = [finite(a for _, a, _ in inside), *events]
            rows.append((0, key, pane, nums(inside), lists, [], None, None))
    rng.shuffle(rows)
    return rows


def random_records(rng: random.Random, size: int, seconds: int, whole: bool = True) -> list[Record]:
    """Bursts, gaps, ties and missing values."""
    records = []
    for _ in range(size):
        where = rng.choice([rng.uniform(0, seconds), rng.gauss(seconds / 3, 3)])
        time = BASE + round(min(max(where, 0), seconds) * 1000, 0 if whole else 3)
        a = NAN if rng.random() < 0.1 else round(rng.gauss(10, 4), 1)
        b = NAN if rng.random() < 0.1 else rng.gauss(a if a == a else 0, 1)
        records.append((float(time), a, b))
    return sorted(records, key=lambda r: (r[0], math.isnan(r[1]), r[1], math.isnan(r[2]), r[2]))


def aggregate(function: str, window: dict[str, Any], **rest: Any) -> dict[str, Any]:
    return {"function": function, "window": window, "offset": rest.pop("offset", 0), **rest}


def over(length: int) -> dict[str, Any]:
    return {"kind": "time", "length": length}


RUNNING = {"kind": "running"}


def node(kind: str, aggregates: list[dict[str, Any]], **rest: Any) -> dict[str, Any]:
    return {"id": rest.pop("id", 0), "channel": 0, "kind": kind, "aggregates": aggregates, **rest}


def spec(*nodes: dict[str, Any], channel: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"paneMs": PANE, "channels": [channel or CHANNEL], "nodes": list(nodes)}


def stage(frame: DataFrame, what: dict[str, Any]) -> DataFrame:
    spark = frame.sparkSession
    made = spark._jvm.io.fogline.stage.KeyedStage.apply(frame._jdf, json.dumps(what))
    return DataFrame(made, spark)


def unpack(rows: Iterable[Any]) -> dict[tuple[int, str], list[Evaluation]]:
    """Evaluations by node and key, in the order they came; texts stand where there are any."""
    found: dict[tuple[int, str], list[Evaluation]] = defaultdict(list)
    for row in rows:
        width = len(row["values"]) // len(row["ends"])
        for i, end in enumerate(row["ends"]):
            cells = row["values"][i * width : (i + 1) * width]
            if row["texts"]:
                texts = row["texts"][i * width : (i + 1) * width]
                cells = [c if t is None else t for c, t in zip(cells, texts, strict=True)]
            counts = row["counts"][i * width : (i + 1) * width]
            found[row["node"], row["key"]].append((row["starts"][i], end, counts, cells))
    return found


def run(
    spark: SparkSession, rows: list[tuple[Any, ...]], what: dict[str, Any]
) -> dict[tuple[int, str], list[Evaluation]]:
    return unpack(stage(spark.createDataFrame(rows, SCHEMA), what).collect())


def same(found: list[Evaluation], expected: list[Evaluation]) -> None:
    assert [e[:3] for e in found] == [e[:3] for e in expected]
    for mine, theirs in zip(found, expected, strict=True):
        assert mine[3] == pytest.approx(theirs[3], rel=1e-9, abs=1e-9, nan_ok=True), mine[:2]


# --- plain formulas over a list of records ----------------------------------------------------


def values(records: list[Record], column: int = 1) -> list[float]:
    return finite(record[column] for record in records)


def geometric(xs: list[float]) -> float:
    return statistics.geometric_mean(xs) if min(xs) > 0 else NAN


def paired(records: list[Record]) -> tuple[list[float], list[float]]:
    pairs = [(a, b) for _, a, b in records if not math.isnan(a + b)]
    return [a for a, _ in pairs], [b for _, b in pairs]


def correlation(records: list[Record]) -> float:
    a, b = paired(records)
    return statistics.correlation(a, b) if len(set(a)) > 1 and len(set(b)) > 1 else NAN


def slope(records: list[Record]) -> float:
    pairs = [((t - BASE) / 1000, a) for t, a, _ in records if not math.isnan(a)]
    ts = [t for t, _ in pairs]
    return (
        statistics.linear_regression(ts, [a for _, a in pairs]).slope if len(set(ts)) > 1 else NAN
    )


def percentile(xs: list[float], percent: float) -> float:
    ordered = sorted(xs)
    position = (len(ordered) - 1) * percent / 100
    low = math.floor(position)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (position - low) * (ordered[high] - ordered[low])


def mode(xs: list[float]) -> float:
    return min(statistics.multimode(xs))


def plain(function: Callable[[list[float]], float]) -> Callable[[list[Record]], float]:
    return lambda records: function(values(records)) if values(records) else NAN


def spread(function: Callable[[list[float]], float]) -> Callable[[list[Record]], float]:
    return lambda records: function(values(records)) if len(values(records)) > 1 else NAN


FORMULAS: dict[str, Callable[[list[Record]], float]] = {
    "COUNT": plain(len),
    "SUM": plain(math.fsum),
    "AVG": plain(statistics.fmean),
    "MIN": plain(min),
    "MAX": plain(max),
    "VARIANCE": spread(statistics.variance),
    "SDEV": spread(statistics.stdev),
    "GEOMETRIC_MEAN": plain(geometric),
    "FIRST": lambda rs: min(((t, a) for t, a, _ in rs if a == a), default=(NAN, NAN))[1],
    "LAST": lambda rs: max(((t, a) for t, a, _ in rs if a == a), default=(NAN, NAN))[1],
    "CORRELATION": correlation,
    "SLOPE": slope,
    "MEDIAN": plain(statistics.median),
    "PERCENTILE": plain(lambda xs: percentile(xs, 90)),
    "MODE": plain(mode),
}
FROM_PANES: dict[str, list[int]] = {
    "COUNT": [1], "SUM": [0, 1], "AVG": [0, 1], "MIN": [2, 1], "MAX": [3, 1], "VARIANCE": [4],
    "SDEV": [4],
    "GEOMETRIC_MEAN": [9, 1, 2], "FIRST": [7, 1], "LAST": [8, 1], "CORRELATION": [5], "SLOPE": [6],
    "MEDIAN": [10], "PERCENTILE": [10], "MODE": [10],
}  # fmt: skip


def parameters(function: str) -> list[float]:
    return [90] if function == "PERCENTILE" else []


def from_panes(function: str, window: dict[str, Any], offset: int = 0) -> dict[str, Any]:
    return aggregate(
        function,
        window,
        offset=offset,
        partials=FROM_PANES[function],
        parameters=parameters(function),
    )


def from_records(function: str, window: dict[str, Any], offset: int = 0) -> dict[str, Any]:
    inputs = [0, 1] if function == "CORRELATION" else [0]
    return aggregate(
        function, window, offset=offset, inputs=inputs, parameters=parameters(function)
    )


def records_of(function: str, records: list[Record]) -> int:
    return len(paired(records)[0]) if function == "CORRELATION" else len(values(records))


# --- every ------------------------------------------------------------------------------------


def expect_every(
    records: list[Record], every: int, windows: list[tuple[str, int, int]]
) -> list[Evaluation]:
    reach = max(length + offset for _, length, offset in windows)
    first = int(records[0][0] // every) * every
    found: list[Evaluation] = []
    for end in range(first, int(records[-1][0]) + reach + 2 * every, every):
        inside = [
            [r for r in records if end - offset - length <= r[0] < end - offset]
            for _, length, offset in windows
        ]
        counts = [records_of(f, rs) for (f, _, _), rs in zip(windows, inside, strict=True)]
        if any(counts):
            cells = [FORMULAS[f](rs) for (f, _, _), rs in zip(windows, inside, strict=True)]
            found.append((end - reach, end, counts, cells))
    return found


@pytest.mark.parametrize("feed", [from_panes, from_records])
def test_every_function_in_sliding_windows(
    spark: SparkSession, feed: Callable[..., dict[str, Any]]
) -> None:
    rng = random.Random(7)
    records = {key: random_records(rng, 120, 70) for key in ("a", "b")}
    shapes = [
        (6000, 0, 2000),
        (5000, 0, 5000),
        (2000, 3000, 7000),
        (60000, 1000, 1000),
        (4000, 2000, 3000),
    ]
    nodes = [
        node("every", [feed(f, over(length), offset) for f in FORMULAS], id=i, everyMs=every)
        for i, (length, offset, every) in enumerate(shapes)
    ]
    mixed = [("AVG", 6000, 0), ("COUNT", 60000, 2000), ("MEDIAN", 3000, 1000)]
    nodes.append(node("every", [feed(f, over(n), o) for f, n, o in mixed], id=9, everyMs=3000))
    found = run(spark, pane_rows(records, rng), spec(*nodes))
    for key, mine in records.items():
        for i, (length, offset, every) in enumerate(shapes):
            same(found[i, key], expect_every(mine, every, [(f, length, offset) for f in FORMULAS]))
        same(found[9, key], expect_every(mine, 3000, mixed))


# --- arrival ----------------------------------------------------------------------------------


def expect_arrival(
    records: list[Record], windows: list[tuple[str, int, int]], n: int = 1
) -> list[Evaluation]:
    reach = max(length + offset for _, length, offset in windows)
    seen = [r for r in records if not (math.isnan(r[1]) and math.isnan(r[2]))]
    found: list[Evaluation] = []
    for i in range(n - 1, len(seen), n):
        t = seen[i][0]
        inside = [
            [r for r in seen[: i + 1] if t - offset - length < r[0] <= t - offset]
            for _, length, offset in windows
        ]
        counts = [records_of(f, rs) for (f, _, _), rs in zip(windows, inside, strict=True)]
        if any(counts):
            cells = [FORMULAS[f](rs) for (f, _, _), rs in zip(windows, inside, strict=True)]
            end = (round(t * 1000) + 1) // 1000
            found.append((end - reach, end, counts, cells))
    return found


def test_every_arrival(spark: SparkSession) -> None:
    rng = random.Random(11)
    records = {key: random_records(rng, 120, 60, whole=False) for key in ("a", "b")}
    windows = [(f, 5000, 0) for f in FORMULAS] + [("AVG", 3000, 1500), ("MEDIAN", 3000, 1500)]
    aggregates = [from_records(f, over(length), offset) for f, length, offset in windows]
    nodes = [node("arrival", aggregates, id=0), node("arrival", aggregates, id=1, everyEvents=5)]
    found = run(spark, pane_rows(records, rng), spec(*nodes))
    for key, mine in records.items():
        same(found[0, key], expect_arrival(mine, windows))
        same(found[1, key], expect_arrival(mine, windows, 5))


def test_count_windows(spark: SparkSession) -> None:
    rng = random.Random(13)
    mine = random_records(rng, 120, 60)
    names = [f for f in FORMULAS if f != "CORRELATION"]
    last = {"kind": "events", "length": 7}
    aggregates = [from_records(f, last) for f in names]
    nodes = [node("arrival", aggregates, id=0), node("every", aggregates, id=1, everyMs=4000)]
    found = run(spark, pane_rows({"k": mine}, rng), spec(*nodes))

    def evaluation(end: float, seen: list[Record]) -> Evaluation:
        tail = [r for r in seen if not math.isnan(r[1])][-7:]
        counts = [len(tail)] * len(names)
        return int(tail[0][0]), int(end), counts, [FORMULAS[f](tail) for f in names]

    with_a = [r for r in mine if not math.isnan(r[1])]
    same(found[0, "k"], [evaluation(r[0], with_a[: i + 1]) for i, r in enumerate(with_a)])
    ends = sorted({(int(r[0]) // 4000 + 1) * 4000 for r in with_a})
    same(found[1, "k"], [evaluation(end, [r for r in with_a if r[0] < end]) for end in ends])


# --- sessions ---------------------------------------------------------------------------------


def test_sessions(spark: SparkSession) -> None:
    rng = random.Random(17)
    records = {key: random_records(rng, 60, 120, whole=False) for key in ("a", "b")}
    gap = {"kind": "session", "length": 2500}
    aggregates = [from_records(f, gap) for f in FORMULAS]
    aggregates.append(aggregate("RUNNING_COUNT", RUNNING, inputs=[0]))
    found = run(spark, pane_rows(records, rng), spec(node("session", aggregates)))
    for key, mine in records.items():
        sessions: list[list[Record]] = []
        for record in mine:
            if math.isnan(record[1]) and math.isnan(record[2]):
                continue
            if not sessions or record[0] - sessions[-1][-1][0] >= 2500:
                sessions.append([])
            sessions[-1].append(record)
        expected = []
        running = 0
        for session in sessions:
            running += len(values(session))
            if running:
                cells = [FORMULAS[f](session) for f in FORMULAS] + [running]
                start, end = math.floor(session[0][0]), math.floor(session[-1][0] + 2500)
                counts = [records_of(f, session) for f in FORMULAS]
                expected.append((start, end, [*counts, running], cells))
        same(found[0, key], expected)


# --- running ----------------------------------------------------------------------------------


def filters(xs: list[float]) -> list[list[float]]:
    """DIFF, EWMA(0.3), PEWMA(0.2, 0.5) and KALMAN(0.1, 2) after each value."""
    steps = []
    previous, ewma, mean, variance, x, p = NAN, 0.0, 0.0, 0.0, 0.0, 0.0
    for i, z in enumerate(xs):
        if i == 0:
            ewma, mean, variance, x, p = z, z, 0.0, z, 2.0
        else:
            ewma = 0.3 * z + 0.7 * ewma
            likely = 1 / math.sqrt(2 * math.pi)
            if variance > 0:
                likely *= math.exp(-((z - mean) ** 2) / variance / 2)
            elif z != mean:
                likely = 0.0
            past = (1 - 0.2) * (1 - 0.5 * likely)
            square = past * (variance + mean**2) + (1 - past) * z**2
            mean = past * mean + (1 - past) * z
            variance = max(0.0, square - mean**2)
            p += 0.1
            gain = p / (p + 2)
            x, p = x + gain * (z - x), p * (1 - gain)
        steps.append([z - previous, ewma, mean, x])
        previous = z
    return steps


def test_running(spark: SparkSession) -> None:
    rng = random.Random(19)
    mine = random_records(rng, 150, 90)
    ordered = [("DIFF", []), ("EWMA", [0.3]), ("PEWMA", [0.2, 0.5]), ("KALMAN", [0.1, 2])]
    aggregates = [aggregate(f, RUNNING, inputs=[0], parameters=p) for f, p in ordered]
    plain_ones = {"RUNNING_COUNT": "COUNT", "RUNNING_MEAN": "AVG", "RUNNING_MIN": "MIN",
                  "RUNNING_MAX": "MAX",
                  "RUNNING_SDEV": "SDEV"}  # fmt: skip
    by_pane = [aggregate(f, RUNNING, partials=FROM_PANES[name]) for f, name in plain_ones.items()]
    by_record = [aggregate(f, RUNNING, inputs=[0]) for f in plain_ones]
    nodes = [
        node("every", aggregates + by_pane, id=0, everyMs=4000),
        node("arrival", aggregates + by_record, id=1),
        node("every", [*by_pane, from_panes("AVG", over(3000))], id=2, everyMs=3000),
    ]
    found = run(spark, pane_rows({"k": mine}, rng), spec(*nodes))
    with_a = [r for r in mine if not math.isnan(r[1])]
    steps = filters([r[1] for r in with_a])

    def cells(seen: list[Record]) -> list[float]:
        return steps[len(seen) - 1] + [FORMULAS[name](seen) for name in plain_ones.values()]

    ends = sorted({(int(r[0]) // 4000 + 1) * 4000 for r in with_a})
    before = [[r for r in with_a if r[0] < end] for end in ends]
    same(
        found[0, "k"],
        [(end - 4000, end, [len(rs)] * 9, cells(rs)) for end, rs in zip(ends, before, strict=True)],
    )
    arrivals = [
        (int(r[0]), int(r[0]), [i + 1] * 9, cells(with_a[: i + 1])) for i, r in enumerate(with_a)
    ]
    same(found[1, "k"], arrivals)
    for start, end, counts, mixed in found[2, "k"]:
        seen = [r for r in with_a if r[0] < end]
        window = [r for r in seen if r[0] >= end - 3000]
        assert (start, counts) == (end - 3000, [len(seen)] * 5 + [len(window)])
        assert mixed == pytest.approx(
            [*cells(seen)[4:], FORMULAS["AVG"](window)], rel=1e-9, nan_ok=True
        )


# --- lists as texts ---------------------------------------------------------------------------


def events_rows(times: list[int], xs: list[float]) -> list[tuple[Any, ...]]:
    return pane_rows(
        {"k": [(float(BASE + t), float(x), NAN) for t, x in zip(times, xs, strict=True)]},
        random.Random(1),
    )


def test_top_k_and_histogram(spark: SparkSession) -> None:
    rows = events_rows([0, 100, 200, 1100, 1200, 5000], [1, 0.1, 1e-7, 3.5, 1e22, 2])
    nodes = [
        node(
            "every",
            [aggregate("TOP_K", over(2000), partials=[10], parameters=[4])],
            id=0,
            everyMs=2000,
        ),
        node(
            "every",
            [aggregate("HISTOGRAM", over(1000), inputs=[0], parameters=[2])],
            id=1,
            everyMs=1000,
        ),
        node("arrival", [aggregate("TOP_K", over(2000), inputs=[0], parameters=[1])], id=2),
    ]
    found = run(spark, rows, spec(*nodes))
    assert [e[3] for e in found[0, "k"]] == [["[1E+22, 3.5, 1, 0.1]"], ["[2]"]]
    assert [json.loads(e[3][0]) for e in found[1, "k"]] == [
        [{"from": 1e-7, "to": 0.50000005, "count": 2}, {"from": 0.50000005, "to": 1, "count": 1}],
        [{"from": 3.5, "to": 5e21, "count": 1}, {"from": 5e21, "to": 1e22, "count": 1}],
        [{"from": 2, "to": 2, "count": 1}],
    ]
    assert [e[3] for e in found[2, "k"]] == [
        ["[1]"],
        ["[1]"],
        ["[1]"],
        ["[3.5]"],
        ["[1E+22]"],
        ["[2]"],
    ]


def test_top_k_says_whose_value_it_is(spark: SparkSession) -> None:
    whose = [("b", 2.0), ("a", 2.0), ("c", 1.0), ("d", 3.0)]
    rows = [
        (0, "{}", BASE, [], [[v], [float(BASE)], [v]], [], json.dumps({"city": c}), None)
        for c, v in whose
    ]
    channel = {
        "partials": [{"kind": "values", "at": 0}],
        "events": {"at": 1, "inputs": 1},
        "labels": True,
    }
    nodes = [
        node(
            "every",
            [aggregate("TOP_K", over(1000), **feed, parameters=[3], labels=True)],
            id=i,
            everyMs=1000,
        )
        for i, feed in enumerate([{"partials": [0]}, {"inputs": [0]}])
    ]
    found = run(spark, rows, spec(*nodes, channel=channel))
    expected = [{"keys": {"city": c}, "value": v} for c, v in (("d", 3), ("a", 2), ("b", 2))]
    assert json.loads(found[0, "{}"][0][3][0]) == expected
    assert json.loads(found[1, "{}"][0][3][0]) == expected


def outliers(window: list[tuple[int, float]], k: int, r: float) -> list[dict[str, Any]]:
    near = [sum(abs(x - y) <= r for _, y in window) - 1 for _, x in window]
    out = [(t, x, n) for (t, x), n in zip(window, near, strict=True) if n < k]
    found = []
    for t, x, n in out:
        cluster = {x}
        while grown := {y for _, y, _ in out if any(abs(y - z) <= r for z in cluster)} - cluster:
            cluster |= grown
        size = sum(y in cluster for _, y, _ in out)
        found.append(
            {
                "time": t,
                "value": x,
                "neighbours": n,
                "kind": "cluster" if size > 1 else "isolated",
                "size": size,
            }
        )
    return sorted(found, key=lambda o: (o["time"], o["value"]))


@pytest.mark.parametrize("kind", ["every", "arrival", "session"])
def test_outliers(spark: SparkSession, kind: str) -> None:
    rng = random.Random(23)
    times = sorted(rng.randrange(40_000) for _ in range(160))
    xs = [float(rng.choice([rng.randint(0, 8), rng.randint(0, 60)])) for _ in times]
    window = {"kind": "session", "length": 700} if kind == "session" else over(10_000)
    what = aggregate("OUTLIER_DETECTION", window, inputs=[0], parameters=[3, 1])
    found = run(spark, events_rows(times, xs), spec(node(kind, [what], everyMs=5000)))
    records = sorted(zip(times, xs, strict=True))
    assert len(found[0, "k"]) > 2
    ties = {t for t in times if times.count(t) > 1}
    for start, end, (count,), (text,) in found[0, "k"]:
        low, high = start - BASE, end - BASE
        if kind == "arrival" and high in ties:
            continue
        inside = [
            (t, x)
            for t, x in records
            if (low < t <= high if kind == "arrival" else low <= t < high)
        ]
        assert count == len(inside)
        expected = outliers(inside, 3, 1)
        got = json.loads(text) if text else []
        for each in got:
            each["time"] = iso_ms(each["time"]) - BASE
        assert got == expected


def iso_ms(text: str) -> int:
    return round(datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1000)


# --- the rest ---------------------------------------------------------------------------------


def holt(means: list[float], steps: int, alpha: float, beta: float) -> float:
    while means and math.isnan(means[0]):
        means = means[1:]
    level, trend, started, first = means[0], 0.0, False, 0
    for i, mean in enumerate(means[1:], 1):
        if math.isnan(mean):
            level += trend
        elif not started:
            level, trend, started = mean, (mean - level) / (i - first), True
        else:
            before = level
            level = alpha * mean + (1 - alpha) * (level + trend)
            trend = beta * (level - before) + (1 - beta) * trend
    return level + steps * trend


@pytest.mark.parametrize("kind", ["every", "arrival"])
def test_forecast(spark: SparkSession, kind: str) -> None:
    rng = random.Random(29)
    times = sorted(rng.sample(range(0, 60_000, 7), 60))
    xs = [t / 1000 + rng.random() for t in times]
    feed = {"partials": [0, 1]} if kind == "every" else {"inputs": [0]}
    what = aggregate("FORECAST", over(12_000), **feed, parameters=[3, 2000, 0.4, 0.2])
    found = run(spark, events_rows(times, xs), spec(node(kind, [what], everyMs=4000)))
    records = list(zip(times, xs, strict=True))
    for _, end, (count,), (value,) in found[0, "k"]:
        buckets: list[list[float]] = [[] for _ in range(6)]
        for t, x in records:
            ago = (end - BASE - t) if kind == "arrival" else (end - BASE - 1 - t)
            if 0 <= ago < 12_000:
                buckets[5 - ago // 2000].append(x)
        assert count == sum(map(len, buckets))
        means = [statistics.fmean(b) if b else NAN for b in buckets]
        assert value == pytest.approx(holt(means, 3, 0.4, 0.2), rel=1e-9)


def test_distinct_is_a_sketch_over_panes_and_exact_over_records(spark: SparkSession) -> None:
    events = [(BASE + i * 10, float(i % 700)) for i in range(3000)]
    frame = spark.createDataFrame(events, "t bigint, v double")
    panes = frame.groupBy((F.col("t") - F.col("t") % PANE).alias("pane")).agg(
        F.array(F.count("v").cast("double")).alias("nums"),
        F.array(F.collect_list(F.col("t").cast("double")), F.collect_list("v")).alias("lists"),
        F.array(F.hll_sketch_agg(F.col("v").cast("string"))).alias("blobs"),
    )
    rows = panes.selectExpr(
        "0 as channel", "'k' as key", "pane", "nums", "lists", "blobs",
        "cast(null as string) as pass",
        "timestamp_millis(pane) as _time",
    )  # fmt: skip
    channel = {
        "partials": [{"kind": "hll", "at": 0}, {"kind": "sum", "at": 0}],
        "events": {"at": 0, "inputs": 1},
    }
    what = [aggregate("DISTINCT", over(n), partials=[0, 1]) for n in (5000, 10_000)]
    what.append(aggregate("DISTINCT", over(10_000), inputs=[0]))
    found = unpack(stage(rows, spec(node("every", what, everyMs=1000), channel=channel)).collect())
    for _, end, counts, (short, long, exact) in found[0, "k"]:
        inside = [[v for t, v in events if end - n <= t < end] for n in (5000, 10_000)]
        assert counts == [len(inside[0]), len(inside[1]), len(inside[1])]
        assert exact == len(set(inside[1]))
        for estimate, window in zip((short, long), inside, strict=True):
            size = len(set(window))
            assert (estimate == estimate) == bool(window)
            assert not window or estimate == pytest.approx(size, rel=0.05)


def test_sampled_estimates(spark: SparkSession) -> None:
    rng = random.Random(31)
    kept = [(rng.gauss(20, 5), rng.choice([0.2, 0.5])) for _ in range(400)]
    sums = [
        sum(1 / p for _, p in kept),
        sum(x / p for x, p in kept),
        sum((1 - p) / p**2 for _, p in kept),
        sum((1 - p) / p**2 * x for x, p in kept),
        sum((1 - p) / p**2 * x * x for x, p in kept),
        float(len(kept)),
    ]
    channel = {"partials": [{"kind": "sum", "at": i} for i in range(6)]}
    names = [(f"HT_{f}{part}", p) for f in ("AVG", "SUM", "COUNT")
             for part, p in (("", []), ("_ERROR", [2]), ("_FRACTION", [2, 0.01]))]  # fmt: skip
    what = [aggregate(f, over(1000), partials=list(range(6)), parameters=p) for f, p in names]
    rows = [(0, "k", BASE, sums, [], [], None, None)]
    (_, _, counts, cells) = run(
        spark, rows, spec(node("every", what, everyMs=1000), channel=channel)
    )[0, "k"][0]
    assert counts == [400] * 9
    mean = sums[1] / sums[0]
    variances = [
        sum((1 - p) / p**2 * (x - mean) ** 2 for x, p in kept) / sums[0] ** 2,
        sums[4],
        sums[2],
    ]
    fraction = 400 / sums[0]
    for i, (value, variance) in enumerate(zip([mean, sums[1], sums[0]], variances, strict=True)):
        whole = variance * fraction / (1 - fraction)
        wanted = [value, 2 * math.sqrt(variance) / value, whole / (whole + (0.01 * value / 2) ** 2)]
        assert cells[3 * i : 3 * i + 3] == pytest.approx(wanted, rel=1e-9)


def test_finished_results_are_handed_through(spark: SparkSession) -> None:
    rows = [(-1, "x", 0, None, None, None, '{"done": 1}', None)]
    got = stage(
        spark.createDataFrame(rows, SCHEMA),
        spec(node("every", [from_panes("SUM", over(1000))], everyMs=1000)),
    )
    (row,) = got.collect()
    assert (row["node"], row["key"], row["pass"], row["ends"]) == (-1, "x", '{"done": 1}', [])


def test_a_day_every_second_jumps_over_empty_time(spark: SparkSession) -> None:
    day = 86_400_000
    rows = events_rows([0, 3000, 10 * 365 * day], [1, 2, 3])
    found = run(spark, rows, spec(node("every", [from_panes("SUM", over(day))], everyMs=PANE)))
    ends = [e[1] - BASE for e in found[0, "k"]]
    assert len(ends) == 3 + day // PANE + day // PANE
    assert found[0, "k"][5][3] == [3]
    assert found[0, "k"][-1][3] == [3]


AVG = {
    "function": "AVG",
    "partials": [0, 1],
    "window": {"kind": "time", "length": 2000},
    "offset": 0,
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"function": "AVERAGE"}, "unknown function 'AVERAGE'"),
        ({"partials": [0, 99]}, "partials has the index 99, but its channel has only 11"),
        ({"partials": [-1, 1]}, "partials has the index -1"),
        ({"partials": [], "inputs": [2]}, "inputs has the index 2, but its channel has only 2"),
        ({"partials": []}, "neither partials nor inputs"),
        ({"partials": [0]}, "AVG needs 1 inputs or 2 partials"),
        ({"partials": [2, 1]}, "partial 0 must be SUM, not MIN"),
        ({"window": {"kind": "time", "length": 1500}}, "does not fit panes of 1000 ms"),
        ({"window": {"kind": "time", "length": -5}}, "'length' must be a positive integer"),
        ({"window": {"kind": "hopping", "length": 5}}, "unknown window kind 'hopping'"),
        ({"window": {"kind": "session", "length": 5}}, "is not possible in a node 'EVERY'"),
        ({"offset": -1}, "the offset is negative"),
        ({"parameters": [1]}, "AVG takes 0 parameters, not 1"),
        ({"parameters": ["a"]}, "parameter 0 is not a number"),
        (
            {"function": "PERCENTILE", "partials": [10], "parameters": [101]},
            "101.0 is not in 0.0 to 100.0",
        ),
        ({"function": "MEDIAN", "partials": [0]}, "needs one input or one VALUES partial"),
        (
            {"function": "OUTLIER_DETECTION", "partials": [10], "parameters": [3, 1]},
            "works on an input of the events",
        ),
        (
            {"function": "KALMAN", "partials": [], "inputs": [0], "parameters": [1, 1]},
            "is not possible",
        ),
        (
            {"function": "MEDIAN", "partials": [10], "window": {"kind": "running"}},
            "is not possible",
        ),
        ({"function": "RUNNING_MEAN"}, "needs the window 'running'"),
        ({"labels": True}, "its channel has none"),
    ],
)
def test_a_wrong_spec_is_refused(spark: SparkSession, change: dict[str, Any], message: str) -> None:
    frame = spark.createDataFrame([], SCHEMA)
    with pytest.raises(IllegalArgumentException) as refused:
        stage(frame, spec(node("every", [{**AVG, **change}], everyMs=2000)))
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "the spec is not JSON"),
        ("[]", "'paneMs' must be a positive integer"),
        (
            '{"paneMs": 1000, "channels": [], "nodes": [{"id": 0, "channel": 0}]}',
            "node 0: there is no channel 0",
        ),
        (
            '{"paneMs": 1000, "channels": [{"partials": [{"kind": "avg", "at": 0}]}], "nodes": []}',
            "unknown partial kind",
        ),
    ],
)
def test_a_malformed_spec_is_refused(spark: SparkSession, text: str, message: str) -> None:
    frame = spark.createDataFrame([], SCHEMA)
    with pytest.raises(IllegalArgumentException, match=message):
        spark._jvm.io.fogline.stage.KeyedStage.apply(frame._jdf, text)
