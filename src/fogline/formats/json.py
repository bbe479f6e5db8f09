"""Strict JSON, as the Spark source reads it: what it takes for broken is broken here too."""

from __future__ import annotations

import json
from typing import Any

from fogline.formats.values import Number

MOST_DEPTH = 128
MOST_RECORDS = 100_000


class BadMessage(Exception):  # noqa: N818
    """A message does not decode; the text is the reason a person reads."""


def _no_constant(name: str) -> Any:
    raise BadMessage(f"not JSON: {name} is no value")


def _large_int(text: str) -> Any:
    return int(text) if len(text) <= 400 else Number(text)


_PLAIN = json.JSONDecoder(parse_constant=_no_constant)
_CAREFUL = json.JSONDecoder(parse_constant=_no_constant, parse_int=_large_int)
_TEXTS = json.JSONDecoder(parse_constant=_no_constant, parse_int=Number, parse_float=Number)


def text_of(payload: bytes) -> str:
    try:
        return payload.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadMessage("not UTF-8") from error


def parse(text: str, keep_texts: bool) -> Any:
    """The value. With `keep_texts` numbers are their own texts. Raises `BadMessage`."""
    decoder = _TEXTS if keep_texts else _PLAIN if len(text) < 4000 else _CAREFUL
    try:
        found = decoder.decode(text)
    except RecursionError as error:
        raise BadMessage(f"nested deeper than {MOST_DEPTH}") from error
    except ValueError as error:
        raise BadMessage(f"not JSON: {error}") from error
    if text.count("{") + text.count("[") > MOST_DEPTH:
        _check_depth(found)
    if "\\u" in text and ("\\ud" in text or "\\uD" in text):
        return _without_halves(found)
    return found


def _check_depth(value: Any) -> None:
    level, depth = [value], 0
    while level:
        level = [inner for item in level for inner in _inside(item)]
        depth += 1
        if level and depth > MOST_DEPTH:
            raise BadMessage(f"nested deeper than {MOST_DEPTH}")


def _inside(value: Any) -> list[Any]:
    """The objects and lists in this one; itself counts as a level even when it is empty."""
    items = value.values() if isinstance(value, dict) else value
    return (
        [i for i in items if isinstance(i, dict | list)] if isinstance(value, dict | list) else []
    )


def _without_halves(value: Any) -> Any:
    """Half a surrogate pair becomes the replacement character."""
    if isinstance(value, dict):
        return {_whole(key): _without_halves(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_halves(item) for item in value]
    return _whole(value) if type(value) is str else value


def _whole(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
