"""Random records and random query texts over them, the same for the same seed.

The texts are valid and cover every function, clause and kind of window, nested aggregates and
references between insights; the records have ties, gaps, missing values, numbers in strings and
arrive out of order by less than the lateness. Values are multiples of a half, so that sums do not
depend on their order, and thresholds lie between the values they are compared with.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from fogline.testing.reference import ReferenceRecord

START = 1_700_000_000_000
LATENESS = 2_000
SOURCE = 'memory(name="s", time="time", lateness="2 s")'
NAMED_SOURCE = 'memory(name="m", metric="metric", value="value", time="time", lateness="2 s")'
CITIES = ("athens", "nicosia", "turin")

_PLAIN = [
    *("AVG", "ARITHMETIC_MEAN", "MEAN", "COUNT", "SUM", "MIN", "MAX", "SDEV", "STD", "VARIANCE"),
    *("MEDIAN", "MODE", "GEOMETRIC_MEAN", "DISTINCT", "FIRST", "LAST", "SLOPE"),
    *("CORRELATION", "PERCENTILE"),
]
_RUNNING = [
    *("RUNNING_COUNT", "RUNNING_MEAN", "RUNNING_AVG", "RUNNING_MIN", "RUNNING_MAX"),
    *("RUNNING_SDEV", "RUNNING_STD", "DIFF", "EWMA", "PEWMA", "KALMAN"),
]
_LISTS = ["TOP_K", "HISTOGRAM", "OUTLIER_DETECTION", "OUTLIER_DETECTOR"]
_PARAMETERS = {
    "PERCENTILE": ["0", "25", "50", "90", "99.5", "100"],
    "TOP_K": ["1", "3"],
    "HISTOGRAM": ["1", "4"],
    "FORECAST": ["1", "3"],
    "EWMA": ["0.2", "1"],
    "PEWMA": ["0.3", "0.9"],
    "KALMAN": ["0.01, 0.5", "1, 2"],
}
_PERIODS = ["500 ms", "1 s", "2 SECONDS", "5 s", "10 SECONDS"]
_WINDOWS = ["1500 MILLIS", "1 SECONDS", "3 s", "5 s", "10 SECONDS", "30 s", "1 MINUTES"]
_OFFSETS = ["500 ms", "1 s", "2 s", "7 s"]
_KEYS = ["", "", "device", "device", "city", "city, device", "GEOHASH[3](lat, lon)"]


@dataclass(frozen=True)
class Case:
    """A query text and the records to run it over, in order of arrival."""

    seed: int
    text: str
    records: list[ReferenceRecord]


def case(
    seed: int, source: str = SOURCE, named: str = "", size: int = 60, ties: bool = True
) -> Case:
    """One random case over the stream `s`, whose provider is `source`.

    With `named` there is a second stream `m` of that provider, whose records name their metric.
    """
    random = Random(seed)
    made = records(random, size, ties, named=bool(named))
    return Case(seed, query(random, source, named), made)


# ── records ────────────────────────────────────────────────────────────────────────────────────


def records(
    random: Random, size: int = 60, ties: bool = True, named: bool = False
) -> list[ReferenceRecord]:
    """Records of one to six devices; without `ties` no two have the same time.

    With `named` some are of a stream `m`, and every record says which stream it is of.
    """
    devices = [f"d{i}" for i in range(random.randint(1, 6))]
    home = {device: random.choice(CITIES) for device in devices}
    time, found = START + random.randrange(60_000), []
    for _ in range(size):
        time += _step(random, ties)
        device = random.choice(devices)
        fields, stream = _fields(random, device, home[device]), "s"
        if named and random.random() < 0.4:
            fields, stream = _named_fields(random, fields), "m"
        record = ReferenceRecord(time=time, fields=fields)
        found.append(ReferenceRecord(**record, stream=stream) if named else record)
    delays = [random.randrange(LATENESS) for _ in found]
    arrival = sorted(range(size), key=lambda i: (found[i]["time"] + delays[i], i))
    return [found[i] for i in arrival]


def _step(random: Random, ties: bool) -> int:
    kind = random.random()
    if kind < 0.15:
        return 0 if ties else 1
    if kind < 0.2:
        return random.randrange(10_000, 40_000)
    return random.choice([1, 250, 500, 1000, random.randrange(1, 3000)])


def _fields(random: Random, device: str, city: str) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "device": device,
        "city": city,
        "x": random.randint(-40, 120) / 2,
        "y": random.randint(1, 6),
        "z": random.choice([-1.5, -0.5, 0, 2, 1000.5]),
        "on": random.random() < 0.5,
        "lat": random.choice([35.0, 35.25, 38.0]),
        "lon": random.choice([23.5, 33.25, 33.5]),
    }
    for name in ("x", "y", "z", "on"):
        if random.random() < 0.12:
            del fields[name]
        elif random.random() < 0.05 and name != "on":
            fields[name] = str(fields[name])
    if random.random() < 0.02:
        del fields["city"]
    return fields


def _named_fields(random: Random, fields: dict[str, Any]) -> dict[str, Any]:
    kept = {name: fields[name] for name in ("device", "city") if name in fields}
    return kept | {"metric": random.choice(["cpu", "mem"]), "value": random.randint(0, 200) / 2}


# ── queries ────────────────────────────────────────────────────────────────────────────────────


def query(random: Random, source: str = SOURCE, named: str = "", insights: int = 4) -> str:
    """A query file of about so many insights, each drawn from one of the kinds below."""
    streams = [f"s = STREAM FROM {source};"]
    metrics = ["x", "x", "y", "z", '"x"', "x FROM (s)", "y FROM (s)"]
    if named:
        streams.append(f"m: STREAM FROM {named};")
        metrics += ["cpu FROM (m)", '"mem" FROM (m)', "m"]
    writer = _Writer(random, metrics)
    for _ in range(insights):
        random.choice(_KINDS)(writer)
    return "\n".join([*streams, *writer.statements]) + "\n"


@dataclass(frozen=True)
class _Scope:
    """What the parts of one insight have to agree on."""

    keys: str = ""
    every: str = ""
    windows: str = "time"


class _Writer:
    """Writes insights one after the other, and remembers those that others can refer to."""

    def __init__(self, random: Random, metrics: list[str]) -> None:
        self.random = random
        self.metrics = metrics
        self.statements: list[str] = []
        self.known: list[tuple[str, _Scope]] = []

    def scope(self, windows: str = "time") -> _Scope:
        keys = self.random.choice(_KEYS)
        return _Scope(keys, self.random.choice(_PERIODS) if windows == "time" else "", windows)

    def add(self, expression: str, scope: _Scope, when: str = "", options: str = "") -> str:
        """Writes one insight and gives its name."""
        name = f"i{len(self.statements)}"
        clauses = [f"{name} = {self.random.choice(['COMPUTE', 'compute'])} {expression}"]
        clauses += [f"BY {scope.keys}"] if scope.keys else []
        clauses += [f"WHEN {when}"] if when else []
        clauses += [f"EVERY {scope.every}"] if scope.every else []
        if not options and self.random.random() < 0.1:
            options = self.random.choice(["SALIENCE 3", "SCHEDULER = energy AND SALIENCE 1"])
        clauses += [f"WITH {options}"] if options else []
        self.statements.append(" ".join(clauses) + ";")
        return name

    # ── parts ──────────────────────────────────────────────────────────────────────────────────

    def argument(self) -> str:
        metric = self.random.choice(self.metrics)
        shape = self.random.choice(["{}"] * 6 + ["{} * 2 + 1", "ABS({})", "SQRT({})", "-SQR({})"])
        return str(shape.format(metric))

    def record_condition(self) -> str:
        """About the fields of a record."""
        return self.random.choice(
            [
                "y > 2.5",
                "city == athens",
                'city != "turin"',
                "device IN (d0, d2, d3)",
                "NOT (x < 10.25 OR y IN (1, 2))",
                "on == 1 AND z >= 0",
            ]
        )

    def argument_condition(self) -> str:
        """About a record that an aggregate may take; without a left side, about its argument."""
        own = ["> 3.123", "< 20.123 AND NOT city == turin", "(> 30.123 OR IN (1, 2)) AND y > 2.5"]
        return self.random.choice([self.record_condition(), *own])

    def window(self, scope: _Scope) -> str:
        """What follows the metric inside an aggregate's parentheses."""
        if scope.windows == "session":
            return ", SESSION 5 SECONDS"
        if self.random.random() < 0.15:
            return f", {self.random.choice([1, 3, 10])} EVENTS"
        if scope.every and self.random.random() < 0.4:
            return ""
        offset = f", {self.random.choice(_OFFSETS)}" if self.random.random() < 0.2 else ""
        return f", {self.random.choice(_WINDOWS)}{offset}"

    def function(self, names: list[str]) -> str:
        name = self.random.choice(names)
        parameters = _PARAMETERS.get(name)
        spelled = self.random.choice([name, name, name.lower()])
        return f"{spelled}[{self.random.choice(parameters)}]" if parameters else spelled

    def aggregate(self, scope: _Scope) -> str:
        if scope.windows != "session" and self.random.random() < 0.3:
            return f"{self.function(_RUNNING)}({self.argument()})"
        condition = f" WHEN {self.argument_condition()}" if self.random.random() < 0.2 else ""
        function = self.function(_PLAIN)
        arguments = self.argument()
        if function.upper() == "CORRELATION":
            arguments, condition = "x, y", ""
        return f"{function}({arguments}{condition}{self.window(scope)})"

    def value(self, scope: _Scope) -> str:
        """An expression over one to three aggregates, maybe with a bare metric."""
        first, second = self.aggregate(scope), self.aggregate(scope)
        shapes = [first] * 4
        shapes += [f"{first} {self.random.choice('+-*/%')} {second}", f"100 * ({first} - {second})"]
        shapes += [f"ABS({first}) / {second} - 1.5", f"-{first} + x", f"x * y - {first}"]
        return self.random.choice(shapes)

    def condition(self, scope: _Scope, numeric: bool = True, of_records: bool = True) -> str:
        """The insight's WHEN: on its value, on keys, on aggregates, on bare metrics; or none."""
        found = [""] * 6
        if numeric:
            found += ["> 3.123", "<= 20.123", "> -5.123 AND < 40.123", "NOT > 11.123"]
        if numeric and of_records:
            found += [f"> {self.aggregate(scope)}", f"{self.aggregate(scope)} > 1.123", "x > 5.25"]
        if "device" in scope.keys:
            found += ['device == "d1"', "device IN (d0, d1)", "device != d0"]
        if "city" in scope.keys:
            found += ["city == athens", 'NOT city == "turin"']
        return self.random.choice(found)

    # ── kinds of insights ──────────────────────────────────────────────────────────────────────

    def periodic(self) -> None:
        scope = self.scope()
        name = self.add(self.value(scope), scope, self.condition(scope))
        self.known.append((name, scope))

    def keyed_aggregate(self) -> None:
        """BY written behind the aggregate it belongs to, as in the old dialect."""
        scope = self.scope()
        by = f" BY {scope.keys}" if scope.keys else ""
        self.add(f"({self.aggregate(scope)}{by})", replace(scope, keys=""))

    def latest(self) -> None:
        scope = self.scope()
        shape = self.random.choice(["x", "x - y", "SQRT(x)", "x % y"])
        self.known.append((self.add(shape, scope, self.condition(scope)), scope))

    def on_arrival(self) -> None:
        scope = self.scope("arrival")
        name = self.add(self.value(scope), scope, self.condition(scope))
        self.known.append((name, scope))

    def by_count(self) -> None:
        scope = replace(self.scope("count"), every=f"{self.random.choice([1, 2, 5])} EVENTS")
        self.add(self.value(scope), scope, self.condition(scope))

    def session(self) -> None:
        scope = self.scope("session")
        self.add(self.value(scope), scope, self.condition(scope))

    def per_record(self) -> None:
        scope = self.scope("record")
        shapes = ["x", "x / z", "SQRT(x) + y", "ABS(z) % y", "SQR(x) - 1", "GEOHASH[4](lat, lon)"]
        shape = self.random.choice(shapes)
        when = self.random.choice(["", self.record_condition()])
        self.add(shape, scope, when)

    def a_list(self) -> None:
        scope = self.scope()
        function = self.function(_LISTS)
        options = "ALGORITHM pmcod AND K=2 AND R=1.5" if "OUTLIER" in function.upper() else ""
        value = f"{function}({self.argument()}{self.window(scope)})"
        self.add(value, scope, self.condition(scope, numeric=False), options)

    def forecast(self) -> None:
        scope = replace(self.scope(), every="2 SECONDS")
        window = self.random.choice(["4 s", "10 s", "1 MINUTES", "10 s, 2 s"])
        self.add(f"{self.function(['FORECAST'])}(x, {window})", scope, self.condition(scope))

    def nested(self) -> None:
        scope = replace(self.scope(), keys=self.random.choice(["", "city"]))
        inner_keys = self.random.choice(["city, device", "city"]) if scope.keys else "device"
        inner = f"({self.aggregate(scope)} BY {inner_keys})"
        outer = self.function(["TOP_K", "TOP_K", "MIN", "MAX", "SUM", "COUNT", "AVG", "MEDIAN"])
        window = self.random.choice(["", "", ", 10 s"])
        numeric = not outer.upper().startswith("TOP_K")
        condition = self.condition(scope, numeric, of_records=False)
        self.add(f"{outer}({inner}{window})", scope, condition)

    def expanded(self) -> None:
        """Insights named in an expression without EVERY: computed in place."""
        scope = self.random.choice([self.scope(), self.scope("arrival")])
        names = [self.add(self.value(scope), scope, self.condition(scope)) for _ in range(2)]
        expression = f"{names[0]} {self.random.choice('+-*/')} INSIGHT {names[1]}"
        self.add(expression, _Scope(), self.random.choice(["", "> 1.123"]))

    def aggregated_results(self) -> None:
        """Aggregates over what another insight emits."""
        if not self.known:
            self.periodic()
        name, scope = self.random.choice(self.known)
        keys = self.random.choice(["", *[k for k in ("city", "device") if k in scope.keys]])
        own = _Scope(keys, self.random.choice(_PERIODS))
        functions = ["AVG", "MAX", "COUNT", "LAST", "MEDIAN", "DIFF", "RUNNING_MEAN"]
        function = self.random.choice(functions)
        window = "" if function in _RUNNING else self.random.choice(["", ", 10 s", ", 30 s"])
        argument = self.random.choice([name, f"INSIGHT {name}", f"{name} * 2"])
        self.add(f"{function}({argument}{window})", own, self.random.choice(["", "> 1.123"]))

    def latest_result(self) -> None:
        """Another insight's latest result at a period of its own."""
        if not self.known:
            self.periodic()
        name, _ = self.random.choice(self.known)
        self.add(f"{name} + 1", _Scope(every=self.random.choice(_PERIODS)))


_KINDS: tuple[Callable[[_Writer], None], ...] = (
    _Writer.periodic,
    _Writer.periodic,
    _Writer.keyed_aggregate,
    _Writer.latest,
    _Writer.on_arrival,
    _Writer.by_count,
    _Writer.session,
    _Writer.per_record,
    _Writer.a_list,
    _Writer.forecast,
    _Writer.nested,
    _Writer.expanded,
    _Writer.aggregated_results,
    _Writer.latest_result,
)
