"""Strict JSON, as the Spark source reads it: what it takes for broken is broken here too."""

from __future__ import annotations

import json
from typing import Any

from fogline.formats.errors import (
    MOST_DEPTH,
    MOST_RECORDS,
    BadMessage,
    too_deep,
    too_many_records,
)
from fogline.formats.values import NumberText


def _no_constant(name: str) -> Any:
    raise BadMessage(f"not JSON: {name} is no value")


def _large_int(text: str) -> Any:
    return int(text) if len(text) <= 400 else NumberText(text)


_PLAIN = json.JSONDecoder(parse_constant=_no_constant)
_CAREFUL = json.JSONDecoder(parse_constant=_no_constant, parse_int=_large_int)
_TEXTS = json.JSONDecoder(parse_constant=_no_constant, parse_int=NumberText, parse_float=NumberText)

_BLANKS = " \t\n\r"


def records(payload: bytes, keep_texts: bool) -> list[dict[str, Any]]:
    """`json`: one object, or a list of objects."""
    data = parse(text_of(payload), keep_texts)
    if not isinstance(data, list):
        return [_object(data)]
    if len(data) > MOST_RECORDS:
        raise too_many_records()
    return [_object(item) for item in data]


def lines(payload: bytes, keep_texts: bool) -> list[dict[str, Any]]:
    """`ndjson`: an object a line; blank lines are passed over."""
    found = [line for line in text_of(payload).split("\n") if line.strip(" \t\r")]
    if len(found) > MOST_RECORDS:
        raise too_many_records()
    return [_object(parse(line, keep_texts)) for line in found]


def text_of(payload: bytes) -> str:
    try:
        return payload.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadMessage("not UTF-8") from error


def parse(text: str, keep_texts: bool) -> Any:
    """The value. With `keep_texts` numbers are their own texts. Raises `BadMessage`."""
    decoder = _TEXTS if keep_texts else _PLAIN if len(text) < 4000 else _CAREFUL
    try:
        found = _decode_text(decoder, text)
    except RecursionError as error:
        raise too_deep() from error
    except ValueError as error:
        raise BadMessage(f"not JSON: {error}") from error
    if len(text) > 2 * MOST_DEPTH and text.count("{") + text.count("[") > MOST_DEPTH:
        _check_depth(found)
    if "\\u" in text and ("\\ud" in text or "\\uD" in text):
        return _without_halves(found)
    return found


def _decode_text(decoder: json.JSONDecoder, text: str) -> Any:
    """As `decode` does, which takes a sixth longer: it looks for blanks with expressions."""
    if text[:1] in _BLANKS:
        return decoder.decode(text)
    found, end = decoder.raw_decode(text)
    if end == len(text) or not text[end:].strip(_BLANKS):
        return found
    raise ValueError("text behind the value")


def _object(item: Any) -> dict[str, Any]:
    if not isinstance(item, dict):
        raise BadMessage("not JSON: expected an object")
    return item


def _check_depth(value: Any) -> None:
    level, depth = [value], 0
    while level:
        level = [inner for item in level for inner in _inside(item)]
        depth += 1
        if level and depth >= MOST_DEPTH:
            raise too_deep()


def _inside(value: Any) -> list[Any]:
    """The objects and lists in this one; itself counts as a level even when it is empty."""
    items = value.values() if isinstance(value, dict) else value
    return (
        [i for i in items if isinstance(i, dict | list)] if isinstance(value, dict | list) else []
    )


def _without_halves(value: Any) -> Any:
    """Half a surrogate pair becomes the replacement character."""
    if isinstance(value, dict):
        return {_replace_surrogates(key): _without_halves(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_halves(item) for item in value]
    return _replace_surrogates(value) if type(value) is str else value


def _replace_surrogates(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
