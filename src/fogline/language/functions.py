"""The function table of the language: what each function takes and what it gives.

Everything that asks "is there such a function, and is it called right?" reads this table.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    WINDOWED = "windowed"
    RUNNING = "running"
    RECORD = "record"


class ResultType(Enum):
    NUMBER = "number"
    STRING = "string"
    LIST = "list"


@dataclass(frozen=True, slots=True)
class FunctionParameter:
    """One number in square brackets, with the values it may have."""

    name: str
    low: float
    high: float
    whole: bool = False
    low_open: bool = False
    default: float | None = None

    def accepts(self, value: float) -> bool:
        if self.whole and value != int(value):
            return False
        above = value > self.low if self.low_open else value >= self.low
        return above and value <= self.high

    def __str__(self) -> str:
        number = "a whole number" if self.whole else "a number"
        bracket = "above" if self.low_open else "from"
        return f"{self.name}: {number} {bracket} {self.low:g} to {self.high:g}"


@dataclass(frozen=True, slots=True)
class Signature:
    name: str
    kind: Kind
    arguments: int = 1
    parameters: tuple[FunctionParameter, ...] = ()
    result: ResultType = ResultType.NUMBER
    any_type: bool = False
    """Takes strings as well as numbers."""


_MOST = 1e300
_SIZE = FunctionParameter("k", 1, 10_000, whole=True)
_BINS = FunctionParameter("n", 1, 1_000, whole=True)
_STEPS = FunctionParameter("n", 1, 10_000, whole=True)
_PERCENT = FunctionParameter("p", 0, 100)
_WEIGHT = FunctionParameter("a", 0, 1, low_open=True)
_NOISE = (
    FunctionParameter("q", 0, _MOST, default=1e-3),
    FunctionParameter("r", 0, _MOST, low_open=True, default=1e-1),
)
_CELL = FunctionParameter("n", 1, 12, whole=True)


def _windowed(name: str, *parameters: FunctionParameter, **more: object) -> Signature:
    return Signature(name, Kind.WINDOWED, parameters=parameters, **more)  # type: ignore[arg-type]


def _running(name: str, *parameters: FunctionParameter) -> Signature:
    return Signature(name, Kind.RUNNING, parameters=parameters)


_ALL = (
    _windowed("AVG"),
    _windowed("COUNT", any_type=True),
    _windowed("SUM"),
    _windowed("MIN"),
    _windowed("MAX"),
    _windowed("SDEV"),
    _windowed("VARIANCE"),
    _windowed("MEDIAN"),
    _windowed("MODE"),
    _windowed("GEOMETRIC_MEAN"),
    _windowed("CORRELATION", arguments=2),
    _windowed("PERCENTILE", _PERCENT),
    _windowed("TOP_K", _SIZE, result=ResultType.LIST),
    _windowed("HISTOGRAM", _BINS, result=ResultType.LIST),
    _windowed("FORECAST", _STEPS),
    _windowed("DISTINCT", any_type=True),
    _windowed("FIRST"),
    _windowed("LAST"),
    _windowed("SLOPE"),
    _windowed("OUTLIER_DETECTION", result=ResultType.LIST),
    _running("RUNNING_COUNT"),
    _running("RUNNING_MEAN"),
    _running("RUNNING_MIN"),
    _running("RUNNING_MAX"),
    _running("RUNNING_SDEV"),
    _running("DIFF"),
    _running("EWMA", _WEIGHT),
    _running("PEWMA", _WEIGHT),
    _running("KALMAN", *_NOISE),
    Signature("SQRT", Kind.RECORD),
    Signature("ABS", Kind.RECORD),
    Signature("SQR", Kind.RECORD),
    Signature("GEOHASH", Kind.RECORD, 2, (_CELL,), ResultType.STRING),
)

FUNCTIONS: dict[str, Signature] = {signature.name: signature for signature in _ALL}

ALIASES: dict[str, str] = {
    "ARITHMETIC_MEAN": "AVG",
    "MEAN": "AVG",
    "STD": "SDEV",
    "OUTLIER_DETECTOR": "OUTLIER_DETECTION",
    "RUNNING_AVG": "RUNNING_MEAN",
    "RUNNING_STD": "RUNNING_SDEV",
}


def lookup(name: str) -> Signature | None:
    """The signature behind a name or one of its aliases."""
    return FUNCTIONS.get(ALIASES.get(name, name))


def known_names() -> list[str]:
    return sorted([*FUNCTIONS, *ALIASES])
