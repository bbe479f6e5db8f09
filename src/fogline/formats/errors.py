"""Why a message is bad, and the limits that keep a hostile one from doing harm."""

from __future__ import annotations

MOST_DEPTH = 128
"""Levels of nesting."""
MOST_RECORDS = 100_000
"""Records of one message."""


class BadMessage(Exception):  # noqa: N818
    """A message does not decode; the text is the reason a person reads."""


class BadTime(BadMessage):
    """The declared time of a record is missing or is no time."""


def too_many_records() -> BadMessage:
    return BadMessage(f"more than {MOST_RECORDS} records in one message")


def too_deep() -> BadMessage:
    return BadMessage(f"nested deeper than {MOST_DEPTH}")
