"""Many numbers as texts for a checkpoint, in pieces: none of them takes much memory on its way."""

from __future__ import annotations

from array import array
from base64 import b64decode, b64encode
from collections.abc import Iterable
from typing import Any

_PIECE = 4096


def pack_numbers(numbers: array[Any]) -> list[str]:
    pieces = (numbers[at : at + _PIECE] for at in range(0, len(numbers), _PIECE))
    return [b64encode(piece).decode("ascii") for piece in pieces]


def unpack_numbers(code: str, texts: Iterable[str]) -> array[Any]:
    """`code`: the array's type code."""
    found = array(code)
    for text in texts:
        found.frombytes(b64decode(text))
    return found
