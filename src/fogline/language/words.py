"""Names, strings, numbers and lengths of time as query text."""

from __future__ import annotations

import re

from fogline.language.keywords import RESERVED

_NAME = re.compile(r"[^\W\d]\w*")
_WORD = re.compile(r"[^\W\d][\w.\-]*")
_UNITS = ((86_400_000, "DAY"), (3_600_000, "HOUR"), (60_000, "MINUTE"), (1000, "SECOND"))
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t"}


def quote(text: str) -> str:
    """A string in double quotes, with everything escaped that would not survive."""
    return '"' + "".join(map(_escape, text)) + '"'


def _escape(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character.isprintable() or ord(character) > 0xFFFF:
        return character
    return f"\\u{ord(character):04x}"


def is_bare(name: str) -> bool:
    return _NAME.fullmatch(name) is not None and name.upper() not in RESERVED


def write_name(name: str) -> str:
    return name if is_bare(name) else quote(name)


def write_word(word: str) -> str:
    return word if _WORD.fullmatch(word) else quote(word)


def write_number(value: float) -> str:
    if float(value).is_integer() and abs(value) < 1e15:
        return str(int(value))
    return repr(float(value))


def write_duration(millis: int) -> str:
    for length, unit in _UNITS:
        if millis % length == 0:
            amount = millis // length
            return f"{amount} {unit}" + ("" if amount == 1 else "S")
    return f"{millis} MILLIS"
