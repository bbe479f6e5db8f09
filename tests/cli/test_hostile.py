"""Query files meant to hurt: an answer within a second of work, never a traceback, never run."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fogline.cli.main import main

S = 's = STREAM FROM memory(name="s", time="t");\n'
MEGABYTES = 8 << 20


@pytest.fixture
def answer(
    fogline: Callable[..., Any], query: Callable[[str | bytes], Path]
) -> Callable[[str | bytes], str]:
    """What `check` says on standard error, or `fine`; fails if that takes far too much work."""
    fogline("check", query(S + "warm = COMPUTE x;"))

    def check(text: str | bytes) -> str:
        path = query(text)
        started = time.process_time()
        told = fogline("check", path)
        assert time.process_time() - started < 4.0
        assert "Traceback" not in told.err
        assert told.code in (0, 1)
        return "fine" if told.code == 0 else str(told.err)

    return check


def nested(head: str, tail: str, depth: int, core: str = "x") -> str:
    return S + "i = COMPUTE " + head * depth + core + tail * depth + " EVERY 1 s;"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (nested("(", ")", 100_000), "TOO_DEEP"),
        (nested("(", ")", 90), "fine"),
        (nested("ABS(", ")", 101), "TOO_DEEP"),
        (nested("ABS(", ")", 90, "AVG(x)"), "fine"),
        (nested("AVG(", ")", 40), "TOO_DEEP"),
        (nested("AVG(", ")", 8), "fine"),
        (nested("-", "", 5_000), "TOO_DEEP"),
        (nested("1 + ", "", 30_000), "TOO_DEEP"),
        (nested("1 + ", "", 150, "AVG(x)"), "fine"),
        (S + "i = COMPUTE x WHEN " + "NOT " * 200_000 + "x > 1;", "TOO_LARGE"),
        (S + "i = COMPUTE x WHEN " + " OR ".join(["x > 1"] * 150) + ";", "fine"),
        (S + "i = COMPUTE x WHEN x IN (" + "1," * 30_000 + "1);", "fine"),
        (S + "i = COMPUTE AVG(x) BY " + ", ".join(f"k{n}" for n in range(2_000)) + " EVERY 1 s;",
         "fine"),
        ("x" * MEGABYTES, "TOO_LARGE"),
        ("€" * MEGABYTES, "TOO_LARGE"),
        ("(" * MEGABYTES, "TOO_LARGE"),
        (";" * 200_000, "TOO_LARGE"),
        (b"\0" * MEGABYTES, "TOO_LARGE"),
        (b"\xff\xfe" + "i = COMPUTE x".encode("utf-16-le"), "not UTF-8"),
        (b"\x7fELF\x02\x01\x01\0\xff", "not UTF-8"),
        (b"", "EMPTY"),
    ],
    ids=range(21),
)  # fmt: skip
def test_size_depth_and_bytes(
    answer: Callable[[str | bytes], str], text: str | bytes, code: str
) -> None:
    assert code in answer(text)


@pytest.mark.parametrize(
    "odd", ["\0", "\u202e", "\u2028", "１", "e\u0301", "🙂", "\x1b[2J", "\ufeff", "ſ", "\u212a"]
)
def test_odd_characters(answer: Callable[[str], str], odd: str) -> None:
    for text in (
        f"i = COMPUTE {odd}",
        f'i = COMPUTE AVG("{odd}") EVERY 1 s',
        f"{odd} = COMPUTE x",
        f"i = COMPUTE AVG(x, 1 {odd})",
        f"# {odd}",
        f"i = COMPUTE x BY {odd}",
    ):
        told = answer(S + text)
        assert "\x1b" not in told
        assert "\u202e" not in told


def test_half_characters(answer: Callable[[str], str]) -> None:
    assert "not UTF-8" in answer(S + 'i = COMPUTE "\ud800"')


@pytest.mark.parametrize(
    "name", ["__class__", "__import__", "eval", "os.system", "{0.__class__}", "%s%n", "$(id)", "';"]
)
def test_names_that_look_like_code_are_names(answer: Callable[[str], str], name: str) -> None:
    assert answer(f'{S}i = COMPUTE AVG("{name}") BY "{name}" EVERY 1 s;') == "fine"
    assert "UNKNOWN_INSIGHT" in answer(f'{S}i = COMPUTE AVG(INSIGHT "{name}") EVERY 1 s;')
    assert answer(f"{S}i = COMPUTE {name}(x);") != "fine"


@pytest.mark.parametrize(
    "target",
    ["os:system", "../evil:f", "/etc/evil:f", "evil.py:f", "evil:__class__", "evil:f()", "a:b:c"],
)
def test_no_text_of_a_query_is_run(
    answer: Callable[[str], str], target: str, tmp_path: Path
) -> None:
    (tmp_path / "functions").mkdir()
    (tmp_path / "evil.py").write_text("raise SystemExit(3)\n")
    assert "FUNCTION" in answer(f'FUNCTION f(a) = "{target}";\n{S}i = COMPUTE f(x);')


def test_many_problems_are_told_and_no_more(answer: Callable[[str], str]) -> None:
    told = answer(S + "i = COMPUTE ?;\n" * 3_000)
    assert told.count("SYNTAX") == 20


def test_a_file_of_200_insights_is_checked_within_a_second(answer: Callable[[str], str]) -> None:
    insight = (
        "load_{0} = COMPUTE (100.0 * MAX(publish, {1} SECONDS) / AVG(deliver WHEN kind == a, 9 s))"
        " BY city, road WHEN > RUNNING_MEAN(publish) AND city IN (a, b) EVERY 1 SECONDS\n"
        "    WITH SALIENCE 3;\n"
        "over_{0} = COMPUTE MAX(load_{0}, 1 MINUTES) BY city EVERY 10 s;\n"
    )
    text = S + "".join(insight.format(n, n % 50 + 1) for n in range(100))
    assert text.count("COMPUTE") == 200
    assert answer(text) == "fine"


def built(count: int, step: str, first: str = "AVG(x, 5 s) EVERY 5 s") -> str:
    """Insights of which each is made of the one before."""
    steps = (f"i{n} = COMPUTE {step.format(f'i{n - 1}')};\n" for n in range(1, count))
    return f"{S}i0 = COMPUTE {first};\n" + "".join(steps)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (built(40, "{0} + 1"), "fine"),
        (built(40, "{0} + 1", "x"), "fine"),
        (built(2_000, "{0} + 1"), "TOO_DEEP"),
        (built(10, "AVG({0}, 5 s) EVERY 5 s"), "fine"),
        (built(2_000, "AVG({0}, 5 s) EVERY 5 s"), "TOO_DEEP"),
        (built(60, "{0} + {0}"), "TOO_LARGE"),
        (built(60, "{0} + {0} WHEN {0} > 1", "x"), "TOO_LARGE"),
        (built(60, "MAX({0} * {0}, 5 s) + MIN({0}, 5 s) EVERY 5 s"), "TOO_DEEP"),
    ],
    ids=range(8),
)
def test_insights_upon_insights(answer: Callable[[str], str], text: str, code: str) -> None:
    assert code in answer(text)
    backwards = S + ";\n".join(reversed(text.removeprefix(S).split(";\n")[:-1]))
    assert (answer(backwards) == "fine") == (code == "fine")


def test_the_entry_point_is_main() -> None:
    """`answer` calls what the installed command calls."""
    from importlib.metadata import entry_points

    found = [e for e in entry_points(group="console_scripts") if e.name == "fogline"]
    assert found[0].load() is main


def test_numbers_that_no_machine_can_hold(answer: Callable[[str | bytes], str]) -> None:
    certain = "WITH MAX_ERROR 0.1 AND CONFIDENCE 0.9999999999999999;"
    assert "BAD_VALUE" in answer(S + f"i = COMPUTE AVG(x) EVERY 1 s {certain}")
    late = S.replace("time=", f'lateness="{"9" * 400} s", time=')
    assert "PARAMETER" in answer(late + "i = COMPUTE x;")
