"""Requests and answers: what one side asks of the other, and what it gets back.

Decoding takes any bytes and raises `DataError` only.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fogline.common.errors import DataError
from fogline.control import topics
from fogline.control.payload import (
    list_of,
    number_of,
    object_of,
    read_object,
    text_of,
    write_object,
)

LONGEST_NAME = 200
LONGEST_TEXT = 100_000
MOST_JOINED_BYTES = 64 << 10
"""Of answers in one message."""
ANSWERS = "answers"

NodePart = Mapping[str, Any]
"""What one node gets besides the body of a request."""


@dataclass(frozen=True, slots=True)
class ControlRequest:
    """Something to be done, not after `deadline`; the answer goes to the topic `answer`. One for
    several nodes that share a topic is answered by all of them together (`fogline.control.groups`).
    """

    id: str
    op: str
    body: Mapping[str, Any]
    deadline: float
    """Seconds since the epoch."""
    answer: str
    nodes: Mapping[str, NodePart] = field(default_factory=dict)
    """For whom it is, where nodes share a topic, and what each of them gets besides the body."""

    def __post_init__(self) -> None:
        if not self.id or not self.op:
            raise DataError("a request has an id and an operation")
        if not math.isfinite(self.deadline):
            raise DataError(f"the deadline of a request cannot be {self.deadline}")
        if not topics.is_answers(self.answer):
            raise DataError(f"answers are not sent to {self.answer[:80]!r}")

    def content(self, node: str = "") -> dict[str, Any]:
        """The body, with what is for that node besides."""
        return {**self.body, **self.nodes.get(node, {})}

    def encode(self) -> bytes:
        """Raises `DataError` when the body is no JSON, or too large."""
        data: dict[str, Any] = {
            "id": self.id,
            "op": self.op,
            "deadline": self.deadline,
            "answer": self.answer,
            "body": dict(self.body),
        }
        if self.nodes:
            data["nodes"] = {name: dict(part) for name, part in self.nodes.items()}
        return write_object(data)

    @classmethod
    def decode(cls, payload: bytes) -> ControlRequest:
        data = read_object(payload)
        nodes = object_of(data, "nodes")
        if not all(isinstance(part, dict) for part in nodes.values()):
            raise DataError("the part of a request for a node must be a JSON object")
        return cls(
            id=text_of(data, "id", LONGEST_NAME),
            op=text_of(data, "op", LONGEST_NAME),
            body=object_of(data, "body"),
            deadline=number_of(data, "deadline"),
            answer=text_of(data, "answer", LONGEST_NAME),
            nodes=nodes,
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
    def failure(cls, id: str, error: str, hint: str = "") -> Answer:
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
        """Of a message with one answer, or with several, as `join_answers` writes them."""
        data = read_object(payload)
        return [cls._of(_object(item)) for item in list_of(data, ANSWERS, [data])]

    @classmethod
    def _of(cls, data: dict[str, Any]) -> Answer:
        id, ok = text_of(data, "id", LONGEST_NAME), data.get("ok")
        if ok is True:
            return cls(id, True, object_of(data, "body"))
        if ok is not False:
            raise DataError("an answer must have a boolean `ok`")
        error = text_of(data, "error", LONGEST_TEXT)
        return cls(id, False, {}, error, text_of(data, "hint", LONGEST_TEXT, default=""))


def join_answers(payloads: Iterable[bytes]) -> list[bytes]:
    """Answers to one asker in few messages: each costs more than what is in it."""
    groups: list[list[bytes]] = []
    room = 0
    for payload in payloads:
        if len(payload) > room:
            groups.append([])
            room = MOST_JOINED_BYTES
        groups[-1].append(payload)
        room -= len(payload)
    return [
        group[0] if len(group) == 1 else b'{"%s":[%s]}' % (ANSWERS.encode(), b",".join(group))
        for group in groups
    ]


def _object(item: Any) -> dict[str, Any]:
    if not isinstance(item, dict):
        raise DataError("an answer must be a JSON object")
    return item
