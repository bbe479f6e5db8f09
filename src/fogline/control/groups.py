"""One request for several nodes that share a topic, and what became of it at each of them.

The answer holds only what is worth it: of a node that did as it was asked and has nothing to say
there is nothing in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fogline.common.errors import DataError
from fogline.control.envelope import LONGEST_TEXT, Answer
from fogline.control.errors import ControlError, NoAnswerError
from fogline.control.payload import list_of, object_of, text_of

Outcome = dict[str, Any] | BaseException
"""What a node answered, or why it did not do it."""

_SAID, _FAILED, _LEFT = "said", "failed", "left"


def answer_of(id: str, answers: Mapping[str, Answer], left: Iterable[str]) -> Answer:
    """To a request that these nodes carried out and those left to others."""
    said = {node: dict(answer.body) for node, answer in answers.items() if answer.body}
    failed = {
        node: {"error": answer.error, "hint": answer.hint}
        for node, answer in answers.items()
        if not answer.ok
    }
    body = {_SAID: said, _FAILED: failed, _LEFT: list(left)}
    return Answer(id, body={name: value for name, value in body.items() if value})


def outcomes_of(body: Mapping[str, Any], nodes: Iterable[str]) -> dict[str, Outcome]:
    """Of each of these nodes, by the body of such an answer."""
    data = dict(body)
    if not data:
        return {node: {} for node in nodes}
    try:
        said, failed = object_of(data, _SAID), object_of(data, _FAILED)
        left = frozenset(map(str, list_of(data, _LEFT)))
        return {
            node: _failure(failed, node)
            if node in failed
            else NoAnswerError(f"{node} leaves it to another one of its name")
            if node in left
            else object_of(said, node)
            for node in nodes
        }
    except DataError as error:
        return dict.fromkeys(nodes, ControlError(f"invalid answer: {error.message}"))


def _failure(failed: dict[str, Any], node: str) -> ControlError:
    failure = object_of(failed, node)
    error = text_of(failure, "error", LONGEST_TEXT)
    return ControlError(error, text_of(failure, "hint", LONGEST_TEXT, default=""))
