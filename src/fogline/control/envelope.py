"""Requests and answers: what one side asks of the other, and what it gets back.

Decoding takes any bytes and raises `DataError` only.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fogline.control import topics
from fogline.control.payload import (
    list_of,
    number_of,
    object_of,
    read_object,
    text_of,
    write_object,
)
from fogline.errors import DataError

LONGEST_NAME = 200
LONGEST_TEXT = 100_000
MOST_JOINED_BYTES = 64 << 10
"""Of answers in one message."""


@dataclass(frozen=True, slots=True)
class Request:
    """Something to be done, not after `deadline`; the answer goes to the topic `answer`."""

    id: str
    op: str
    body: Mapping[str, Any]
    deadline: float
    """Seconds since the epoch."""
    answer: str

    def __post_init__(self) -> None:
        if not self.id or not self.op:
            raise DataError("a request has an id and an operation")
        if not math.isfinite(self.deadline):
            raise DataError(f"the deadline of a request cannot be {self.deadline}")
        if not topics.is_answers(self.answer):
            raise DataError(f"answers are not sent to {self.answer[:80]!r}")

    def encode(self) -> bytes:
        """Raises `DataError` when the body is no JSON, or too large."""
        return write_object(
            {
                "id": self.id,
                "op": self.op,
                "body": dict(self.body),
                "deadline": self.deadline,
                "answer": self.answer,
            }
        )

    @classmethod
    def decode(cls, payload: bytes) -> Request:
        data = read_object(payload)
        return cls(
            id=text_of(data, "id", LONGEST_NAME),
            op=text_of(data, "op", LONGEST_NAME),
            body=object_of(data, "body"),
            deadline=number_of(data, "deadline"),
            answer=text_of(data, "answer", LONGEST_NAME),
        )


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a request: a body, or an error and perhaps a hint."""

    id: str
    ok: bool = True
    body: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""
    hint: str = ""

    def __post_init__(self) -> None:
        if not self.id:
            raise DataError("an answer has the id of its request")
        if self.ok is bool(self.error):
            raise DataError("an answer has an error if and only if it is not ok")

    @classmethod
    def failed(cls, id: str, error: str, hint: str = "") -> Answer:
        return cls(id, False, {}, error[:LONGEST_TEXT] or "it failed", hint[:LONGEST_TEXT])

    def encode(self) -> bytes:
        """Raises `DataError` when the body is no JSON, or too large."""
        if self.ok:
            return write_object({"id": self.id, "ok": True, "body": dict(self.body)})
        return write_object({"id": self.id, "ok": False, "error": self.error, "hint": self.hint})

    @classmethod
    def decode(cls, payload: bytes) -> Answer:
        return cls._of(read_object(payload))

    @classmethod
    def decode_all(cls, payload: bytes) -> list[Answer]:
        """Of a message with one answer, or with several that were `joined`."""
        data = read_object(payload)
        return [cls._of(_object(item)) for item in list_of(data, "answers", [data])]

    @classmethod
    def _of(cls, data: dict[str, Any]) -> Answer:
        id, ok = text_of(data, "id", LONGEST_NAME), data.get("ok")
        if ok is True:
            return cls(id, True, object_of(data, "body"))
        if ok is not False:
            raise DataError("an answer says whether it is ok")
        error = text_of(data, "error", LONGEST_TEXT)
        return cls(id, False, {}, error, text_of(data, "hint", LONGEST_TEXT, default=""))


def joined(answers: Iterable[bytes]) -> list[bytes]:
    """Payloads of answers to one asker in few messages: each costs more than what is in it."""
    groups: list[list[bytes]] = [[]]
    for payload in answers:
        if groups[-1] and sum(map(len, groups[-1])) + len(payload) > MOST_JOINED_BYTES:
            groups.append([])
        groups[-1].append(payload)
    return [
        group[0] if len(group) == 1 else b'{"answers":[' + b",".join(group) + b"]}"
        for group in groups
        if group
    ]


def _object(item: Any) -> dict[str, Any]:
    if not isinstance(item, dict):
        raise DataError("an answer is a JSON object")
    return item
