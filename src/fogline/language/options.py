"""The options of WITH: which there are, what values they take, and that each is given once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from lark import Token

from fogline.language import literals
from fogline.language.ast import Options, Position
from fogline.language.faults import Fault
from fogline.language.literals import position
from fogline.model.keys import KEY_HINT, is_key


@dataclass(frozen=True, slots=True)
class Given:
    """One option as it was written: its field in `Options`, its value and its word."""

    field: str
    value: object
    word: Token


@dataclass(frozen=True, slots=True)
class _Rule:
    field: str
    fits: Callable[[float], bool]
    need: str
    whole: bool = False


_NUMBERS = {
    "SALIENCE": _Rule("salience", lambda n: 0 <= n <= 1e9, "a whole number from 0 on", whole=True),
    "SAMPLE": _Rule("sample", lambda n: 0 < n <= 1, "above 0 and at most 1"),
    "MAX_ERROR": _Rule("max_error", lambda n: 0 < n < 1, "between 0 and 1"),
    "CONFIDENCE": _Rule("confidence", lambda n: 0 < n <= 0.999999, "between 0 and 0.999999"),
    "K": _Rule("neighbours", lambda n: 1 <= n <= 1e9, "a whole number from 1 on", whole=True),
    "R": _Rule("radius", lambda n: n > 0, "above 0"),
}


def number_option(word: Token, value: float) -> Given:
    name = word.upper()
    rule = _NUMBERS[name]
    if not rule.fits(value) or (rule.whole and not value.is_integer()):
        raise Fault("BAD_VALUE", f"{name} must be {rule.need}, not {value:g}", position(word))
    return Given(rule.field, int(value) if rule.whole else value, word)


def text_option(word: Token, value: Token) -> Given:
    text = literals.string(value) if value.type == "STRING" else str(value)
    if not text:
        raise Fault("BAD_VALUE", f"{word.upper()} needs a name", position(value))
    if word.upper() == "SIGNATURE" and not is_key(text):
        message = f"{text!r:.80} cannot be a key of SIGNATURE"
        raise Fault("BAD_VALUE", message, position(value), KEY_HINT)
    return Given(word.lower(), text, word)


def gather(given: Iterable[Given], at: Position) -> Options:
    fields: dict[str, Any] = {}
    for option in given:
        if option.field in fields:
            message = f"{option.word.upper()} is given twice"
            raise Fault("OPTION_TWICE", message, position(option.word), "keep one of the two")
        fields[option.field] = option.value
    return Options(**fields, at=at)
