"""Tree to text: what is printed parses back to an equal tree."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from fogline.language import (
    parse,
    print_condition,
    print_expression,
    print_query,
    print_window,
)
from fogline.language.ast import (
    Condition,
    EventWindow,
    Expression,
    Insight,
    QueryFile,
    SessionWindow,
    Statement,
    TimeWindow,
    WindowClause,
)
from tests.language.cases import CONDITIONS, EXPRESSIONS, STATEMENTS
from tests.language.trees import files


@pytest.mark.parametrize("tree", [tree for _, tree in EXPRESSIONS])
def test_expression(tree: Expression) -> None:
    file = parse(f"i = COMPUTE {print_expression(tree)}")
    assert file.insights[0].expression == tree


@pytest.mark.parametrize("tree", [tree for _, tree in CONDITIONS])
def test_condition(tree: Condition) -> None:
    file = parse(f"i = COMPUTE a WHEN {print_condition(tree)}")
    assert file.insights[0].when == tree


@pytest.mark.parametrize("tree", [tree for _, tree in STATEMENTS])
def test_statement(tree: Statement) -> None:
    file = QueryFile((tree,))
    assert parse(print_query(file)) == file


@settings(suppress_health_check=list(HealthCheck))
@given(files)
def test_any_tree(file: QueryFile) -> None:
    assert parse(print_query(file)) == file


@pytest.mark.parametrize(
    ("window", "text"),
    [
        (TimeWindow(1), "1 MILLIS"),
        (TimeWindow(1500), "1500 MILLIS"),
        (TimeWindow(1000), "1 SECOND"),
        (TimeWindow(90_000), "90 SECONDS"),
        (TimeWindow(120_000), "2 MINUTES"),
        (TimeWindow(3_600_000), "1 HOUR"),
        (TimeWindow(172_800_000), "2 DAYS"),
        (EventWindow(5), "5 EVENTS"),
        (SessionWindow(30_000), "SESSION 30 SECONDS"),
    ],
)
def test_window(window: WindowClause, text: str) -> None:
    assert print_window(window) == text


def test_how_it_looks() -> None:
    text = (
        'cars = STREAM FROM mqtt(topic="cars/#", lateness="2 s", n=5);\n'
        "ratio = COMPUTE SUM(a, 1 MINUTE) / SUM(b, 1 MINUTE) BY city WHEN > 0.5 EVERY 5 SECONDS;\n"
        "busy = COMPUTE TOP_K[10](SUM(a FROM (cars) WHEN b > 3, 1 MINUTE) BY city, road)\n"
        "    WHEN > 3 AND NOT city IN (\"x\", 5)\n"
        "    EVERY 10 EVENTS\n"
        "    WITH SALIENCE 2 AND SCHEDULER = perf\n"
        '    TO mqtt(topic="cmd/{city}");\n'
        'FUNCTION twice(a) = "my:twice";\n'
    )  # fmt: skip
    assert print_query(parse(text)) == text


@pytest.mark.parametrize(
    "expression",
    [
        "+".join("1" * 200),
        "-(1 +" * 45 + "a" + ")" * 45,
        "F(" * 100 + "a" + ")" * 100,
        "F(a WHEN NOT b > 1 + 2 * " * 30 + "a" + ")" * 30,
        "F(SUM(a) BY b, G(c)," * 90 + "a" + ")" * 90,
    ],
)
def test_deep_trees(expression: str) -> None:
    tree = parse(f"i = COMPUTE {expression}")
    printed = print_query(tree)
    again = parse(printed)
    assert print_query(again) == printed
    assert isinstance(again.insights[0], Insight)
