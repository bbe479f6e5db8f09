"""The formula of every aggregate, over the samples of one window in order of time.

A formula is never asked about an empty window: that is null for all of them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from fogline.testing.reference.values import as_json, number

HOLT_LEVEL = 0.5
HOLT_TREND = 0.3


@dataclass(frozen=True)
class AggregateSample:
    """What one record gives to one aggregate. `label`: the keys of an inner aggregate's result."""

    time: int
    values: tuple[Any, ...]
    label: Mapping[str, Any] | None = None

    @property
    def x(self) -> Any:
        return self.values[0]


Samples = Sequence[AggregateSample]
Numbers = Sequence[float]


# ── over the numbers of a window ───────────────────────────────────────────────────────────────


def mean(xs: Numbers) -> float:
    return math.fsum(xs) / len(xs)


def variance(xs: Numbers) -> float | None:
    if len(xs) < 2:
        return None
    middle = mean(xs)
    return math.fsum((x - middle) ** 2 for x in xs) / (len(xs) - 1)


def deviation(xs: Numbers) -> float | None:
    spread = variance(xs)
    return None if spread is None else math.sqrt(spread)


def percentile(xs: Numbers, percent: float) -> float:
    ordered = sorted(xs)
    place = percent / 100 * (len(ordered) - 1)
    low = math.floor(place)
    high = math.ceil(place)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def mode(xs: Numbers) -> float:
    counts = Counter(xs)
    return min(x for x in xs if counts[x] == max(counts.values()))


def geometric_mean(xs: Numbers) -> float | None:
    if min(xs) <= 0:
        return None
    return math.exp(mean([math.log(x) for x in xs]))


def histogram(xs: Numbers, bins: int) -> list[dict[str, float]]:
    """Equal bins from the smallest to the largest, the last one closed; one if all are equal."""
    low, high = min(xs), max(xs)
    bins = bins if high > low else 1
    edges = [low + (high - low) * i / bins for i in range(bins)] + [high]
    below = [sum(x < edge for x in xs) for edge in edges[:-1]] + [len(xs)]
    return [
        {"from": edges[i], "to": edges[i + 1], "count": below[i + 1] - below[i]}
        for i in range(bins)
    ]


# ── over pairs ─────────────────────────────────────────────────────────────────────────────────


def _products(xs: Numbers, ys: Numbers) -> float:
    """The sum of products of distances from the means."""
    mean_x, mean_y = mean(xs), mean(ys)
    return math.fsum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True))


def correlation(xs: Numbers, ys: Numbers) -> float | None:
    spread = _products(xs, xs) * _products(ys, ys)
    return _products(xs, ys) / math.sqrt(spread) if spread > 0 else None


def slope(xs: Numbers, ys: Numbers) -> float | None:
    spread = _products(xs, xs)
    return _products(xs, ys) / spread if spread > 0 else None


# ── in order of time ───────────────────────────────────────────────────────────────────────────


def ewma(xs: Numbers, weight: float) -> float:
    s = xs[0]
    for x in xs[1:]:
        s = weight * x + (1 - weight) * s
    return s


def pewma(xs: Numbers, a: float, b: float = 1.0) -> float:
    """The weight of the past falls with how likely the new value is.

    The variance stands for s2 - s1² with s2 the mean of squares: the same, without cancellation.
    """
    s1, variance = xs[0], 0.0
    for x in xs[1:]:
        z = _standardise(x - s1, variance)
        p = math.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
        past = (1 - a) * (1 - b * p)
        variance = past * (variance + (1 - past) * (x - s1) ** 2)
        s1 = s1 + (1 - past) * (x - s1)
    return s1


def _standardise(distance: float, variance: float) -> float:
    if variance > 0:
        return distance / math.sqrt(variance)
    return 0.0 if distance == 0 else math.inf


def kalman(zs: Numbers, q: float, r: float) -> float:
    x, p = zs[0], r
    for z in zs[1:]:
        p += q
        k = p / (p + r)
        x += k * (z - x)
        p *= 1 - k
    return x


def difference(xs: Numbers) -> float | None:
    return xs[-1] - xs[-2] if len(xs) > 1 else None


