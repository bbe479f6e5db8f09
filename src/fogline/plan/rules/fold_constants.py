"""Constant folding: what can be computed now is not computed for every record."""

from __future__ import annotations

import math

from fogline.plan.expressions import Apply, Arithmetic, Constant, Expr
from fogline.plan.operators import Plan
from fogline.plan.rules.shared import map_expressions


def fold_constants(plan: Plan) -> Plan:
    return map_expressions(plan, fold)


def fold(expr: Expr) -> Expr:
    if isinstance(expr, Arithmetic):
        return _fold_arithmetic(expr)
    if isinstance(expr, Apply) and not expr.target:
        return _fold_apply(expr)
    return expr


def _fold_arithmetic(expr: Arithmetic) -> Expr:
    left, right = expr.left, expr.right
    if isinstance(left, Constant) and isinstance(right, Constant):
        return Constant(compute(expr.operator, left.value, right.value))
    if expr.operator in "*/" and right == Constant(1.0):
        return left
    if expr.operator == "*" and left == Constant(1.0):
        return right
    return expr


def _fold_apply(expr: Apply) -> Expr:
    argument = expr.arguments[0]
    if not isinstance(argument, Constant) or not isinstance(argument.value, float):
        return expr
    x = argument.value
    if expr.function == "SQRT":
        return Constant(math.sqrt(x) if x >= 0 else None)
    if expr.function == "ABS":
        return Constant(abs(x))
    return Constant(x * x) if expr.function == "SQR" else expr


def compute(operator: str, left: object, right: object) -> float | None:
    """Arithmetic with the language's rules: anything by zero, or with nothing, is nothing."""
    if not isinstance(left, int | float) or not isinstance(right, int | float):
        return None
    a, b = float(left), float(right)
    try:
        if operator in "/%" and b == 0:
            return None
        if operator == "%":
            return math.fmod(a, b)
        result = {"+": a + b, "-": a - b, "*": a * b, "/": a / b if b else 0.0}[operator]
    except OverflowError:
        return None
    return result if math.isfinite(result) else None
