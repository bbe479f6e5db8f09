"""A document as a tree in which every value knows its place; made from YAML and from JSON alike.

Trees are bounded in depth and in size, aliases counted as often as they are used, so whoever walks
one need not fear it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import ClassVar, NamedTuple

from fogline.model.jobs import Scalar

MAX_CHARACTERS = 4 << 20
MAX_DEPTH = 40
MAX_VALUES = 200_000

_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})")
_NUMBER = re.compile(r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]{1,4})?")
_FIXED: dict[str, Scalar | None] = {"": None, "~": None, "null": None, "true": True, "false": False}


class Spot(NamedTuple):
    """A place in a text; both numbers start at 1."""

    line: int
    column: int


START = Spot(1, 1)


@dataclass(frozen=True, slots=True)
class Word:
    """A single value as it is written."""

    text: str
    at: Spot = field(default=START, compare=False)
    plain: bool = field(default=False, compare=False)
    """Written without quotes: it may mean a number, true, false or nothing."""
    starts: tuple[Spot, ...] = field(default=(), compare=False, repr=False)
    """Where each line of the text begins in the document, when that is known."""
    size: ClassVar[int] = 1

    @property
    def value(self) -> Scalar | None:
        return read_scalar(self.text) if self.plain else self.text

    @property
    def empty(self) -> bool:
        return self.plain and self.value is None

    def inside(self, line: int, column: int) -> Spot:
        """The place in the document of a place in the text."""
        if not 1 <= line <= len(self.starts):
            return self.at
        start = self.starts[line - 1]
        return Spot(start.line, start.column + column - 1)


@dataclass(frozen=True, slots=True)
class Items:
    items: tuple[TreeValue, ...]
    at: Spot = field(default=START, compare=False)
    size: int = field(default=1, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class TreeTable:
    fields: Mapping[str, TreeValue]
    keys: Mapping[str, Word] = field(default_factory=dict, compare=False, repr=False)
    """The field names as they are written, with their places."""
    at: Spot = field(default=START, compare=False)
    size: int = field(default=1, compare=False, repr=False)

    def key_at(self, name: str) -> Spot:
        return self.keys[name].at if name in self.keys else self.at


TreeValue = Word | Items | TreeTable


def read_scalar(text: str) -> Scalar | None:
    """What an unquoted word means; whatever is no number, truth value or nothing is a text."""
    if text.lower() in _FIXED:
        return _FIXED[text.lower()]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _NUMBER.fullmatch(text) and isfinite(number := float(text)):
        return number
    return text


def kind_of(value: TreeValue) -> str:
    """What a value is, for messages."""
    if isinstance(value, Items):
        return "a list"
    if isinstance(value, TreeTable):
        return "a mapping"
    return "nothing" if value.empty else f"{shorten(value.text)!r}"


def shorten(text: str, length: int = 60) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def plain_data(value: TreeValue) -> object:
    """Lists, dicts and scalars without places."""
    if isinstance(value, Items):
        return [plain_data(item) for item in value.items]
    if isinstance(value, TreeTable):
        return {name: plain_data(item) for name, item in value.fields.items()}
    return value.value
