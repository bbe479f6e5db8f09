"""Conditions as people write them: `temperature > 20 and site == 'a'`.

The text is read with Python's own grammar, and only what stands below is taken from it: nothing is
ever evaluated. Besides comparisons, `and`, `or`, `not`, `x in ('a', 'b')` and `x.startswith('a')`.
"""

from __future__ import annotations

import ast
from typing import Any

from fogline.gateway.operators.base import BadStep

_LONGEST = 2000
_SIGNS: dict[type[ast.cmpop], str] = {
    ast.Gt: ">", ast.GtE: ">=", ast.Lt: "<", ast.LtE: "<=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip
_TURNED = {">": "<", ">=": "<=", "<": ">", "<=": ">=", "==": "==", "!=": "!="}

Tree = dict[str, Any]


def parse_when(text: str) -> Tree:
    """The condition as a JSON tree. Raises `BadStep` for anything that is none."""
    if len(text) > _LONGEST:
        raise BadStep(f"a condition has at most {_LONGEST} characters")
    try:
        return _condition(ast.parse(text.strip(), mode="eval").body)
    except SyntaxError as error:
        raise BadStep(f"'when' cannot be read: {error.msg}") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise BadStep("'when' cannot be read") from error


def _condition(node: ast.expr) -> Tree:
    match node:
        case ast.BoolOp(op=ast.And(), values=values):
            return {"op": "and", "args": [_condition(value) for value in values]}
        case ast.BoolOp(op=ast.Or(), values=values):
            return {"op": "or", "args": [_condition(value) for value in values]}
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return {"op": "not", "arg": _condition(operand)}
        case ast.Compare():
            return _compare(node)
        case ast.Call(func=ast.Attribute(value=field, attr="startswith"), args=[prefix]):
            if not node.keywords:
                return {"op": "prefix", "column": _field(field), "value": _constant(prefix)}
    raise BadStep(f"'when' cannot hold {_show_node(node)}")


def _compare(node: ast.Compare) -> Tree:
    sides = [node.left, *node.comparators]
    parts = [_pair(sides[i], op, sides[i + 1]) for i, op in enumerate(node.ops)]
    return parts[0] if len(parts) == 1 else {"op": "and", "args": parts}


def _pair(left: ast.expr, op: ast.cmpop, right: ast.expr) -> Tree:
    if isinstance(op, ast.In | ast.NotIn):
        if not isinstance(right, ast.Tuple | ast.List):
            raise BadStep("'when': 'in' must be followed by a list, as in x in ('a', 'b')")
        values = [_constant(item) for item in right.elts]
        found = {"op": "in", "column": _field(left), "values": values}
        return found if isinstance(op, ast.In) else {"op": "not", "arg": found}
    sign = _SIGNS.get(type(op))
    if sign is None:
        raise BadStep("'when': compare with > >= < <= == !=")
    if isinstance(left, ast.Name | ast.Attribute):
        return {"op": sign, "column": _field(left), "value": _constant(right)}
    return {"op": _TURNED[sign], "column": _field(right), "value": _constant(left)}


def _field(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=name):
            return f"{_field(value)}.{name}"
    raise BadStep(f"'when': {_show_node(node)} is not a field")


def _constant(node: ast.expr) -> Any:
    match node:
        case ast.Constant(value=bool() | int() | float() | str() as value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return -value
    raise BadStep(f"'when': {_show_node(node)} is neither a number nor a text")


def _show_node(node: ast.expr) -> str:
    return ast.unparse(node)[:60]
