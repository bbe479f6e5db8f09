"""Text to tree: every construct of the language, and what surrounds it."""

from __future__ import annotations

import logging
from importlib import resources

import pytest
from lark import Lark, logger

from fogline.language import parse
from fogline.language.ast import (
    Binary,
    Call,
    Condition,
    Expression,
    Function,
    Insight,
    Position,
    Statement,
)
from tests.language.cases import CONDITIONS, EXPRESSIONS, STATEMENTS


def only(text: str) -> Statement:
    (statement,) = parse(text).statements
    return statement


def insight(text: str) -> Insight:
    statement = only(text)
    assert isinstance(statement, Insight)
    return statement


@pytest.mark.parametrize(("text", "tree"), EXPRESSIONS)
def test_expression(text: str, tree: Expression) -> None:
    assert insight(f"i = COMPUTE {text}\n").expression == tree


@pytest.mark.parametrize(("text", "tree"), CONDITIONS)
def test_condition(text: str, tree: Condition) -> None:
    assert insight(f"i = COMPUTE q WHEN {text}").when == tree
    assert insight(f"i = COMPUTE q WITH ALLOW WHEN {text}").options.allow == tree
    filtered = insight(f"i = COMPUTE F(q WHEN {text}, 1 s)").expression
    assert isinstance(filtered, Call)
    assert filtered.condition == tree


@pytest.mark.parametrize(("text", "tree"), STATEMENTS)
def test_statement(text: str, tree: Statement) -> None:
    assert only(text) == tree


@pytest.mark.parametrize("text", ["", " \n", ";;", "# nothing\n", "/* a ** b */ // c", "\ufeff"])
def test_nothing_to_compute(text: str) -> None:
    assert parse(text).statements == ()


def test_statements_keep_their_order() -> None:
    file = parse("s = STREAM FROM m(); i = COMPUTE a;; FUNCTION f() = 'a:b';")
    assert [s.name for s in file.statements] == ["s", "i", "f"]
    assert [len(x) for x in (file.streams, file.insights, file.functions)] == [1, 1, 1]


@pytest.mark.parametrize("order", ["{use}; {declare}", "{declare}; {use}"])
def test_declared_functions_keep_their_case(order: str) -> None:
    use, declare = "i = COMPUTE twice(Twice(avg(a)))", 'FUNCTION /* x */ twice(a) = "m:twice"'
    file = parse(order.format(use=use, declare=declare))
    outer = file.insights[0].expression
    assert isinstance(outer, Call)
    inner = outer.arguments[0]
    assert isinstance(inner, Call)
    assert (outer.function, inner.function) == ("twice", "TWICE")


@pytest.mark.parametrize("where", ["# FUNCTION avg(a)\n", "/* FUNCTION avg(a) */"])
def test_a_comment_declares_nothing(where: str) -> None:
    expression = insight(where + 'i = COMPUTE avg("FUNCTION avg(")').expression
    assert isinstance(expression, Call)
    assert expression.function == "AVG"


def test_one_file_leaves_no_trace_in_the_next() -> None:
    assert isinstance(only("FUNCTION avg(a) = 'm:avg'"), Function)
    test_a_comment_declares_nothing("")


def test_positions() -> None:
    file = parse("s = STREAM FROM m();\n  i = COMPUTE a +\n\tAVG(b, 10 s)")
    assert file.insights[0].at == Position(2, 3)
    total = file.insights[0].expression
    assert total.at == Position(2, 15)
    assert isinstance(total, Binary)
    assert total.right.at == Position(3, 2)
    assert isinstance(total.right, Call)
    assert total.right.window is not None
    assert total.right.window.at == Position(3, 9)


def test_the_grammar_has_only_the_conflicts_it_means(caplog: pytest.LogCaptureFixture) -> None:
    grammar = resources.files("fogline.language").joinpath("grammar.lark").read_text("utf-8")
    with caplog.at_level(logging.DEBUG, logger="lark"):
        logger.addHandler(caplog.handler)
        Lark(grammar, start="file", parser="lalr", debug=True)
        logger.removeHandler(caplog.handler)
    found = {m.split(":")[0] for m in caplog.messages if "conflict" in m.lower()}
    assert found == {f"Shift/Reduce conflict for terminal {word}" for word in ("_AND", "BY")}
