"""JSON to the same tree as YAML, with places; without recursion, so depth costs nothing."""

from __future__ import annotations

import re
from bisect import bisect_right
from json.decoder import JSONDecodeError, scanstring  # type: ignore[attr-defined]
from typing import cast

from fogline.deploy.manifest.problems import Problems
from fogline.deploy.manifest.tree import (
    MAX_DEPTH,
    MAX_VALUES,
    Items,
    Spot,
    TreeTable,
    TreeValue,
    Word,
    shorten,
)
from fogline.deploy.manifest.yaml_tree import usable_text

_BLANK = re.compile(r"[ \t\r\n]*")
_WORD = re.compile(
    r'[ \t\r\n]*"([^"\\\x00-\x1f\ud800-\udfff]*)"[ \t\r\n]*,(?=[ \t\r\n]*[^] \t\r\n])'
)
"""A text without escapes that another value follows."""
_BARE = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|true|false|null")
_SURROGATE = re.compile("[\ud800-\udfff]")


def read_json(text: str, problems: Problems) -> TreeValue | None:
    """The value of a text, or None; everything wrong with it goes to `problems`."""
    if not usable_text(text, problems):
        return None
    reader = _Reader(text.removeprefix("\ufeff"), problems)
    try:
        return reader.read()
    except JSONDecodeError as error:
        problems.add("SYNTAX", f"invalid JSON: {error.msg}", reader.spot(error.pos))
        return None


class _Open:
    """A list or object whose end has not come yet."""

    def __init__(self, mapping: bool, at: Spot) -> None:
        self.mapping = mapping
        self.at = at
        self.items: list[TreeValue] = []
        self.fields: dict[str, TreeValue] = {}
        self.keys: dict[str, Word] = {}
        self.key: Word | None = None
        self.size = 1

    def closed(self) -> TreeValue:
        if self.mapping:
            return TreeTable(self.fields, self.keys, self.at, self.size)
        return Items(tuple(self.items), self.at, self.size)


class _Reader:
    def __init__(self, text: str, problems: Problems) -> None:
        self._text = text
        self._problems = problems
        self._breaks = [match.end() for match in re.finditer("\n", text)]
        self._place = 0
        self._values = 0

    def spot(self, place: int) -> Spot:
        line = bisect_right(self._breaks, place)
        return Spot(line + 1, place - (self._breaks[line - 1] if line else 0) + 1)

    def read(self) -> TreeValue:
        stack: list[_Open] = []
        while True:
            done = self._begin(stack)
            while done is not None:
                if not stack:
                    return self._last(done)
                self._put(stack[-1], done)
                done = self._go_on(stack)

    def _begin(self, stack: list[_Open]) -> TreeValue | None:
        """Reads a key where one is due, then a scalar, an empty container or an opening bracket."""
        if stack and stack[-1].mapping:
            self._key(stack[-1])
        self._count()
        sign, at = self._sign(), self.spot(self._place)
        if sign not in ("{", "["):
            return self._scalar(at)
        if len(stack) >= MAX_DEPTH:
            raise self._make_error(f"more than {MAX_DEPTH} levels of nesting")
        self._place += 1
        stack.append(_Open(sign == "{", at))
        if sign == "[":
            self._words(stack[-1])
        if self._sign() != ("}" if sign == "{" else "]"):
            return None
        self._place += 1
        return stack.pop().closed()

    def _words(self, parent: _Open) -> None:
        """All but the last of a list's first items, as far as they are plain texts: a list of
        names may be long. Nothing in a name is ever pointed at."""
        while word := _WORD.match(self._text, self._place):
            self._count()
            parent.items.append(Word(word[1], self.spot(word.start(1) - 1)))
            parent.size += 1
            self._place = word.end()

    def _go_on(self, stack: list[_Open]) -> TreeValue | None:
        """Behind a value: a comma, or the end of what it is in."""
        sign, ending = self._sign(), "}" if stack[-1].mapping else "]"
        if sign not in (",", ending):
            raise self._make_error(f"expected ',' or '{ending}'")
        self._place += 1
        return stack.pop().closed() if sign == ending else None

    def _put(self, parent: _Open, value: TreeValue) -> None:
        parent.size += value.size
        if not parent.mapping:
            parent.items.append(value)
            return
        key = cast(Word, parent.key)
        if key.text in parent.fields:
            self._problems.add("DUPLICATE", f"{shorten(key.text)} is given twice", key.at)
        parent.fields.setdefault(key.text, value)
        parent.keys.setdefault(key.text, key)

    def _key(self, parent: _Open) -> None:
        if self._sign() != '"':
            raise self._make_error("expected a field's name in double quotes")
        at = self.spot(self._place)
        parent.key = Word(self._string(), at)
        if self._sign() != ":":
            raise self._make_error("expected ':'")
        self._place += 1

    def _scalar(self, at: Spot) -> Word:
        if self._sign() == '"':
            start = self._place + 1
            text = self._string()
            same = self._text.startswith(text, start)
            starts = (Spot(at.line, at.column + 1),) if same else ()
            return Word(text, at, starts=starts)
        bare = _BARE.match(self._text, self._place)
        if bare is None:
            raise self._make_error("expected a value")
        self._place = bare.end()
        return Word(bare[0], at, plain=True)

    def _string(self) -> str:
        text, end = scanstring(self._text, self._place + 1, True)
        if _SURROGATE.search(text):
            raise self._make_error("half of a surrogate pair")
        self._place = end
        return cast(str, text)

    def _count(self) -> None:
        self._values += 1
        if self._values > MAX_VALUES:
            raise self._make_error(f"more than {MAX_VALUES} values")

    def _sign(self) -> str:
        """The next character that is no blank; empty at the end."""
        blank = cast(re.Match[str], _BLANK.match(self._text, self._place))
        self._place = blank.end()
        return self._text[self._place : self._place + 1]

    def _last(self, value: TreeValue) -> TreeValue:
        if self._sign():
            raise self._make_error("something stands behind the end")
        return value

    def _make_error(self, message: str) -> JSONDecodeError:
        return JSONDecodeError(message, self._text, self._place)
