"""Checkpoints: written bit by bit, read back as they were."""

from __future__ import annotations

import json
from array import array
from pathlib import Path
from typing import Any

import pytest

from fogline.gateway.jobs.checkpoint import Checkpoint, load, pieces, store
from fogline.gateway.operators.packing import pack_numbers, unpack_numbers


@pytest.mark.parametrize(
    "value",
    [
        {},
        [],
        {"a": [1, "ü\n", None, True, [], {}], 'b"': {"c": -0.5}},
        list(range(2500)),
        [[i, f"k{i}"] for i in range(1001)],
        {"deep": [{"many": [[i] for i in range(3000)]}]},
    ],
)
def test_pieces_are_json(value: Any) -> None:
    assert json.loads("".join(pieces(value))) == value


def test_no_piece_is_large() -> None:
    keys = [f"device-{number:06}" for number in range(50_000)]
    assert (
        max(map(len, pieces({"windows": [[0, keys, pack_numbers(array("d", [0.1] * 99_999))]]})))
        < 1e5
    )


def test_a_checkpoint_comes_back(tmp_path: Path) -> None:
    kept = Checkpoint("l", 7, 3, True, {"rate": 1.5}, {"operators": [None, [["k", 1, "v"]]]})
    store(tmp_path / "state" / "j.json", kept)
    assert load(tmp_path / "state" / "j.json") == kept
    assert load(tmp_path / "none.json") is None


@pytest.mark.parametrize("count", [0, 1, 4096, 10_000])
def test_numbers_come_back(count: int) -> None:
    numbers = array("d", (number / 7 for number in range(count)))
    assert unpack_numbers("d", pack_numbers(numbers)) == numbers
