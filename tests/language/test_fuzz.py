"""Random and mutated texts never raise anything but a `QueryError`."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fogline.common.errors import QueryError
from fogline.language import parse, print_query
from tests.language.cases import CONDITIONS, STATEMENTS
from tests.language.test_figures import FIGURES

GOOD = [
    *FIGURES.values(),
    *(text for text, _ in STATEMENTS),
    *(f"i = COMPUTE F(a WHEN {text}, 5 s)" for text, _ in CONDITIONS),
]
KEYWORDS = (
    "COMPUTE STREAM FROM BY WHEN EVERY WITH TO AND OR NOT IN INSIGHT SESSION FUNCTION ALLOW "
    "SAMPLE K R SCHEDULER AWARENESS ON a b F 1 .5 5 s m EVENTS"
)
SIGNS = "( ) [ ] , ; = == > + - * / % : \" ' # // /* */ \\ “ ≥ !"
WORDS = [*KEYWORDS.split(), *SIGNS.split(), "\x00", "\ud800", "\n"]

relaxed = settings(suppress_health_check=list(HealthCheck))


def survives(text: str) -> None:
    """A tree that survives printing, or problems that lie inside the text and can be shown."""
    try:
        tree = parse(text)
    except QueryError as error:
        lines = text.split("\n")
        for problem in error.problems:
            assert 1 <= problem.line <= len(lines)
            assert 1 <= problem.column <= len(lines[problem.line - 1]) + 1
            assert problem.message
            assert problem.render()
    else:
        assert parse(print_query(tree)) == tree


@relaxed
@given(st.text())
def test_any_text(text: str) -> None:
    survives(text)


@relaxed
@given(st.lists(st.sampled_from(WORDS), max_size=25))
def test_any_words(words: list[str]) -> None:
    survives("i = COMPUTE " + " ".join(words))
    survives(" ".join(words))


@relaxed
@given(st.sampled_from(GOOD), st.data())
def test_changed_queries(text: str, data: st.DataObject) -> None:
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, min(start + 6, len(text))))
        text = text[:start] + data.draw(st.sampled_from(WORDS) | st.text(max_size=2)) + text[end:]
    survives(text)


@relaxed
@given(st.sampled_from(GOOD), st.integers(0, 400))
def test_cut_queries(text: str, end: int) -> None:
    survives(text[:end])