def forecast(samples: Samples, start: int, length: int, steps: float, bucket: float) -> float:
    """Holt's linear method over the means of the window's buckets, which end where it ends.

    The first two buckets with records set level and trend; an empty bucket after that is taken
    to hold exactly what was expected.
    """
    end = start + length
    means: dict[int, float] = {}
    for place in {_place(s, end, bucket) for s in samples}:
        means[place] = mean([s.x for s in samples if _place(s, end, bucket) == place])
    filled = sorted(means)
    if len(filled) == 1:
        return means[filled[0]]
    first, second = filled[:2]
    level, trend = means[second], (means[second] - means[first]) / (second - first)
    for place in range(second + 1, 0):
        expected = level + trend
        new_level = HOLT_LEVEL * means.get(place, expected) + (1 - HOLT_LEVEL) * expected
        trend = HOLT_TREND * (new_level - level) + (1 - HOLT_TREND) * trend
        level = new_level
    return level + steps * trend


def _place(sample: AggregateSample, end: int, bucket: float) -> int:
    """The number of a sample's bucket: -1 for the one that ends with the window, -2 before it."""
    return -math.ceil((end - sample.time) / bucket)


# ── lists ──────────────────────────────────────────────────────────────────────────────────────


def top(samples: Samples, k: int) -> list[Any]:
    """The k largest; results of an inner aggregate are named by their keys."""
    labels = {id(s): "" if s.label is None else as_json(s.label) for s in samples}
    best = sorted(samples, key=lambda s: (-s.x, labels[id(s)]))[:k]
    return [s.x if s.label is None else {"keys": dict(s.label), "value": s.x} for s in best]


def iso(millis: int) -> str:
    moment = datetime.fromtimestamp(millis // 1000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{millis % 1000:03d}Z"


def outliers(samples: Samples, neighbours: float, radius: float) -> list[dict[str, Any]] | None:
    """Records with fewer than `neighbours` others within `radius`, and the company they keep."""

    def near(a: AggregateSample, b: AggregateSample) -> bool:
        return a is not b and abs(a.x - b.x) <= radius

    found = [s for s in samples if sum(near(s, other) for other in samples) < neighbours]
    described = []
    for one in sorted(found, key=lambda s: (s.time, s.x)):
        cluster = [one]
        for member in cluster:
            cluster += [o for o in found if near(member, o) and not any(o is c for c in cluster)]
        described.append(
            {
                "time": iso(one.time),
                "value": one.x,
                "neighbours": sum(near(one, other) for other in samples),
                "kind": "cluster" if len(cluster) > 1 else "isolated",
                "size": len(cluster),
            }
        )
    return described or None


# ── the table ──────────────────────────────────────────────────────────────────────────────────

OF_NUMBERS: dict[str, Callable[..., Any]] = {
    "AVG": mean,
    "SUM": math.fsum,
    "MIN": min,
    "MAX": max,
    "VARIANCE": variance,
    "SDEV": deviation,
    "MEDIAN": lambda xs: percentile(xs, 50),
    "PERCENTILE": percentile,
    "MODE": mode,
    "GEOMETRIC_MEAN": geometric_mean,
    "HISTOGRAM": lambda xs, bins: histogram(xs, int(bins)),
    "COUNT": lambda xs: float(len(xs)),
    "DISTINCT": lambda xs: float(len(set(xs))),
    "RUNNING_COUNT": lambda xs: float(len(xs)),
    "RUNNING_MEAN": mean,
    "RUNNING_MIN": min,
    "RUNNING_MAX": max,
    "RUNNING_SDEV": deviation,
    "DIFF": difference,
    "EWMA": ewma,
    "PEWMA": pewma,
    "KALMAN": kalman,
}
"""Functions of the values alone, then of the parameters in square brackets."""

OF_SAMPLES: dict[str, Callable[..., Any]] = {
    "FIRST": lambda samples: min(samples, key=lambda s: (s.time, s.x)).x,
    "LAST": lambda samples: max(samples, key=lambda s: (s.time, s.x)).x,
    "CORRELATION": lambda samples: correlation(
        [s.values[0] for s in samples], [s.values[1] for s in samples]
    ),
    "SLOPE": lambda samples: slope(
        [(s.time - samples[0].time) / 1000 for s in samples], [s.x for s in samples]
    ),
    "TOP_K": lambda samples, k: top(samples, int(k)),
    "OUTLIER_DETECTION": outliers,
}
"""Functions that also look at the times, at two values of a record, or at labels."""


def aggregate(
    function: str, samples: Samples, parameters: Sequence[float], start: int, length: int
) -> Any:
    """The value of an aggregate over its window, which starts at `start`; null over nothing."""
    if not samples:
        return None
    if function == "FORECAST":
        return number(forecast(samples, start, length, *parameters))
    if function in OF_SAMPLES:
        value = OF_SAMPLES[function](samples, *parameters)
    else:
        value = OF_NUMBERS[function]([s.x for s in samples], *parameters)
    return value if isinstance(value, list) else number(value)
