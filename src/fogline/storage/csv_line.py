"""A csv message as a record, read as the Spark connector reads one of a log (docs/connector.md).

A message is one line (RFC 4180): a line break in it is part of a value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_VALUE = re.compile(r'(?:"((?:[^"]++|"")*+)"|([^",][^,]*+)|)(,|\Z)')
"""A value in quotes, one without, or none; and the comma behind it unless it is the last."""


def record(header: tuple[str, ...], payload: bytes) -> dict[str, str | None]:
    """The texts of a line by the names of their columns; an empty one without quotes is None.

    Raises `ValueError`, also for more or fewer values than the header has names.
    """
    text = payload.decode()
    if "\0" in text:
        raise ValueError("a NUL byte")
    if text.count(",") < len(header) - 1:
        raise ValueError("too few values")
    values = _quoted(text) if '"' in text else _plain(text, len(header))
    return dict(zip(header, values, strict=True))


def _plain(text: str, most: int) -> Iterator[str | None]:
    return (value or None for value in text.split(",", most))


def _quoted(text: str) -> Iterator[str | None]:
    at, more = 0, True
    while more:
        match = _VALUE.match(text, at)
        if match is None:
            raise ValueError("a quote is not closed, or text follows the closing one")
        quoted, plain, comma = match.groups()
        yield plain if quoted is None else quoted.replace('""', '"')
        at, more = match.end(), bool(comma)
