"""What a person is told about a wrong text: place, code, plain words and a hint."""

from __future__ import annotations

import pytest

from fogline.common.errors import Problem, QueryError
from fogline.language import parse


def problems(text: str) -> tuple[Problem, ...]:
    with pytest.raises(QueryError) as caught:
        parse(text)
    return caught.value.problems


UNCLOSED = "')' is missing for the bracket opened at line 1, column 16"

SYNTAX = [
    ("x = COMPTE a", 1, 5, "expected COMPUTE or STREAM, found 'COMPTE'", "did you mean COMPUTE?"),
    ("x = COMPUTE F(a, 1 s) EVRY 5 s", 1, 23, None, "did you mean EVERY?"),
    ("x = COMPUTE F(a, 1 s) WHERE > 3", 1, 23, None, "did you mean WHEN?"),
    ("x = COMPUTE F(a, 9 SECNDS)", 1, 20, "expected a unit such as SECONDS, found 'SECNDS'",
     "did you mean SECONDS?"),
    ("x = COMPUTE F(a, )", 1, 18, "expected a window such as 10 SECONDS, found ')'", ""),
    ("x = COMPUTE AVG(a, 9 s EVERY 5 s", 1, 24, "expected ')' or ',', found 'EVERY'", UNCLOSED),
    ("x = COMPUTE AVG(a", 1, 18, None, UNCLOSED),
    ("x = COMPUTE AVG(a;", 1, 18, None, UNCLOSED),
    ("x = COMPUTE a)", 1, 14, None, "nothing is open here that it could close"),
    ("x = COMPUTE a WHEN b = 5", 1, 22, "expected a comparison such as ==, found '='",
     "write == to compare"),
    ("x = COMPUTE a WHEN b > 1 AND k = 5", 1, 26, None,
     "options stand behind WITH; to compare, write =="),
    ("x = COMPUTE a > 3", 1, 15, None, "filter with WHEN > …"),
    ("x = COMPUTE a WHEN b > 1 && c > 2", 1, 26, None, "did you mean AND?"),
    ("x = COMPUTE “a”", 1, 13, "'“' is no quotation mark here", 'use straight quotes: "'),
    ('x = COMPUTE "a\n', 1, 13, "this string is not closed",
     'put " at its end, on the same line'),
    ("x = COMPUTE 'a;", 1, 13, "this string is not closed",
     "put ' at its end, on the same line"),
    ("x = COMPUTE a\n/* more", 2, 1, "this comment is not closed", "put */ at its end"),
    ("x = COMPUTE a EVERY", 1, 20,
     "expected an interval such as 10 SECONDS, found the end of the text", ""),
    ("x = COMPUTE a EVERY 5", 1, 22,
     "expected a unit such as SECONDS, found the end of the text", ""),
    ("x COMPUTE a", 1, 3, None, "put = before COMPUTE"),
    ("COMPUTE a", 1, 9, None, "give it a name: name = COMPUTE …"),
    ("x = COMPUTE F(a b)", 1, 17, None, "put , between the two"),
    ("x = STREAM FROM m(lateness=2 s)", 1, 30, None, 'put quotes around it: "2 s"'),
    ("x = COMPUTE a WITH SAMPLE .2 SALIENCE 3", 1, 30, None, "join options with AND"),
    ("x = COMPUTE a WITH FOO 3", 1, 20,
     "expected an option such as SALIENCE 5, found 'FOO'", ""),
    ("x = COMPUTE a\n  WHEN b", 2, 8, "expected a condition such as x > 3, found only a value",
     "compare it with > >= < <= == != or IN (…)"),
    ("x = COMPUTE (a > 1)", 1, 14, "expected a value, found a condition",
     "conditions stand behind WHEN"),
    ("x = COMPUTE (a WHEN > 1) * 2", 1, 16, "WHEN cannot stand inside these parentheses",
     "put it behind the whole expression"),
    ("x = COMPUTE F(a, 1 s, b)", 1, 23, None, "arguments stand before the window"),
    ("x = COMPUTE NOT(a)", 1, 13, "NOT is a word of the language and names no function", ""),
    ("x = COMPUTE a\x00", 1, 14, None, ""),
    ("x : COMPUTE a", 1, 5, "expected STREAM, found 'COMPUTE'", ""),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "column", "message", "hint"), SYNTAX)
def test_syntax(text: str, line: int, column: int, message: str | None, hint: str) -> None:
    first = problems(text)[0]
    assert (first.code, first.line, first.column, first.hint) == ("SYNTAX", line, column, hint)
    if message is not None:
        assert first.message == message


