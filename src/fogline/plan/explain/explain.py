"""What `fogline explain` says of a plan: the tree before, what each rule did, the tree after."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from fogline.language import ast
from fogline.language.printer import print_query
from fogline.plan.explain.show import show_plan
from fogline.plan.operators import Plan
from fogline.plan.rules import Step, optimise


@dataclass(frozen=True, slots=True)
class Explanation:
    query: str
    before: str
    steps: tuple[tuple[str, str], ...]
    """Each rule with the lines it removed (-) and added (+); empty when it did nothing."""
    after: str

    def render(self) -> str:
        parts = ["# query", self.query.rstrip(), "", "# plan, as written", self.before, ""]
        for rule, change in self.steps:
            parts += [f"# {rule}", change or "(nothing to do)", ""]
        return "\n".join([*parts, "# plan, after the rules", self.after])


def explain(query: ast.QueryFile, plan: Plan) -> tuple[Explanation, Plan]:
    optimised, steps = optimise(plan)
    explanation = Explanation(
        print_query(query),
        show_plan(plan),
        tuple((step.rule, _change(step)) for step in steps),
        show_plan(optimised),
    )
    return explanation, optimised


def _change(step: Step) -> str:
    before, after = show_plan(step.before).splitlines(), show_plan(step.after).splitlines()
    lines = difflib.unified_diff(before, after, lineterm="", n=0)
    return "\n".join(line for line in lines if line[:2] in ("- ", "+ ") or _content(line))


def _content(line: str) -> bool:
    return line[:1] in "+-" and not line.startswith(("---", "+++"))
