"""The syntax tree of a query file: frozen nodes, equal when they mean the same text.

Positions are carried for error messages and never take part in a comparison, so a tree that was
printed and parsed again equals the one it came from.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Position:
    """A place in the query text; both numbers start at 1."""

    line: int
    column: int


NOWHERE = Position(1, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class SyntaxNode:
    at: Position = field(default=NOWHERE, compare=False, repr=False)


# ── windows ────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class TimeWindow(SyntaxNode):
    """A length of event time; also used for EVERY and for offsets."""

    millis: int


@dataclass(frozen=True, slots=True)
class EventWindow(SyntaxNode):
    """A number of records; also used for EVERY n EVENTS."""

    events: int


@dataclass(frozen=True, slots=True)
class SessionWindow(SyntaxNode):
    """Records with gaps no longer than this between them."""

    gap_millis: int


WindowClause = TimeWindow | EventWindow | SessionWindow
Interval = TimeWindow | EventWindow


# ── expressions ────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Number(SyntaxNode):
    value: float


@dataclass(frozen=True, slots=True)
class Text(SyntaxNode):
    """A string constant: quoted on the right of a comparison or inside IN (…)."""

    value: str


@dataclass(frozen=True, slots=True)
class Metric(SyntaxNode):
    """A name: a field of the record, a stream with one value, or an insight."""

    name: str
    streams: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reference(SyntaxNode):
    """`INSIGHT name`: the insight of that name and nothing else."""

    name: str


@dataclass(frozen=True, slots=True)
class Negate(SyntaxNode):
    operand: Expression


@dataclass(frozen=True, slots=True)
class Binary(SyntaxNode):
    """`left operator right` with operator one of + - * / %."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Call(SyntaxNode):
    """`FUNCTION[parameters](arguments WHEN condition, window, offset) BY keys`.

    The function's name is upper case; aliases are kept as written and resolved by the plan.
    A declared function keeps the case it was declared with.
    """

    function: str
    arguments: tuple[Expression, ...]
    parameters: tuple[float, ...] = ()
    condition: Condition | None = None
    window: WindowClause | None = None
    offset: TimeWindow | None = None
    keys: tuple[KeyExpression, ...] = ()


Expression = Number | Text | Metric | Reference | Negate | Binary | Call
KeyExpression = Metric | Call
"""A key of BY: a field of the record, or a per-record function such as GEOHASH."""


# ── conditions ─────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Comparison(SyntaxNode):
    """`left operator right`; a missing left side is the insight's value or the call's argument."""

    operator: str
    left: Expression | None
    right: Expression


@dataclass(frozen=True, slots=True)
class Membership(SyntaxNode):
    """`left IN (values)`; a missing left side is the insight's value or the call's argument."""

    left: Expression | None
    values: tuple[Number | Text, ...]


@dataclass(frozen=True, slots=True)
class And(SyntaxNode):
    left: Condition
    right: Condition


@dataclass(frozen=True, slots=True)
class Or(SyntaxNode):
    left: Condition
    right: Condition


@dataclass(frozen=True, slots=True)
class Not(SyntaxNode):
    operand: Condition


Condition = Comparison | Membership | And | Or | Not


# ── statements ─────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Parameter(SyntaxNode):
    """`key = value` inside a provider's parentheses."""

    key: str
    value: str | float


@dataclass(frozen=True, slots=True)
class Provider(SyntaxNode):
    name: str
    parameters: tuple[Parameter, ...] = ()

    def get(self, key: str) -> str | float | None:
        return next((p.value for p in self.parameters if p.key == key), None)


@dataclass(frozen=True, slots=True)
class Options(SyntaxNode):
    """What WITH says; None where it says nothing."""

    salience: int | None = None
    scheduler: str | None = None
    sample: float | None = None
    max_error: float | None = None
    confidence: float | None = None
    awareness: str | None = None
    allow: Condition | None = None
    signature: str | None = None
    algorithm: str | None = None
    neighbours: int | None = None
    radius: float | None = None


NO_OPTIONS = Options()


@dataclass(frozen=True, slots=True)
class Stream(SyntaxNode):
    name: str
    provider: Provider


@dataclass(frozen=True, slots=True)
class Insight(SyntaxNode):
    name: str
    expression: Expression
    keys: tuple[KeyExpression, ...] = ()
    when: Condition | None = None
    every: Interval | None = None
    options: Options = NO_OPTIONS
    to: Provider | None = None


@dataclass(frozen=True, slots=True)
class Function(SyntaxNode):
    """`FUNCTION name(arguments) = "module:callable"`."""

    name: str
    arguments: tuple[str, ...]
    target: str


Statement = Stream | Insight | Function


@dataclass(frozen=True, slots=True)
class QueryFile(SyntaxNode):
    statements: tuple[Statement, ...]

    @property
    def streams(self) -> tuple[Stream, ...]:
        return tuple(s for s in self.statements if isinstance(s, Stream))

    @property
    def insights(self) -> tuple[Insight, ...]:
        return tuple(s for s in self.statements if isinstance(s, Insight))

    @property
    def functions(self) -> tuple[Function, ...]:
        return tuple(s for s in self.statements if isinstance(s, Function))
