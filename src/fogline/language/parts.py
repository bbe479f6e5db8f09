"""Expressions and conditions while they are being built.

A `Part` is a node of the tree together with what the node itself does not say: how deep it is,
whether it stands in parentheses, and whether it ends with a call's own BY.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from fogline.language.ast import (
    And,
    Binary,
    Call,
    Comparison,
    Condition,
    Expression,
    KeyExpression,
    Membership,
    Metric,
    Negate,
    Not,
    Or,
    Position,
)
from fogline.language.faults import Fault
from fogline.language.limits import MAX_HEIGHT, MAX_NESTING

_NO_NODE = Metric("")
CONDITIONS = (Comparison, Membership, And, Or, Not)


@dataclass(frozen=True, slots=True)
class Clause:
    """BY, WHEN, EVERY, WITH or TO with what it says."""

    kind: str
    value: object
    at: Position


@dataclass(slots=True, eq=False)
class Part:
    node: Expression | Condition
    nesting: int = 0
    height: int = 1
    quoted: bool = False
    """A quoted string and nothing else: a name, or a text if it is what a comparison compares."""
    tail: bool = False
    """The last thing in it is a call with a BY, not closed off by parentheses."""
    inner: Part | None = None
    """For a part in parentheses: what stands in them …"""
    clauses: tuple[Clause, ...] = ()
    """… and the clauses behind it, inside the parentheses."""


def make_part(
    node: Expression | Condition,
    parts: Iterable[Part],
    *,
    levels: int = 0,
    tail: bool = False,
) -> Part:
    """The part for a node over other parts; `levels` is what it adds to the nesting."""
    below = deepest(parts)
    return check_depth(Part(node, below.nesting + levels, below.height + 1, tail=tail))


def deepest(parts: Iterable[Part]) -> Part:
    """A part without a node of its own that is as deep as the deepest of these."""
    nesting, height = 0, 0
    for part in parts:
        nesting = max(nesting, part.nesting)
        height = max(height, part.height)
    return Part(_NO_NODE, nesting, height)


def check_depth(part: Part) -> Part:
    if part.nesting > MAX_NESTING:
        raise too_deep(part.node.at, f"more than {MAX_NESTING} levels of nesting")
    if part.height > MAX_HEIGHT:
        raise too_deep(part.node.at, f"an expression of more than {MAX_HEIGHT} operations in a row")
    return part


def too_deep(at: Position, what: str) -> Fault:
    return Fault("TOO_DEEP", what, at, "compute a part of it as an insight of its own")


def group_part(inner: Part, clauses: tuple[Clause, ...]) -> Part:
    """A part in parentheses. Parentheses around a name or a call with BY add no level, since the
    printer sets them where the text may have had none."""
    free = inner.inner is None and (inner.nesting == 0 or inner.tail)
    levels = 0 if free else 1
    return check_depth(
        Part(inner.node, inner.nesting + levels, inner.height, inner=inner, clauses=clauses)
    )


def expression(part: Part) -> Expression:
    """The part's node where a value must stand."""
    _refuse_clauses(part)
    node = part.node
    if isinstance(node, CONDITIONS):
        raise Fault(
            "SYNTAX",
            "expected a value, found a condition",
            node.at,
            "conditions stand behind WHEN",
        )
    return node


def condition(part: Part) -> Condition:
    """The part's node where a condition must stand."""
    _refuse_clauses(part)
    node = part.node
    if not isinstance(node, CONDITIONS):
        raise Fault(
            "SYNTAX",
            "expected a condition such as x > 3, found only a value",
            node.at,
            "compare it with > >= < <= == != or IN (…)",
        )
    return node


def _refuse_clauses(part: Part) -> None:
    if part.clauses:
        clause = part.clauses[0]
        raise Fault(
            "SYNTAX",
            f"{clause.kind} cannot stand inside these parentheses",
            clause.at,
            "put it behind the whole expression",
        )


def unwrap_part(part: Part) -> tuple[Part, tuple[Clause, ...]]:
    """What stands in the outermost parentheses, and the clauses found inside them."""
    clauses: tuple[Clause, ...] = ()
    while part.inner is not None:
        clauses = part.clauses + clauses
        part = part.inner
    return part, clauses


def tail_keys(node: Expression | Condition) -> tuple[KeyExpression, ...]:
    """The keys of the call that a part with a tail ends with."""
    while not isinstance(node, Call):
        node = _last(node)
    return node.keys


def with_tail_keys(node: Any, keys: tuple[KeyExpression, ...]) -> Any:
    """The same tree, with other keys on the call it ends with."""
    path = []
    while not isinstance(node, Call):
        path.append(node)
        node = _last(node)
    node = replace(node, keys=keys)
    for parent in reversed(path):
        side = "operand" if isinstance(parent, Negate | Not) else "right"
        node = replace(parent, **{side: node})
    return node


def _last(node: Expression | Condition) -> Expression | Condition:
    match node:
        case Binary() | Comparison() | And() | Or():
            return node.right
        case Negate() | Not():
            return node.operand
    raise TypeError(f"{type(node).__name__} ends with no call")
