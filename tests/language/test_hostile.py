"""Texts meant to hurt: each is answered within a second, with a tree or a `QueryError`."""

from __future__ import annotations

import time

import pytest

from fogline.common.errors import QueryError
from fogline.language import parse, print_query

MANY = 250_000


def answer(text: str) -> str:
    """The first problem's code, or `fine`; fails if that takes seconds of computing."""
    parse("a = COMPUTE b")
    started = time.process_time()
    try:
        parse(text)
        return "fine"
    except QueryError as error:
        return error.problems[0].code
    finally:
        assert time.process_time() - started < 4.0


def filled(piece: str, head: str = "i = COMPUTE ", size: int = MANY) -> str:
    return head + piece * (size // len(piece))


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("(" * 1_000_000, "TOO_LARGE"),
        ("x" * 5_000_000, "TOO_LARGE"),
        ("é" * 140_000, "TOO_LARGE"),
        (filled("(", size=200_000), "TOO_DEEP"),
        (filled("F(", size=200_000), "TOO_DEEP"),
        (filled("1+") + "1", "TOO_DEEP"),
        (filled("a>1 OR ", "i = COMPUTE a WHEN ") + "b>1", "TOO_DEEP"),
        (filled("-", size=60_000) + "1", "TOO_DEEP"),
        (filled("-", size=100_000) + "1", "TOO_LARGE"),
        (filled("NOT ", "i = COMPUTE a WHEN "), "SYNTAX"),
        ("i = COMPUTE " + "(" * 200 + "a" + ")" * 200, "TOO_DEEP"),
        ("i = COMPUTE " + "F(" * 101 + "a" + ")" * 101, "TOO_DEEP"),
        ("i = COMPUTE " + "F(a) BY G(" * 101 + "a" + ")" * 101, "TOO_DEEP"),
        ("i = COMPUTE a WHEN " + "NOT " * 101 + "a > 1", "TOO_DEEP"),
        ("i = COMPUTE " + "-" * 100 + "1", "fine"),
        (filled("1,", "i = COMPUTE F("), "TOO_LARGE"),
        (filled("a,", "i = COMPUTE G(F(x) BY ", size=60_000) + "a)", "fine"),
        (filled("a=COMPUTE b;", "", size=150_000), "fine"),
        (filled("a b;", ""), "SYNTAX"),
        (filled(";", ""), "TOO_LARGE"),
        (filled(" ", ""), "fine"),
        (filled("/*", ""), "SYNTAX"),
        (filled("/* ", ""), "SYNTAX"),
        (filled("/**/", ""), "fine"),
        (filled("*", "/*"), "SYNTAX"),
        (filled('"', ""), "SYNTAX"),
        (filled('\\"', 'i = COMPUTE "'), "SYNTAX"),
        (filled("'\n", ""), "SYNTAX"),
        (filled("AND #", "i = COMPUTE a WHEN b > 1 "), "SYNTAX"),
        (filled("AND /**/ ", "i = COMPUTE a WHEN b > 1 "), "SYNTAX"),
        (filled("#", "i = COMPUTE a WHEN b > 1 AND "), "SYNTAX"),
        (filled("9"), "BAD_VALUE"),
        (filled("9", "i = COMPUTE F(a, ") + " s)", "BAD_WINDOW"),
        (filled("0", "i = COMPUTE F(a, 1.") + "1 s)", "fine"),
        (filled("a"), "fine"),
        (filled("\n", "") + "?", "SYNTAX"),
    ],
    ids=range(36),
)
def test_size(text: str, code: str) -> None:
    assert answer(text) == code


@pytest.mark.parametrize("opened", ["(", "F(", "F[", '"', "'", "/*", "a IN (", "a FROM (", "F(a, "])
@pytest.mark.parametrize("head", ["", "i = COMPUTE ", "i = COMPUTE a WHEN ", "s = STREAM FROM m("])
def test_unclosed(head: str, opened: str) -> None:
    assert answer(head + opened) == "SYNTAX"
    assert answer(f"{head}{opened};\n{head}{opened}") == "SYNTAX"


@pytest.mark.parametrize(
    "odd",
    [
        "\x00",
        "\ud800",
        "\u202e",
        "\u200f",
        "\u2028",
        "ſ",
        "\u212a",
        "１",
        "e\u0301",
        "🙂",
        "\x1b[2J",
    ],
)
def test_odd_characters(odd: str) -> None:
    for text in (f"i = COMPUTE {odd}", f'i = COMPUTE "{odd}"', f"{odd} = COMPUTE a", f"# {odd}"):
        assert answer(text) in ("fine", "SYNTAX", "BAD_VALUE")
    expected = "fine" if odd.isspace() else "SYNTAX"
    assert answer(f"i = COMPUTE F(a, 5 {odd})") == expected


@pytest.mark.parametrize("name", ["__class__", "__init__", "file", "self", "children", "None"])
def test_names_from_inside_are_plain_names(name: str) -> None:
    text = f"{name} = COMPUTE {name}({name}) BY {name} WITH SCHEDULER {name} TO {name}({name}=1)"
    tree = parse(text)
    assert parse(print_query(tree)) == tree


def test_an_ordinary_large_file_is_quick() -> None:
    insight = (
        "load_{0} = COMPUTE (100.0 * MAX(\"walker_publish_rate\" FROM (walkers), 5 SECONDS) /\n"
        "    MAX(\"walker_deliver_rate\" FROM (walkers), 5 SECONDS)) BY city, road\n"
        "    WHEN > 5 AND kind IN (a, b) EVERY 1 SECONDS WITH SALIENCE 3;\n"
    )  # fmt: skip
    text = "".join(insight.format(number) for number in range(200))
    parse("a = COMPUTE b")
    started = time.process_time()
    assert len(parse(text).insights) == 200
    assert time.process_time() - started < 4.0
