"""Plan expressions as native Spark columns: one table, nothing else is supported."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F

from fogline.common.errors import PlanError
from fogline.plan.expressions import (
    Aggregate,
    AnyOf,
    Apply,
    Arithmetic,
    Compare,
    Constant,
    Every,
    Expr,
    Field,
    FromOrigin,
    Guarded,
    Inverse,
    KeyValue,
    OneOf,
    Sampled,
    StartsWith,
)

_ALPHABET = "0123456789bcdefghjkmnpqrstuvwxyz"
"""Of geohashes."""
Functions = Callable[[str], Callable[..., Column]]
"""From the target of a declared function to the Spark function that calls it."""


def no_functions(target: str) -> Callable[..., Column]:
    raise PlanError(f"function {target} is not loaded")


@dataclass(frozen=True)
class Leaves:
    """How the leaves of an expression are read in one place of the query."""

    field: Callable[[Field], Column]
    key: Callable[[KeyValue], Column]
    aggregate: Callable[[Aggregate], Column]
    origin: Callable[[tuple[str, ...]], Column | None]
    sampled: Callable[[float | None], Column]
    functions: Functions = no_functions


# Each argument stands once: written twice, nested expressions would double at every level.
_ARITHMETIC: dict[str, Callable[[Column, Column], Column]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": F.try_divide,
    "%": F.try_mod,
}
_COMPARISONS: dict[str, Callable[[Column, Column], Column]] = {
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}
_RECORD_FUNCTIONS: dict[str, Callable[[tuple[float, ...], list[Column]], Column]] = {
    "SQRT": lambda _, a: F.nanvl(F.sqrt(a[0]), F.lit(None).cast("double")),
    "ABS": lambda _, a: F.abs(a[0]),
    "SQR": lambda _, a: F.pow(a[0], F.lit(2.0)),
    "GEOHASH": lambda p, a: geohash(int(p[0]), a[0], a[1]),
    "HASH": lambda _, a: F.when(
        a[0].isNotNull(), F.shiftrightunsigned(F.xxhash64(a[0]), 11).cast("double")
    ),
}


def to_column(expr: Expr, leaves: Leaves) -> Column:
    """The Spark column of an expression; conditions that are always true give `true`."""

    def of(part: Expr) -> Column:
        return to_column(part, leaves)

    match expr:
        case Constant(value):
            return F.lit(float(value) if isinstance(value, int) else value)
        case Field():
            return leaves.field(expr)
        case KeyValue():
            return leaves.key(expr)
        case Aggregate():
            return leaves.aggregate(expr)
        case Arithmetic(operator, left, right):
            return _ARITHMETIC[operator](of(left), of(right))
        case Apply():
            return _apply(expr, [of(a) for a in expr.arguments], leaves)
        case Guarded(condition, value):
            return _apply_condition(condition, of(value), leaves)
        case Compare(operator, left, right):
            return _COMPARISONS[operator](of(left), of(right))
        case OneOf(operand, values):
            return of(operand).isin(list(values))
        case StartsWith(operand, prefix):
            return of(operand).startswith(prefix)
        case Every(terms):
            return reduce(lambda a, b: a & b, [of(t) for t in terms])
        case AnyOf(terms):
            return reduce(lambda a, b: a | b, [of(t) for t in terms])
        case Inverse(operand):
            return ~of(operand)
        case Sampled(fraction):
            return leaves.sampled(fraction)
        case FromOrigin(origins):
            test = leaves.origin(origins)
            return F.lit(True) if test is None else test
    raise PlanError(f"no Spark form for {type(expr).__name__}")


def _apply_condition(condition: Expr, value: Column, leaves: Leaves) -> Column:
    terms = condition.terms if isinstance(condition, Every) else (condition,)
    needed = [
        t for t in terms if not (isinstance(t, FromOrigin) and leaves.origin(t.origins) is None)
    ]
    if not needed:
        return value
    tests = [to_column(t, leaves) for t in needed]
    return F.when(reduce(lambda a, b: a & b, tests), value)


def _apply(expr: Apply, arguments: list[Column], leaves: Leaves) -> Column:
    if expr.target:
        return leaves.functions(expr.target)(*arguments)
    function = _RECORD_FUNCTIONS.get(expr.function)
    if function is None:
        raise PlanError(f"no Spark form for {expr.function}")
    return function(expr.parameters, arguments)


def geohash(length: int, latitude: Column, longitude: Column) -> Column:
    """The geohash of a point with `length` characters; nothing for points off the map."""
    bits = 5 * length
    lon_bits, lat_bits = (bits + 1) // 2, bits // 2
    lon = _cell(longitude, 180.0, lon_bits)
    lat = _cell(latitude, 90.0, lat_bits)
    characters = [_character(index, lat, lon, lat_bits, lon_bits) for index in range(length)]
    valid = latitude.between(-90, 90) & longitude.between(-180, 180)
    return F.when(valid, F.concat(*characters))


def _cell(degrees: Column, half: float, bits: int) -> Column:
    """Which of 2^bits equal strips a coordinate falls in; the far edge belongs to the last."""
    scaled = F.floor((degrees + half) / (2 * half) * float(2**bits)).cast("long")
    return F.least(scaled, F.lit(2**bits - 1))


def _character(index: int, lat: Column, lon: Column, lat_bits: int, lon_bits: int) -> Column:
    """Five interleaved bits, longitude first, as one letter."""
    parts = []
    for offset in range(5):
        position = 5 * index + offset
        source, total = (lon, lon_bits) if position % 2 == 0 else (lat, lat_bits)
        bit = F.shiftright(source, total - 1 - position // 2).bitwiseAND(F.lit(1))
        parts.append(bit * (16 >> offset))
    number = reduce(lambda a, b: a + b, parts)
    return F.substring(F.lit(_ALPHABET), number.cast("int") + 1, F.lit(1))
