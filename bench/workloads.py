"""What is measured: workloads, and for each the engines and variants that run it."""

from __future__ import annotations

from dataclasses import dataclass

from data import SCHEMA

FOGLINE = "fogline"
SPARK = "pyspark"
FLINK = "flink"
BYTEWAX = "bytewax"
KALMAN_Q, KALMAN_R = 0.001, 0.1
DUST_LIMIT = 95.0
RECORDS = "records"
"""The variant of Fogline that also makes the JSON record of every result."""


@dataclass(frozen=True)
class Subject:
    """One engine in one variant: a process of its own."""

    engine: str
    variant: str
    label: str
    needs: str | None = None
    """A Python module it cannot do without; where that is missing, it is left out."""
    slow: bool = False
    """Whether it gets a tenth of the events: all of them would take it many minutes."""


@dataclass(frozen=True)
class Workload:
    """`baseline` is a variant of Fogline to compare with, where no other engine runs it."""

    name: str
    title: str
    per_second: int
    scale: int
    """How many times the events: light work takes more of them, so that a pass takes seconds."""
    subjects: tuple[Subject, ...]
    goal: str
    baseline: str | None = None


_TYPED = Subject(FOGLINE, "typed", "Fogline")
_RECORDS = Subject(FOGLINE, RECORDS, "Fogline, with JSON records")
_JSON = Subject(SPARK, "json", 'PySpark, format("json")')
_TEXT = Subject(SPARK, "text", "PySpark, text and from_json")
_APPLY = Subject(SPARK, "apply", "PySpark, applyInPandasWithState")
_TRANSFORM = Subject(
    SPARK, "transform", "PySpark, transformWithStateInPandas", needs="google.protobuf.descriptor"
)
_FLINK = Subject(FLINK, "sql", "Flink SQL")
_FLINK_PROCESS = Subject(FLINK, "process", "PyFlink, process mode", slow=True)
_FLINK_THREAD = Subject(FLINK, "thread", "PyFlink, thread mode", slow=True)

WORKLOADS = (
    Workload(
        "filter",
        "parse and filter: 5 % pass",
        10_000,
        5,
        (_TYPED, _RECORDS, _JSON, _TEXT, _FLINK),
        "4x PySpark, ahead of Flink",
    ),
    Workload(
        "tumbling",
        "average by 788 sensors, 10 s tumbling",
        10_000,
        5,
        (_TYPED, _RECORDS, _JSON, _TEXT, _FLINK),
        "4x PySpark, ahead of Flink",
    ),
    Workload(
        "sliding",
        "average by 788 sensors, 60 s every 1 s",
        10_000,
        1,
        (_TYPED, _RECORDS, _JSON, _FLINK),
        "10x PySpark, ahead of Flink",
    ),
    Workload(
        "long",
        "average by 788 sensors, 10 min every 5 s",
        1_000,
        1,
        (_TYPED, _RECORDS, _JSON, _FLINK),
        "10x PySpark, ahead of Flink",
    ),
    Workload(
        "kalman",
        "Kalman filter by 788 sensors, a value per event",
        10_000,
        1,
        (_TYPED, _RECORDS, _APPLY, _TRANSFORM, _FLINK_PROCESS, _FLINK_THREAD),
        "5x PySpark, ahead of Flink",
    ),
    Workload(
        "ten",
        "ten insights over one stream",
        10_000,
        1,
        (
            Subject(FOGLINE, "one", "one insight"),
            Subject(FOGLINE, "ten", "ten insights, same keys"),
            Subject(FOGLINE, "ten-keys", "ten insights, five by other keys"),
        ),
        "less than twice the time of one",
        baseline="one",
    ),
)

# ── the same workloads in Fogline's language ─────────────────────────────────────────────────────

STREAM = (
    'events = STREAM FROM file(path="events", format="json", time="time", '
    f'schema="{SCHEMA.lower().replace("time bigint, ", "")}");\n'
)
_FUNCTIONS = ("AVG", "SUM", "MIN", "MAX", "COUNT", "SDEV", "VARIANCE", "FIRST", "LAST", "SLOPE")


def insights(workload: str, variant: str) -> str:
    """The query text of a workload; it starts with the stream."""
    name = variant if workload == "ten" else workload
    return STREAM + _INSIGHTS[name]


def _ten(keys: tuple[str, ...]) -> str:
    return "\n".join(
        f"i{n} = COMPUTE {function}(temperature, 10 s) BY {keys[n % len(keys)]} EVERY 10 s;"
        for n, function in enumerate(_FUNCTIONS)
    )


def many_insights(count: int) -> str:
    """A query file with so many insights of all kinds, to be checked."""
    lines = [
        f"i{n} = COMPUTE {_FUNCTIONS[n % 10]}(temperature, {10 + n % 7 * 10} s) "
        f"/ (1 + MAX(humidity WHEN dust > {n % 90}, 1 m)) BY {('sensor', 'zone')[n % 2]} "
        f"WHEN > {n / 10} EVERY {5 + n % 3 * 5} s WITH SALIENCE {n};"
        for n in range(count)
    ]
    return STREAM + "\n".join(lines)


_INSIGHTS = {
    "filter": f"dusty = COMPUTE dust BY sensor WHEN > {DUST_LIMIT:g};",
    "tumbling": "mean = COMPUTE AVG(temperature, 10 s) BY sensor EVERY 10 s;",
    "sliding": "mean = COMPUTE AVG(temperature, 60 s) BY sensor EVERY 1 s;",
    "long": "mean = COMPUTE AVG(temperature, 10 m) BY sensor EVERY 5 s;",
    "kalman": f"level = COMPUTE KALMAN[{KALMAN_Q}, {KALMAN_R}](temperature) BY sensor;",
    "one": "mean = COMPUTE AVG(temperature, 10 s) BY sensor EVERY 10 s;",
    "ten": _ten(("sensor",)),
    "ten-keys": _ten(("sensor", "zone")),
}
