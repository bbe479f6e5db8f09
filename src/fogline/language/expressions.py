"""Builds expressions and conditions while the parser reads them, without recursion."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from lark import Token, Transformer

from fogline.language import literals
from fogline.language.ast import (
    And,
    Binary,
    Comparison,
    Interval,
    Membership,
    Metric,
    Negate,
    Not,
    Number,
    Or,
    Reference,
    SessionWindow,
    Text,
)
from fogline.language.calls import Argument, CallParts
from fogline.language.literals import position
from fogline.language.parts import (
    Clause,
    Part,
    condition,
    deepest,
    expression,
    group_part,
    make_part,
)

DECLARED: ContextVar[frozenset[str]] = ContextVar("DECLARED", default=frozenset())
"""The functions the file declares; their names keep their case."""

_OPERATORS = {"≥": ">=", "≤": "<=", "≠": "!="}

Children = list[Any]


class ExpressionBuilder(Transformer[Token, Any]):
    """One method a rule of the grammar, named like the rule or its alias."""

    # ── atoms ──────────────────────────────────────────────────────────────────────────────

    def number(self, children: Children) -> Part:
        token = children[0]
        return Part(Number(literals.number(token), at=position(token)))

    def bare(self, children: Children) -> Token:
        token: Token = children[0]
        return token

    def name(self, children: Children) -> Part:
        token, *sources = children
        return Part(Metric(str(token), *sources, at=position(token)))

    def quoted_name(self, children: Children) -> Part:
        token, *sources = children
        metric = Metric(literals.string(token), *sources, at=position(token))
        return Part(metric, quoted=not sources)

    def sources(self, children: Children) -> tuple[str, ...]:
        return tuple(children)

    def source(self, children: Children) -> str:
        token: Token = children[0]
        return literals.string(token) if token.type == "STRING" else str(token)

    def reference(self, children: Children) -> Part:
        word, name = children
        return Part(Reference(str(name), at=position(word)))

    def quoted_reference(self, children: Children) -> Part:
        word, name = children
        return Part(Reference(literals.string(name), at=position(word)))

    def group(self, children: Children) -> Part:
        inner, *clauses = children
        return group_part(inner, tuple(clauses))

    # ── calls ──────────────────────────────────────────────────────────────────────────────

    def call(self, children: Children) -> Part:
        token, *rest = children
        declared = str(token) in DECLARED.get()
        parts = CallParts(token, declared)
        if rest and isinstance(rest[0], tuple):
            parts.parameters = rest.pop(0)
        for item in rest:
            parts.take(item)
        return parts.build()

    def call_parameters(self, children: Children) -> tuple[float, ...]:
        return tuple(children)

    def signed(self, children: Children) -> float:
        value = literals.number(children[-1])
        return -value if len(children) == 2 else value

    def argument(self, children: Children) -> Argument:
        return Argument(children[0])

    def filtered_argument(self, children: Children) -> Argument:
        value, when, test = children
        return Argument(value, test, position(when))

    def span(self, children: Children) -> Interval:
        *sign, amount, unit = children
        return literals.span(sign[0] if sign else None, amount, unit)

    def session(self, children: Children) -> SessionWindow:
        word, amount, unit = children
        return literals.session(literals.span(None, amount, unit), position(word))

    def keyed_call(self, children: Children) -> Part:
        call, _, keys = children
        node = replace(call.node, keys=tuple(key.node for key in keys))
        return replace(deepest((call, *keys)), node=node, tail=True)

    def keyed_argument(self, children: Children) -> Part:
        call, by, key = children
        return self.keyed_call([call, by, (key,)])

    # ── keys ───────────────────────────────────────────────────────────────────────────────

    def keys(self, children: Children) -> tuple[Part, ...]:
        return tuple(children)

    def key_name(self, children: Children) -> Part:
        return Part(Metric(str(children[0]), at=position(children[0])))

    def key_text(self, children: Children) -> Part:
        return Part(Metric(literals.string(children[0]), at=position(children[0])))

    def key_call(self, children: Children) -> Part:
        call: Part = children[0]
        return call

    # ── arithmetic ─────────────────────────────────────────────────────────────────────────

    def binary(self, children: Children) -> Part:
        left, operator, right = children
        node = Binary(str(operator), expression(left), expression(right), at=left.node.at)
        return make_part(node, (left, right), tail=right.tail)

    def negate(self, children: Children) -> Part:
        minus, operand = children
        node = Negate(expression(operand), at=position(minus))
        return make_part(node, (operand,), levels=1, tail=operand.tail)

    # ── conditions ─────────────────────────────────────────────────────────────────────────

    def comparison(self, children: Children) -> Part:
        left, operator, right = children
        return self._compare(left, operator, right)

    def own_comparison(self, children: Children) -> Part:
        operator, right = children
        return self._compare(None, operator, right)

    def _compare(self, left: Part | None, operator: Token, right: Part) -> Part:
        value = expression(right)
        if right.quoted and isinstance(value, Metric):
            value = Text(value.name, at=value.at)
        node = Comparison(
            _OPERATORS.get(operator, str(operator)),
            None if left is None else expression(left),
            value,
            at=position(operator) if left is None else left.node.at,
        )
        return make_part(node, (right,) if left is None else (left, right), tail=right.tail)

    def membership(self, children: Children) -> Part:
        left, _, values = children
        return make_part(Membership(expression(left), values, at=left.node.at), (left,))

    def own_membership(self, children: Children) -> Part:
        word, values = children
        return make_part(Membership(None, values, at=position(word)), ())

    def members(self, children: Children) -> tuple[Number | Text, ...]:
        return tuple(children)

    def member(self, children: Children) -> Number | Text:
        token = children[0]
        if token.type == "MEMBER_NUMBER":
            return Number(literals.number(token), at=position(token))
        value = literals.string(token) if token.type == "STRING" else str(token)
        return Text(value, at=position(token))

    def negation(self, children: Children) -> Part:
        word, operand = children
        node = Not(condition(operand), at=position(word))
        return make_part(node, (operand,), levels=1, tail=operand.tail)

    def both(self, children: Children) -> Part:
        left, right = children
        node = And(condition(left), condition(right), at=left.node.at)
        return make_part(node, (left, right), tail=right.tail)

    def either(self, children: Children) -> Part:
        left, right = children
        node = Or(condition(left), condition(right), at=left.node.at)
        return make_part(node, (left, right), tail=right.tail)

    # ── the clauses that may stand inside parentheses ──────────────────────────────────────

    def by_clause(self, children: Children) -> Clause:
        keys = tuple(key.node for key in children[1])
        return Clause("BY", keys, position(children[0]))

    def when_clause(self, children: Children) -> Clause:
        return Clause("WHEN", children[1], position(children[0]))
