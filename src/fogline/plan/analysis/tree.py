"""Walks over the syntax tree that the analysis needs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from fogline.language import ast
from fogline.language.functions import Kind, lookup


def is_aggregate(call: ast.Call) -> bool:
    signature = lookup(call.function)
    return signature is not None and signature.kind is not Kind.RECORD


def calls_in(
    expression: ast.Expression | None, condition: ast.Condition | None
) -> Iterator[ast.Call]:
    """Calls at the top of an expression and a condition: arguments of aggregates not entered."""
    for part in _tops(expression, condition):
        yield from _calls(part)


def _tops(
    expression: ast.Expression | None, condition: ast.Condition | None
) -> Iterator[ast.Expression]:
    if expression is not None:
        yield expression
    if condition is not None:
        yield from operands(condition)


def _calls(expression: ast.Expression) -> Iterator[ast.Call]:
    if isinstance(expression, ast.Call):
        yield expression
        if not is_aggregate(expression):
            for argument in expression.arguments:
                yield from _calls(argument)
    elif isinstance(expression, ast.Negate):
        yield from _calls(expression.operand)
    elif isinstance(expression, ast.Binary):
        yield from _calls(expression.left)
        yield from _calls(expression.right)


def operands(condition: ast.Condition) -> Iterator[ast.Expression]:
    """The expressions on both sides of every comparison."""
    if isinstance(condition, ast.And | ast.Or):
        yield from operands(condition.left)
        yield from operands(condition.right)
    elif isinstance(condition, ast.Not):
        yield from operands(condition.operand)
    else:
        if condition.left is not None:
            yield condition.left
        if isinstance(condition, ast.Comparison):
            yield condition.right


def names_outside_aggregates(
    expression: ast.Expression, condition: ast.Condition | None
) -> Iterator[ast.Metric | ast.Reference]:
    for part in _tops(expression, condition):
        yield from _names(part)


def _names(expression: ast.Expression) -> Iterator[ast.Metric | ast.Reference]:
    if isinstance(expression, ast.Metric | ast.Reference):
        yield expression
    elif isinstance(expression, ast.Negate):
        yield from _names(expression.operand)
    elif isinstance(expression, ast.Binary):
        yield from _names(expression.left)
        yield from _names(expression.right)
    elif isinstance(expression, ast.Call) and not is_aggregate(expression):
        for argument in expression.arguments:
            yield from _names(argument)


def strip_keys(expression: ast.Expression) -> ast.Expression:
    """The expression without BY on the aggregates at its top."""
    if isinstance(expression, ast.Call):
        return replace(expression, keys=())
    if isinstance(expression, ast.Negate):
        return replace(expression, operand=strip_keys(expression.operand))
    if isinstance(expression, ast.Binary):
        left, right = strip_keys(expression.left), strip_keys(expression.right)
        return replace(expression, left=left, right=right)
    return expression
