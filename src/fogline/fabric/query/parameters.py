"""A question to the fabric as nodes and the REST interface take it."""

from __future__ import annotations

from collections.abc import Iterable

from fogline.model.question import Question
from fogline.storage.names import parse_all


def asks_node(question: Question, node: str) -> bool:
    """Whether values that arose at this node are asked for. Raises `BadQuery` for wrong names."""
    patterns = parse_all(question.nodes)
    return patterns is None or patterns.matches(node)


def parameters(question: Question) -> list[tuple[str, str]]:
    """Those of an address of the REST interface."""
    return [
        *_each("metric", question.metrics),
        *_each("entity", question.entities),
        *_each("node", question.nodes),
        *([("share", repr(question.share))] if question.share < 1 else []),
    ]


def _each(key: str, found: Iterable[str] | None) -> list[tuple[str, str]]:
    return [(key, name) for name in found or ()]
