"""What the parts of the analysis ask of the whole."""

from __future__ import annotations

from typing import NoReturn, Protocol

from fogline.language import ast
from fogline.plan.analysis.analysed import Analysed
from fogline.plan.analysis.catalog import Catalog
from fogline.plan.analysis.problems import QueryProblems
from fogline.plan.expressions import Expr


class Context(Protocol):
    """One analysis under way: the declarations, what is done, and where problems go."""

    catalog: Catalog
    problems: QueryProblems
    retention_ms: int
    done: dict[str, Analysed]

    def insight(self, name: str, asked_by: ast.SyntaxNode) -> Analysed:
        """The insight of that name, analysed now if it was not yet; refuses cycles."""

    def in_place(self, insight: Analysed, node: ast.SyntaxNode) -> Expr:
        """The value of another insight where its name stands; refuses what grows too large."""

    def analyse_nested(self, insight: ast.Insight) -> Analysed:
        """An inner aggregate, analysed as a hidden insight."""

    def refuse(self, code: str, message: str, node: ast.SyntaxNode, hint: str = "") -> NoReturn:
        """Records a problem and gives up on the statement."""
