"""`filter`: only records for which a condition is true."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fogline.gateway.operators.base import BadStep, GatewayOperator, Record, StepOptions
from fogline.gateway.operators.condition import Types, compile_condition
from fogline.gateway.operators.when import parse_when


class FilterOperator(GatewayOperator):
    """`{"op": "filter", "when": "x > 3"}`, or `condition` with the source's JSON form."""

    def __init__(self, step: Mapping[str, Any], types: Types) -> None:
        options = StepOptions(step)
        if options.has("when") == options.has("condition"):
            raise BadStep("it needs 'when', a text, or 'condition', a JSON tree")
        if options.has("when"):
            tree = parse_when(options.text("when"))
        else:
            tree = options.take("condition", lambda v: isinstance(v, Mapping), "a JSON tree")
        self._test = compile_condition(tree, types)
        options.close()

    def feed(self, record: Record) -> list[Record]:
        return [record] if self._test(record) else []
