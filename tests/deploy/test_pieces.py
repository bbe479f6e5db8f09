"""Compositions read job by job mean what they mean as a whole."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from fogline.deploy.manifest import composition
from fogline.deploy.manifest.composition import _known_job, _of_pieces, _read, read_composition
from fogline.deploy.manifest.manifest import Composition
from fogline.deploy.manifest.pieces import pieces_of
from fogline.deploy.manifest.problems import Lines, Problems

FOLDER = Path(__file__).parent
SAMPLES = sorted([*FOLDER.rglob("*.yaml"), *FOLDER.parents[1].glob("examples/**/*.yaml")])

PLAIN = """\
# who does what
name: chain
jobs:
- job_name: a   # the first
  site: north
  query: |
    one
      two

  source_topic: in/a
# between them
- job_name: b
  site: south
  steps:
  - {op: filter, where: "x > 3"}
  - op: sample
    every: 2
  source_topics: [in/b, {topic: in/c, site: north}]
  parameters: {n: 1, x: 1.0, on: true}

inputs:
- in/a
- topic: in/b
"""


def whole(text: str) -> Composition:
    return _read(text, Problems(Lines.of_yaml(text)))


def by_pieces(text: str) -> Composition | None:
    pieces = pieces_of(text)
    return _of_pieces(pieces, Lines.of_yaml(text)) if pieces is not None else None


def same(one: Composition, other: Composition) -> bool:
    """With all places, and 1 told from 1.0."""
    spots = [[job.spots for job in found.jobs] for found in (one, other)]
    return (repr(one), spots[0]) == (repr(other), spots[1])


@pytest.mark.parametrize("text", [PLAIN, PLAIN.replace("\n- job", "\n  - job").split("inputs")[0]])
def test_pieces_are_read_like_the_whole(text: str) -> None:
    found = by_pieces(text)
    assert (found is None) == bool(len(whole(text).problems))
    if found is not None:
        assert same(found, whole(text))


def test_an_indented_list_is_cut_too() -> None:
    text = "jobs:\n  - name: a\n    site: s\n\n  - name: b\n    steps:\n      - op: x\n"
    found = by_pieces(text)
    assert found is not None
    assert same(found, whole(text))


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_samples_are_read_like_the_whole(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    found = by_pieces(text)
    assert found is None or same(found, whole(text))
    assert same(read_composition(text), whole(text))


def test_whatever_is_done_to_a_text_pieces_mean_the_same() -> None:
    signs = [
        '"',
        "'",
        "- ",
        "\n",
        "\n- ",
        "  ",
        "#",
        "&a ",
        "*a",
        "|",
        "{",
        "]",
        "---\n",
        "jobs:\n",
    ]
    chance, cut = random.Random(7), 0
    for _ in range(3000):
        text = PLAIN
        for _ in range(chance.randint(1, 3)):
            place = chance.randrange(len(text))
            text = text[:place] + chance.choice(signs) + text[place + chance.randint(0, 2) :]
        if (found := by_pieces(text)) is not None:
            cut += 1
            assert same(found, whole(text)), text
    assert cut > 100


def test_a_job_that_was_read_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    _known_job.cache_clear()
    first = read_composition(PLAIN)
    read: list[str] = []
    make = composition.read_yaml
    monkeypatch.setattr(
        composition, "read_yaml", lambda text, *more: (read.append(text), make(text, *more))[1]
    )
    second = read_composition(PLAIN.replace("n: 1", "n: 2"))
    assert second.jobs[0] is first.jobs[0]
    assert second.jobs[1].parameters == {"n": 2, "x": 1.0, "on": True}
    assert len(read) == 2, "the job that changed, and what stands around the jobs"
