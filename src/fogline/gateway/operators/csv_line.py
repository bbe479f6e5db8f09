"""A line of values between commas (RFC 4180); an empty value without quotes is None."""

from __future__ import annotations

from fogline.formats.json import BadMessage


def split(line: str) -> list[str | None]:
    """The values of a line. Raises `BadMessage`."""
    if "\0" in line:
        raise BadMessage("not csv: a NUL byte")
    if '"' not in line:
        return [value or None for value in line.split(",")]
    values: list[str | None] = []
    at = 0
    while True:
        value, at = _quoted(line, at + 1) if line[at : at + 1] == '"' else _plain(line, at)
        values.append(value)
        if at == len(line):
            return values
        if line[at] != ",":
            raise BadMessage("not csv: text behind a closing quote")
        at += 1


def _plain(line: str, at: int) -> tuple[str | None, int]:
    end = line.find(",", at)
    end = len(line) if end < 0 else end
    return line[at:end] or None, end


def _quoted(line: str, at: int) -> tuple[str, int]:
    parts = []
    while True:
        end = line.find('"', at)
        if end < 0:
            raise BadMessage("not csv: a quote is not closed")
        parts.append(line[at:end])
        if line[end + 1 : end + 2] != '"':
            return '"'.join(parts), end + 1
        at = end + 2
