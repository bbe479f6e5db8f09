"""What a plan asks the storage fabric for: the conditions of its scans that a store can decide.

The answer may hold more than the scans take: what they ask for is still checked record by record.
"""

from __future__ import annotations

from collections.abc import Iterable

from fogline.model.question import ENTITY, METRIC, NODE, PatternTexts, Question, exact, prefix
from fogline.plan.expressions import (
    AnyOf,
    Compare,
    Constant,
    Every,
    Expr,
    Field,
    OneOf,
    StartsWith,
)
from fogline.plan.operators import Scan


def question_of(scans: Iterable[Scan]) -> Question:
    """One question with everything that some of these scans take."""
    found = list(scans)
    share = max((scan.stream.share for scan in found), default=1.0)
    metrics, entities, nodes = (_any_of(found, name) for name in (METRIC, ENTITY, NODE))
    return Question(metrics, entities, nodes, share)


def _any_of(scans: list[Scan], name: str) -> PatternTexts:
    return _unite_patterns([_patterns(scan.condition, name) for scan in scans])


def _patterns(condition: Expr | None, name: str) -> PatternTexts:
    """What a field can be where a condition is true, as far as that can be asked for."""
    match condition:
        case Compare("==", Field(field), Constant(str(value))) if field == name:
            return (exact(value),)
        case StartsWith(Field(field), text) if field == name:
            return (prefix(text),)
        case OneOf(Field(field), values) if field == name:
            return tuple(exact(str(value)) for value in values)
        case AnyOf(terms):
            return _unite_patterns([_patterns(term, name) for term in terms])
        case Every(terms):
            return next((p for term in terms if (p := _patterns(term, name)) is not None), None)
    return None


def _unite_patterns(found: list[PatternTexts]) -> PatternTexts:
    """All of them; one that can be anything leaves nothing to ask for."""
    if None in found:
        return None
    return tuple(dict.fromkeys(pattern for patterns in found for pattern in patterns or ()))
