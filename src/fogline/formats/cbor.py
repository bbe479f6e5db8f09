"""A CBOR message as records, read as the Spark source reads it (docs/connector.md).

A message is a map, or a list of maps. Tags are passed over but for those of large integers, so none
of them can make anything, and a declared length is compared with the bytes that are there before
anything is made of it. An integer key becomes its digits at once: integers can be chosen to collide
in a mapping, and then a message would take hours. A list is checked but not kept.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Iterator
from typing import Any

from fogline.formats.errors import MOST_DEPTH, MOST_RECORDS, BadMessage, too_deep
from fogline.formats.json import text_of
from fogline.formats.values import OTHER

_UNSIGNED, _NEGATIVE, _BYTES, _TEXT, _LIST, _MAP, _TAG, _SIMPLE, _LARGE = range(9)
"""The kinds of items; the last is ours: a large integer, already read."""
_ENDLESS = -1
"""The argument of what goes on up to a break."""
_BREAK = 0xFF
_MOST_FIELDS = 1_000_000
"""Of one message."""
_MOST_LARGE = 1024
"""Bytes of an integer; with more it is taken for bytes."""
_WIDTHS = {24: 1, 25: 2, 26: 4, 27: 8}
_FLOATS = {25: ">e", 26: ">f", 27: ">d"}
_CONSTANTS = {20: False, 21: True, 22: None, 23: None}


def records(payload: bytes) -> list[dict[str, Any]]:
    """The maps of a message; `OTHER` stands for lists, bytes and whatever no column can hold.

    Raises `BadMessage`.
    """
    try:
        return _Items(payload).records()
    except IndexError as error:
        raise _make_error("ends too early") from error


class _Items:
    """Reads one item after the other."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self._left = _MOST_FIELDS

    def records(self) -> list[dict[str, Any]]:
        kind, _, argument = self._head()
        if kind == _LIST:
            found = [self._record(*self._head(), 1) for _ in self._members(argument, MOST_RECORDS)]
        else:
            found = [self._record(kind, 0, argument, 0)]
        if self._at != len(self._data):
            raise _make_error("bytes behind the item")
        return found

    def _record(self, kind: int, _info: int, argument: int, depth: int) -> dict[str, Any]:
        if kind != _MAP:
            raise BadMessage("not a CBOR map")
        return self._map(argument, depth)

    def _map(self, argument: int, depth: int) -> dict[str, Any]:
        if depth >= MOST_DEPTH:
            raise too_deep()
        found: dict[str, Any] = {}
        for _ in self._members(argument, self._left):
            self._left -= 1
            name = self._name(depth + 1)
            value = self._value(depth + 1)
            if name is not None:
                found[name] = value
        return found

    def _name(self, depth: int) -> str | None:
        """Of a field; nothing for a key that cannot be one."""
        key = self._value(depth)
        if isinstance(key, str):
            return key
        return str(key) if type(key) is int else None

    def _value(self, depth: int) -> Any:
        kind, info, argument = self._head()
        if kind == _SIMPLE:
            return _simple(info, argument)
        if kind == _TEXT:
            return self._text(argument)
        if kind <= _NEGATIVE:
            return _integer(kind, argument)
        if kind == _LARGE:
            return argument
        if kind == _MAP:
            return self._map(argument, depth)
        if kind == _BYTES:
            self._bytes(argument)
        else:
            self._pass_over(argument, depth)
        return OTHER

    def _pass_over(self, argument: int, depth: int) -> None:
        """Checks what is in a list."""
        if depth >= MOST_DEPTH:
            raise too_deep()
        for _ in self._members(argument, len(self._data)):
            self._value(depth + 1)

    def _members(self, argument: int, most: int) -> Iterable[int]:
        """Once for each member of a list or map, or chunk of a text."""
        if argument == _ENDLESS:
            return self._up_to_break(most)
        if argument > min(most, len(self._data) - self._at):
            raise _make_error("too many members")
        return range(argument)

    def _up_to_break(self, most: int) -> Iterator[int]:
        count = 0
        while self._data[self._at] != _BREAK:
            if count == most:
                raise _make_error("too many members")
            yield count
            count += 1
        self._at += 1

    def _head(self) -> tuple[int, int, Any]:
        """What kind of item comes, the low bits of its first byte, its argument."""
        kind, info, argument = self._first()
        while kind == _TAG:
            tag = _check_length(argument)
            kind, info, argument = self._first()
            if tag in (2, 3) and kind == _BYTES and 0 <= argument <= _MOST_LARGE:
                number = _double(int.from_bytes(self._take(argument), "big"))
                return _LARGE, info, number if tag == 2 else -1 - number
        return kind, info, argument

    def _first(self) -> tuple[int, int, int]:
        """As `_head`, where a tag is an item too."""
        first = self._data[self._at]
        kind, info = first >> 5, first & 31
        self._at += 1
        if info < 24:
            return kind, info, info
        if info == 31:
            return kind, info, _ENDLESS
        if info not in _WIDTHS:
            raise _make_error("malformed item")
        return kind, info, int.from_bytes(self._take(_WIDTHS[info]), "big")

    def _take(self, count: int) -> bytes:
        start, self._at = self._at, self._at + count
        if self._at > len(self._data):
            raise _make_error("ends too early")
        return self._data[start : self._at]

    def _text(self, argument: int) -> str:
        if argument == _ENDLESS:
            return "".join(text_of(chunk) for chunk in self._chunks(_TEXT))
        return text_of(self._take(argument))

    def _bytes(self, argument: int) -> None:
        for _ in self._chunks(_BYTES) if argument == _ENDLESS else [self._take(argument)]:
            pass

    def _chunks(self, kind: int) -> Iterator[bytes]:
        for _ in self._up_to_break(len(self._data)):
            found, _, argument = self._first()
            if found != kind:
                raise _make_error("malformed item")
            yield self._take(_check_length(argument))


def _check_length(argument: int) -> int:
    if argument == _ENDLESS:
        raise _make_error("malformed item")
    return argument


def _integer(kind: int, argument: int) -> int | float:
    """What Java's long cannot hold is a double."""
    number = _check_length(argument) if argument < 1 << 63 else float(argument)
    return number if kind == _UNSIGNED else -1 - number


def _simple(info: int, argument: int) -> Any:
    if info in _FLOATS:
        return struct.unpack(_FLOATS[info], argument.to_bytes(_WIDTHS[info], "big"))[0]
    _check_length(argument)
    return _CONSTANTS.get(info, OTHER)


def _make_error(what: str) -> BadMessage:
    return BadMessage(f"not CBOR: {what}")


def _double(number: int) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf
