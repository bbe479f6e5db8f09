"""How far insights may build on one another, so that every file is checked quickly and can run."""

from __future__ import annotations

from dataclasses import dataclass

from fogline.plan.analysis.analysed import Analysed
from fogline.plan.expressions import walk

MAX_CHAIN = 50
"""Insights that name an insight that names an insight …"""
MAX_LEVELS = 10
"""Aggregates of results of aggregates of results …: each level is a stateful step of its own."""
MAX_TERMS = 2000
"""Terms of one insight once the insights it names stand in their places."""


@dataclass(slots=True)
class _Open:
    chain: int = 0
    terms: int = 0


class Reach:
    """Follows the insights under way: how long their chains are, how large they have grown."""

    def __init__(self) -> None:
        self._chains: dict[str, int] = {}
        self._terms: dict[str, int] = {}
        self._open: list[_Open] = []

    @property
    def under_way(self) -> int:
        return len(self._open)

    def begin(self) -> None:
        self._open.append(_Open())

    def end(self, name: str) -> None:
        self._chains[name] = self._open.pop().chain + 1

    def use(self, name: str) -> bool:
        """Notes that the insight under way names another; False when the chain is too long."""
        if self._open:
            self._open[-1].chain = max(self._open[-1].chain, self._chains[name])
        return self._chains[name] <= MAX_CHAIN

    def expand(self, insight: Analysed) -> bool:
        """Notes that another insight stands in place of its name; False when it gets too large."""
        if insight.name not in self._terms:
            parts = [e for e in (insight.value, insight.condition) if e is not None]
            self._terms[insight.name] = sum(1 for part in parts for _ in walk(part))
        self._open[-1].terms += self._terms[insight.name]
        return self._open[-1].terms <= MAX_TERMS
