"""Hypothesis strategies for every tree the parser can make."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from fogline.language.ast import (
    And,
    Binary,
    Call,
    Comparison,
    EventWindow,
    Expression,
    Function,
    Insight,
    Membership,
    Metric,
    Negate,
    Not,
    Number,
    Options,
    Or,
    Parameter,
    Provider,
    QueryFile,
    Reference,
    SessionWindow,
    Stream,
    Text,
    TimeWindow,
)
from fogline.language.limits import MAX_WINDOW_MILLIS

KEYWORDS = "every from in not insight session k r sample scheduler allow m s ms stream by and to"

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
bare = st.from_regex(r"[a-zé_][a-z0-9_]{0,5}", fullmatch=True) | st.sampled_from(KEYWORDS.split())
names = bare | texts
floats = st.floats(min_value=0, allow_infinity=False, allow_nan=False)
signed = st.floats(allow_infinity=False, allow_nan=False)
functions = st.sampled_from(["AVG", "SUM", "TOP_K", "F", "twice", "K", "M"])

times = st.builds(TimeWindow, st.integers(1, MAX_WINDOW_MILLIS))
intervals = times | st.builds(EventWindow, st.integers(1, 10**9))
sessions = st.builds(SessionWindow, st.integers(1, MAX_WINDOW_MILLIS))
metrics = st.builds(Metric, names, st.lists(names, max_size=2).map(tuple))
atoms = st.builds(Number, floats) | metrics | st.builds(Reference, names)


def lists(strategy: st.SearchStrategy[Any], least: int = 0) -> st.SearchStrategy[Any]:
    return st.lists(strategy, min_size=least, max_size=3).map(tuple)


@st.composite
def calls(draw: st.DrawFn, inner: st.SearchStrategy[Expression], keyed: bool = True) -> Call:
    arguments = draw(lists(inner))
    conditions = conditions_over(st.just(draw(inner)))
    window = draw(st.none() | intervals | sessions)
    return Call(
        draw(functions),
        arguments,
        draw(lists(signed)),
        draw(st.none() | conditions) if arguments else None,
        window,
        draw(st.none() | times) if isinstance(window, TimeWindow) else None,
        draw(keys) if keyed else (),
    )


def expressions_over(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    operators = st.sampled_from("+-*/%")
    return (
        st.builds(Negate, inner) | st.builds(Binary, operators, inner, inner) | calls(inner)
    )  # fmt: skip


def conditions_over(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Any]:
    comparison = st.builds(
        Comparison,
        st.sampled_from([">", ">=", "<", "<=", "==", "!="]),
        st.none() | inner,
        inner | st.builds(Text, texts),
    )
    values = lists(st.builds(Number, signed) | st.builds(Text, texts), 1)
    leaves = comparison | st.builds(Membership, st.none() | inner, values)
    return st.recursive(
        leaves,
        lambda c: st.builds(And, c, c) | st.builds(Or, c, c) | st.builds(Not, c),
        max_leaves=4,
    )


plain = st.builds(Metric, names)
keys = lists(plain | calls(plain, keyed=False))
expressions = st.recursive(atoms, expressions_over, max_leaves=8)
conditions = conditions_over(expressions)
providers = st.builds(
    Provider,
    bare,
    st.lists(st.builds(Parameter, bare, texts | signed), max_size=3, unique_by=lambda p: p.key).map(
        tuple
    ),
)
fractions = st.floats(0, 1, exclude_min=True, exclude_max=True)
some_text = texts.filter(bool) | st.sampled_from(["perf", "a-b_c", "AND", "1x"])
options = st.builds(
    Options,
    salience=st.none() | st.integers(0, 10**9),
    scheduler=st.none() | some_text,
    sample=st.none() | fractions,
    max_error=st.none() | fractions,
    confidence=st.none() | st.floats(0, 0.999999, exclude_min=True),
    awareness=st.sampled_from([None, "COMPUTATIONS", "ACCURACY"]),
    allow=st.none() | conditions,
    signature=st.none() | st.from_regex(r"\A[A-Za-z0-9][A-Za-z0-9._@-]{0,63}\Z"),
    algorithm=st.none() | some_text,
    neighbours=st.none() | st.integers(1, 10**9),
    radius=st.none() | floats.filter(bool),
)


@st.composite
def insights(draw: st.DrawFn) -> Insight:
    expression, group = draw(expressions), draw(keys)
    if isinstance(expression, Call) and not group:
        # Such a BY is the insight's own, so the parser never leaves it with the call.
        expression = replace(expression, keys=())
    return Insight(
        draw(bare),
        expression,
        group,
        draw(st.none() | conditions),
        draw(st.none() | intervals),
        draw(options),
        draw(st.none() | providers),
    )


statements = st.builds(Stream, bare, providers) | insights()
twice = Function("twice", ("a", "b"), "module:twice")
files = lists(statements).map(lambda some: QueryFile((*some, twice)))
