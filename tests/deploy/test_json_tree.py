"""JSON with places: lists of names may be long; they are read quickly, and strictly."""

from __future__ import annotations

import json

import pytest

from fogline.deploy.manifest.json_tree import read_json
from fogline.deploy.manifest.problems import Lines, Problems
from fogline.deploy.manifest.tree import Items, Spot, TreeTable, Word, plain_data


@pytest.mark.parametrize(
    "text",
    [
        '["a", "b" ,\n "c"]',
        '["a", "\\n", "b", 3, "x", {"y": ["z", "é"]}, "", "z"]',
        '[ [ "a", "b" ], "c" ]',
        '["a"]',
    ],
)
def test_lists_are_what_they_say(text: str) -> None:
    problems = Problems(Lines.of(text))
    tree = read_json(text, problems)
    assert tree is not None
    assert len(problems) == 0
    assert plain_data(tree) == json.loads(text)


def test_every_name_knows_its_place() -> None:
    tree = read_json('["a", "b" ,\n  "c"]', Problems(Lines()))
    assert isinstance(tree, Items)
    words = [item for item in tree.items if isinstance(item, Word)]
    assert [word.at for word in words] == [Spot(1, 2), Spot(1, 7), Spot(2, 3)]


def test_a_text_knows_where_it_begins() -> None:
    tree = read_json('{"query": "x = y"}', Problems(Lines()))
    assert isinstance(tree, TreeTable)
    word = tree.fields["query"]
    assert isinstance(word, Word)
    assert (word.at, word.inside(1, 5)) == (Spot(1, 11), Spot(1, 16))


@pytest.mark.parametrize("text", ['["a",]', '["a", ', '["a" "b"]', '["a", "b"', '["a",, "b"]'])
def test_what_is_no_list_is_refused(text: str) -> None:
    problems = Problems(Lines.of(text))
    assert read_json(text, problems) is None
    assert len(problems) == 1
