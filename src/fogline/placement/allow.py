"""`ALLOW WHEN`: the nodes that an insight may run on.

A condition speaks about a node: `node_id` (or `node`, `site`, `name`), `kind`, `engine`, `cores`,
`memory_mb`, `latitude`, `longitude`, and every label by its name. What a node does not have is
equal to nothing and not unequal either.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from fogline.language.ast import (
    And,
    Comparison,
    Condition,
    Expression,
    Membership,
    Metric,
    Not,
    Number,
    Or,
    Text,
)
from fogline.model.nodes import Node

_NAMES = ("node_id", "node", "site", "name")
_FACTS = ("kind", "engine", "cores", "memory_mb", "latitude", "longitude")
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def allows(condition: Condition | None, node: Node) -> bool:
    match condition:
        case None:
            return True
        case And(left=left, right=right):
            return allows(left, node) and allows(right, node)
        case Or(left=left, right=right):
            return allows(left, node) or allows(right, node)
        case Not(operand=operand):
            return not allows(operand, node)
        case Membership(left=left, values=values):
            return _fact(left, node) in [_constant(value) for value in values]
        case Comparison(operator=sign, left=left, right=right):
            return _compare(sign, _fact(left, node), _constant(right))


def _compare(sign: str, left: Any, right: Any) -> bool:
    if left is None or isinstance(left, str) != isinstance(right, str):
        return False
    return _COMPARE[sign](left, right)


def _fact(expression: Expression | None, node: Node) -> Any:
    if not isinstance(expression, Metric):
        return None
    name = expression.name
    if name in _NAMES:
        return node.name
    if name in _FACTS:
        return getattr(node, name)
    return _label(node.labels.get(name))


def _label(text: str | None) -> Any:
    try:
        return None if text is None else float(text)
    except ValueError:
        return text


def _constant(expression: Expression) -> Any:
    """A bare word is a text here: there are no fields to compare with."""
    if isinstance(expression, Metric):
        return expression.name
    return expression.value if isinstance(expression, Number | Text) else None