VALUES = [
    ("x = COMPUTE F(a, 0 s)", 18, "BAD_WINDOW"),
    ("x = COMPUTE F(a, -5 s)", 18, "BAD_WINDOW"),
    ("x = COMPUTE F(a, 0 EVENTS)", 18, "BAD_WINDOW"),
    ("x = COMPUTE F(a, 1.5 EVENTS)", 18, "BAD_WINDOW"),
    ("x = COMPUTE F(a, 1.5 ms)", 18, "BAD_WINDOW"),
    ("x = COMPUTE F(a, 3651 DAYS)", 18, "BAD_WINDOW"),
    ("x = COMPUTE F(a, 1e999 DAYS)", 18, "BAD_WINDOW"),
    ("x = COMPUTE F(a, 1e-999999999 DAYS)", 18, "BAD_WINDOW"),
    ("x = COMPUTE F(a, 1 s, 5 EVENTS)", 23, "BAD_WINDOW"),
    ("x = COMPUTE F(a, 5 EVENTS, 1 s)", 28, "BAD_WINDOW"),
    ("x = COMPUTE F(a, 1 s, 1 s, 1 s)", 28, "BAD_WINDOW"),
    ("x = COMPUTE F(a, SESSION 5 EVENTS)", 26, "BAD_WINDOW"),
    ("x = COMPUTE a EVERY 0 s", 21, "BAD_WINDOW"),
    ("x = COMPUTE a WITH SAMPLE 0", 20, "BAD_VALUE"),
    ("x = COMPUTE a WITH SAMPLE 1.01", 20, "BAD_VALUE"),
    ("x = COMPUTE a WITH SALIENCE 1.5", 20, "BAD_VALUE"),
    ("x = COMPUTE a WITH SALIENCE 1 AND MAX_ERROR -1", 35, "BAD_VALUE"),
    ("x = COMPUTE a WITH CONFIDENCE 1", 20, "BAD_VALUE"),
    ("x = COMPUTE a WITH K = 0", 20, "BAD_VALUE"),
    ("x = COMPUTE a WITH R = 0", 20, "BAD_VALUE"),
    ("x = COMPUTE a WITH SIGNATURE ''", 30, "BAD_VALUE"),
    ("x = COMPUTE a WITH SIGNATURE 'a b'", 30, "BAD_VALUE"),
    ("x = COMPUTE a WITH SALIENCE 1 AND SIGNATURE = '#'", 47, "BAD_VALUE"),
    ("x = COMPUTE a WITH SIGNATURE '+'", 30, "BAD_VALUE"),
    ("x = COMPUTE a WITH SIGNATURE '*'", 30, "BAD_VALUE"),
    ("x = COMPUTE a WITH SIGNATURE 'a,b'", 30, "BAD_VALUE"),
    ("x = COMPUTE a WITH SIGNATURE '-a'", 30, "BAD_VALUE"),
    ("x = COMPUTE a WITH SIGNATURE 'schlüssel'", 30, "BAD_VALUE"),
    (r"x = COMPUTE a WITH SIGNATURE 'it\'s'", 30, "BAD_VALUE"),
    (r"x = COMPUTE a WITH SIGNATURE 'a\n'", 30, "BAD_VALUE"),
    (f"x = COMPUTE a WITH SIGNATURE '{'a' * 65}'", 30, "BAD_VALUE"),
    ("x = COMPUTE 1e999", 13, "BAD_VALUE"),
    (r'x = COMPUTE "\d"', 13, "BAD_VALUE"),
    (r'x = COMPUTE "\u12"', 13, "BAD_VALUE"),
    (r'x = COMPUTE "\ud800"', 13, "BAD_VALUE"),
    ("x = COMPUTE a WITH SAMPLE 1 AND SAMPLE 1", 33, "OPTION_TWICE"),
    ("x = STREAM FROM m(a=1, a=2)", 24, "OPTION_TWICE"),
    ("x = COMPUTE a EVERY 1 s EVERY 1 s", 25, "CLAUSE_TWICE"),
    ("x = COMPUTE (a WHEN > 1) WHEN > 2", 26, "CLAUSE_TWICE"),
    ("x = COMPUTE F(a) BY a BY b BY c", 28, "CLAUSE_TWICE"),
    ("x = COMPUTE F(a WHEN > 1, b WHEN > 1)", 29, "CLAUSE_TWICE"),
]


@pytest.mark.parametrize(("text", "column", "code"), VALUES)
def test_values(text: str, column: int, code: str) -> None:
    (problem,) = problems(text)
    assert (problem.code, problem.line, problem.column) == (code, 1, column)
    assert problem.source == text


def test_a_signature_that_cannot_be_a_key_has_a_hint() -> None:
    (problem,) = problems("x = COMPUTE a\n  WITH SIGNATURE 'plant 7'")
    assert problem.message == "'plant 7' cannot be a key of SIGNATURE"
    assert "64 letters, digits" in problem.hint
    line, caret = problem.render().splitlines()[1:3]
    assert caret.index("^") == line.index("'plant 7'")


def test_several_problems_in_one_text() -> None:
    text = "a = COMPTE b; c = COMPUTE 'x;y' +;\n\nd = COMPUTE F(e, 0 s); # ;\nf = COMPUTE g"
    assert [(p.line, p.column, p.code) for p in problems(text)] == [
        (1, 5, "SYNTAX"),
        (1, 34, "SYNTAX"),
        (3, 18, "BAD_WINDOW"),
    ]


def test_missing_semicolons_are_all_told() -> None:
    found = problems("a = COMPUTE b\nc = COMPUTE d\n\ne = STREAM FROM f()\n")
    assert [(p.line, p.column) for p in found] == [(2, 1), (4, 1)]
    assert {p.hint for p in found} == {"put ; between two statements"}


def test_the_caret_stands_below_the_thing() -> None:
    (problem,) = problems("a = COMPUTE b;\n\tx = COMPTE b")
    line, caret = problem.render().splitlines()[1:3]
    assert problem.source == " x = COMPTE b"
    assert caret.index("^") == line.index("COMPTE")


def test_a_long_line_is_cut_around_the_place() -> None:
    (problem,) = problems("x = COMPUTE " + "a + " * 100 + "! b" + " + c" * 100)
    assert problem.column == 413
    assert len(problem.source) <= 120
    assert problem.source[79] == "!"


@pytest.mark.parametrize("text", [text for text, *_ in SYNTAX])
def test_no_names_from_inside(text: str) -> None:
    for problem in problems(text):
        for word in ("SEMICOLON", "RPAR", "LPAR", "_OPTION", "COMPARE", "$END", "Token", "__"):
            assert word not in problem.message + problem.hint
