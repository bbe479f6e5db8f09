"""From a tree back to query text that parses to an equal tree.

Works with a list of pending pieces instead of recursion, so it prints any tree the parser makes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from fogline.language.ast import (
    And,
    Binary,
    Call,
    Comparison,
    Condition,
    EventWindow,
    Expression,
    Function,
    Insight,
    KeyExpression,
    Membership,
    Metric,
    Negate,
    Not,
    Number,
    Options,
    Or,
    Provider,
    QueryFile,
    Reference,
    SessionWindow,
    Statement,
    Stream,
    Text,
    WindowClause,
)
from fogline.language.words import (
    is_bare,
    quote,
    write_duration,
    write_name,
    write_number,
    write_word,
)

LINE_LENGTH = 100

_OR, _AND, _NOT, _COMPARISON, _SUM, _PRODUCT, _UNARY, _ATOM = range(8)


@dataclass(frozen=True, slots=True)
class _Place:
    """A node still to be printed, and how tightly what stands around it binds."""

    node: Expression | Condition
    level: int = _OR
    last_argument: bool = False


_Piece = str | _Place


def print_query(file: QueryFile) -> str:
    """The whole file, one statement after the other."""
    return "".join(_statement(statement) + ";\n" for statement in file.statements)


def print_expression(expression: Expression) -> str:
    return _print(_Place(expression, _SUM))


def print_condition(condition: Condition) -> str:
    return _print(_Place(condition))


def print_window(window: WindowClause) -> str:
    match window:
        case EventWindow(events):
            return f"{events} EVENTS"
        case SessionWindow(gap):
            return f"SESSION {write_duration(gap)}"
    return write_duration(window.millis)


# ── statements ─────────────────────────────────────────────────────────────────────────────────


def _statement(statement: Statement) -> str:
    match statement:
        case Stream():
            return f"{statement.name} = STREAM FROM {_provider(statement.provider)}"
        case Function():
            names = ", ".join(statement.arguments)
            return f"FUNCTION {statement.name}({names}) = {quote(statement.target)}"
    return _insight(statement)


def _insight(insight: Insight) -> str:
    lines = [f"{insight.name} = COMPUTE {print_expression(insight.expression)}"]
    lines += _clauses(insight)
    short = " ".join(lines)
    return short if len(short) < LINE_LENGTH else "\n    ".join(lines)


def _clauses(insight: Insight) -> Iterator[str]:
    if insight.keys:
        yield "BY " + _keys(insight.keys)
    if insight.when is not None:
        yield "WHEN " + print_condition(insight.when)
    if insight.every is not None:
        yield "EVERY " + print_window(insight.every)
    options = " AND ".join(_options(insight.options))
    if options:
        yield "WITH " + options
    if insight.to is not None:
        yield "TO " + _provider(insight.to)


def _options(options: Options) -> Iterator[str]:
    numbers = (
        ("SALIENCE", options.salience),
        ("SAMPLE", options.sample),
        ("MAX_ERROR", options.max_error),
        ("CONFIDENCE", options.confidence),
    )
    yield from (f"{word} {write_number(value)}" for word, value in numbers if value is not None)
    if options.awareness is not None:
        yield f"AWARENESS ON {options.awareness}"
    if options.scheduler is not None:
        yield f"SCHEDULER = {write_word(options.scheduler)}"
    if options.algorithm is not None:
        yield f"ALGORITHM {write_word(options.algorithm)}"
    if options.neighbours is not None:
        yield f"K = {write_number(options.neighbours)}"
    if options.radius is not None:
        yield f"R = {write_number(options.radius)}"
    if options.signature is not None:
        yield f"SIGNATURE {quote(options.signature)}"
    if options.allow is not None:
        yield f"ALLOW WHEN {print_condition(options.allow)}"


def _provider(provider: Provider) -> str:
    values = (
        f"{p.key}={quote(p.value) if isinstance(p.value, str) else write_number(p.value)}"
        for p in provider.parameters
    )
    return f"{provider.name}({', '.join(values)})"


# ── expressions and conditions ─────────────────────────────────────────────────────────────────


def _print(first: _Place) -> str:
    output: list[str] = []
    pending: list[_Piece] = [first]
    while pending:
        piece = pending.pop()
        if isinstance(piece, str):
            output.append(piece)
        else:
            pending.extend(reversed(_bracket_place(piece)))
    return "".join(output)


def _bracket_place(place: _Place) -> list[_Piece]:
    pieces = _pieces(place.node)
    if _level(place) < place.level:
        return ["(", *pieces, ")"]
    return pieces


def _level(place: _Place) -> int:
    match place.node:
        case Or():
            return _OR
        case And():
            return _AND
        case Not():
            return _NOT
        case Comparison() | Membership():
            return _COMPARISON
        case Binary(operator=operator):
            return _SUM if operator in "+-" else _PRODUCT
        case Negate():
            return _UNARY
        case Call(keys=keys) if keys and not place.last_argument:
            return -1
    return _ATOM


def _pieces(node: Expression | Condition) -> list[_Piece]:
    match node:
        case Or(left, right):
            return [_Place(left, _OR), " OR ", _Place(right, _AND)]
        case And(left, right):
            return [_Place(left, _AND), " AND ", _Place(right, _NOT)]
        case Not(operand):
            return ["NOT ", _Place(operand, _NOT)]
        case Comparison():
            return _comparison(node)
        case Membership():
            return _membership(node)
        case Binary(operator, left, right):
            level = _SUM if operator in "+-" else _PRODUCT
            return [_Place(left, level), f" {operator} ", _Place(right, level + 1)]
        case Negate(operand):
            return ["-", _Place(operand, _UNARY)]
        case Call():
            return _call(node)
    return [_atom(node)]


def _atom(node: Number | Text | Metric | Reference) -> str:
    match node:
        case Number(value):
            return write_number(value)
        case Text(value):
            return quote(value)
        case Reference(name):
            return f"INSIGHT {write_name(name)}"
    if not node.streams:
        return write_name(node.name)
    return f"{write_name(node.name)} FROM ({', '.join(map(write_name, node.streams))})"


def _comparison(node: Comparison) -> list[_Piece]:
    right: list[_Piece] = [_Place(node.right, _SUM)]
    if isinstance(node.right, Metric) and not node.right.streams and not is_bare(node.right.name):
        right = ["(", *right, ")"]
    return [*_left_pieces(node.left), node.operator, " ", *right]


def _membership(node: Membership) -> list[_Piece]:
    return [*_left_pieces(node.left), f"IN ({', '.join(map(_atom, node.values))})"]


def _left_pieces(left: Expression | None) -> list[_Piece]:
    return [] if left is None else [_Place(left, _SUM), " "]


def _call(call: Call) -> list[_Piece]:
    pieces: list[_Piece] = [call.function]
    if call.parameters:
        pieces.append(f"[{', '.join(map(write_number, call.parameters))}]")
    pieces += ["(", *_join_pieces(_inside(call)), ")"]
    if call.keys:
        pieces += [" BY ", *_join_pieces([_Place(key)] for key in call.keys)]
    return pieces


def _inside(call: Call) -> Iterator[list[_Piece]]:
    for number, argument in enumerate(call.arguments, 1):
        last = number == len(call.arguments)
        pieces: list[_Piece] = [_Place(argument, _SUM, last and _safe_keys(argument))]
        if last and call.condition is not None:
            pieces += [" WHEN ", _Place(call.condition)]
        yield pieces
    for window in (call.window, call.offset):
        if window is not None:
            yield [print_window(window)]


def _safe_keys(argument: Expression) -> bool:
    """Whether the keys behind a call in the last argument are read as keys without parentheses."""
    return isinstance(argument, Call) and all(isinstance(key, Metric) for key in argument.keys[1:])


def _keys(keys: tuple[KeyExpression, ...]) -> str:
    return "".join(_print(_Place(key)) + ", " for key in keys)[:-2]


def _join_pieces(items: Iterable[list[_Piece]]) -> list[_Piece]:
    pieces: list[_Piece] = []
    for item in items:
        pieces += [", ", *item] if pieces else item
    return pieces
