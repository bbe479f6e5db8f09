"""Typed expressions of a plan.

One family serves two places. Over a record the leaves are fields; over a result they are keys and
aggregates. An aggregate is a leaf that describes itself completely, so two insights that ask for
the same thing hold equal leaves, and sharing is plain equality.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from fogline.language.ast import EventWindow, SessionWindow, TimeWindow
from fogline.model.streams import NUMBER, STRING

LIST = "list"
BOOLEAN = "boolean"


@dataclass(frozen=True, slots=True)
class Constant:
    value: float | str | bool | None

    @property
    def type(self) -> str:
        return STRING if isinstance(self.value, str) else NUMBER


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a record. `metric`: named in the record's metric field, not a column."""

    name: str
    type: str = NUMBER
    metric: bool = False


@dataclass(frozen=True, slots=True)
class KeyValue:
    """A key of the result."""

    name: str
    type: str = STRING


@dataclass(frozen=True, slots=True)
class Running:
    """The window of a running function: everything so far."""


WindowSpec = TimeWindow | EventWindow | SessionWindow | Running


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One aggregate: a function of records from some origins, over a window.

    `origins` are stream names, or for insights over insights the insight's name.
    """

    function: str
    arguments: tuple[Expr, ...]
    parameters: tuple[float, ...]
    window: WindowSpec
    offset_ms: int
    condition: Expr | None
    origins: tuple[str, ...]
    type: str = NUMBER
    labelled: bool = False
    fed: bool = False
    """Reads results of insights, not records of streams."""


@dataclass(frozen=True, slots=True)
class Arithmetic:
    operator: str
    left: Expr
    right: Expr
    type: str = NUMBER


@dataclass(frozen=True, slots=True)
class Apply:
    """A per-record function, or one the user declared (`target` set)."""

    function: str
    parameters: tuple[float, ...]
    arguments: tuple[Expr, ...]
    type: str = NUMBER
    target: str = ""


@dataclass(frozen=True, slots=True)
class Guarded:
    """`value` where `condition` is true, else nothing."""

    condition: Expr
    value: Expr

    @property
    def type(self) -> str:
        return self.value.type


@dataclass(frozen=True, slots=True)
class Compare:
    operator: str
    left: Expr
    right: Expr
    type: str = BOOLEAN


@dataclass(frozen=True, slots=True)
class OneOf:
    operand: Expr
    values: tuple[float | str, ...]
    type: str = BOOLEAN


@dataclass(frozen=True, slots=True)
class StartsWith:
    operand: Expr
    prefix: str
    type: str = BOOLEAN


@dataclass(frozen=True, slots=True)
class Every:
    """All of them are true."""

    terms: tuple[Expr, ...]
    type: str = BOOLEAN


@dataclass(frozen=True, slots=True)
class AnyOf:
    """At least one of them is true."""

    terms: tuple[Expr, ...]
    type: str = BOOLEAN


@dataclass(frozen=True, slots=True)
class Inverse:
    operand: Expr
    type: str = BOOLEAN


@dataclass(frozen=True, slots=True)
class Sampled:
    """True for a fraction of all records, decided by their content; None: the live fraction."""

    fraction: float | None
    type: str = BOOLEAN


@dataclass(frozen=True, slots=True)
class FromOrigin:
    """True for records of these streams (or results of these insights)."""

    origins: tuple[str, ...]
    type: str = BOOLEAN


Expr = (
    Constant
    | Field
    | KeyValue
    | Aggregate
    | Arithmetic
    | Apply
    | Guarded
    | Compare
    | OneOf
    | StartsWith
    | Every
    | AnyOf
    | Inverse
    | Sampled
    | FromOrigin
)


def children(expr: Expr) -> Iterator[Expr]:
    """The direct parts of an expression, as a query names them; an aggregate is a leaf."""
    if isinstance(expr, Aggregate):
        return
    if isinstance(expr, Guarded):
        yield expr.value
        yield expr.condition
        return
    for item in fields(expr):
        yield from _parts(getattr(expr, item.name))


def _parts(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple):
        for part in value:
            yield from _parts(part)
    elif is_dataclass(value) and not isinstance(value, Running):
        yield value


def walk(expr: Expr) -> Iterator[Expr]:
    """The expression and everything in it, aggregates as leaves."""
    yield expr
    for child in children(expr):
        yield from walk(child)


def transform(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """Rebuilds an expression bottom up; `change` sees every node once."""
    if isinstance(expr, Aggregate):
        return change(expr)
    updates = {}
    for item in fields(expr):
        old = getattr(expr, item.name)
        new = _transform_part(old, change)
        if new is not old:
            updates[item.name] = new
    return change(replace(expr, **updates) if updates else expr)


def _transform_part(value: Any, change: Callable[[Expr], Expr]) -> Any:
    if isinstance(value, tuple):
        parts = tuple(_transform_part(part, change) for part in value)
        return value if all(a is b for a, b in zip(parts, value, strict=True)) else parts
    if is_dataclass(value):
        return transform(value, change)  # type: ignore[arg-type]
    return value


def aggregates(expr: Expr | None) -> tuple[Aggregate, ...]:
    """The distinct aggregates in an expression, in order of appearance."""
    if expr is None:
        return ()
    return tuple(dict.fromkeys(e for e in walk(expr) if isinstance(e, Aggregate)))


def record_fields(expr: Expr | None) -> tuple[Field, ...]:
    """The distinct record fields an expression reads (not those inside aggregates)."""
    if expr is None:
        return ()
    return tuple(dict.fromkeys(e for e in walk(expr) if isinstance(e, Field)))


HASH, FRACTION = Field("_hash"), Field("_fraction")
"""Columns that the source makes for sampling."""
OWN_COLUMNS = frozenset({HASH.name, FRACTION.name})


def conjoin(first: Expr | None, second: Expr | None) -> Expr | None:
    """Conjunction, flattened; None is true."""
    terms = [t for e in (first, second) if e is not None for t in conjuncts(e)]
    if not terms:
        return None
    return terms[0] if len(terms) == 1 else Every(tuple(dict.fromkeys(terms)))


def disjoin(first: Expr, second: Expr) -> Expr:
    """Disjunction, flattened."""
    terms = (e.terms if isinstance(e, AnyOf) else (e,) for e in (first, second))
    return AnyOf(tuple(t for part in terms for t in part))


def conjuncts(expr: Expr) -> tuple[Expr, ...]:
    return expr.terms if isinstance(expr, Every) else (expr,)
