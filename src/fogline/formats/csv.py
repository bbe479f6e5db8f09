"""A csv message as a record, read as the Spark source reads one of a log (docs/connector.md).

A message is one line (RFC 4180): a line break in it is part of a value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from fogline.formats.errors import BadMessage
from fogline.formats.json import text_of

_VALUE = re.compile(r'(?:"((?:[^"]++|"")*+)"|([^",][^,]*+)|)(,|\Z)')
"""A value in quotes, one without, or none; and the comma behind it unless it is the last."""


def record(header: tuple[str, ...], payload: bytes) -> dict[str, str | None]:
    """The texts of a line by the names of their columns; an empty one without quotes is None.

    Raises `BadMessage`, also for more or fewer values than the header has names.
    """
    text = text_of(payload)
    if "\0" in text:
        raise BadMessage("not csv: a NUL byte")
    count = len(header)
    if '"' in text:
        values = list(islice(_split_quoted(text), count + 1))
    else:
        values = [value or None for value in text.split(",", count)]
    if len(values) != count:
        number = f"more than {count}" if len(values) > count else str(len(values))
        raise BadMessage(f"not csv: {number} values for {count} columns")
    return dict(zip(header, values, strict=True))


def _split_quoted(text: str) -> Iterator[str | None]:
    at, more = 0, True
    while more:
        match = _VALUE.match(text, at)
        if match is None:
            raise BadMessage("not csv: a quote is not closed, or text follows the closing one")
        quoted, plain, comma = match.groups()
        yield plain if quoted is None else quoted.replace('""', '"')
        at, more = match.end(), bool(comma)
