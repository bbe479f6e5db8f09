"""Which share of a stream from the storage fabric is needed at all.

Where everybody who reads it says `SAMPLE p`, nodes send that fraction and no more.
"""

from __future__ import annotations

from dataclasses import replace

from fogline.model.streams import FABRIC
from fogline.plan.operators import Operator, Plan, Scan, rewrite_plan, walk_plan
from fogline.plan.rules.push_samples import push_samples


def with_shares(plan: Plan) -> Plan:
    """The same plan, whose streams say which share is asked for.

    It holds for any part of the plan too: who reads less of it samples no less.
    """
    shares = _shares(plan)

    def visit(operator: Operator) -> Operator:
        if not isinstance(operator, Scan) or operator.stream.name not in shares:
            return operator
        share = shares[operator.stream.name]
        return replace(operator, stream=replace(operator.stream, share=share))

    return rewrite_plan(plan, visit) if shares else plan


def _shares(plan: Plan) -> dict[str, float]:
    if not any(emit.sampling for emit in plan.emits):
        return {}
    found: dict[str, set[float | None]] = {}
    for scan in walk_plan(push_samples(plan)):
        if isinstance(scan, Scan) and scan.stream.provider == FABRIC:
            fraction = scan.sampling.fraction if scan.sampling else None
            found.setdefault(scan.stream.name, set()).add(fraction)
    single = {name: fractions.pop() for name, fractions in found.items() if len(fractions) == 1}
    return {name: fraction for name, fraction in single.items() if fraction is not None}
