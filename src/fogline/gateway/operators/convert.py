"""`convert`: a field in another unit, or scaled and shifted. What is no number stays as it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fogline.formats.values import lookup
from fogline.gateway.operators.base import BadStep, Operator, Record, StepOptions, number
from fogline.gateway.operators.units import between


class Convert(Operator):
    """`{"op": "convert", "field": "t", "from": "F", "to": "C"}`, or with `scale` and `offset`;
    `into` names another field for the result."""

    def __init__(self, step: Mapping[str, Any]) -> None:
        options = StepOptions(step)
        self._field = options.text("field")
        self._into = options.text("into", self._field)
        if options.has("from") or options.has("to"):
            self._scale, self._offset = between(options.text("from"), options.text("to"))
        elif options.has("scale") or options.has("offset"):
            self._scale = options.any_number("scale", 1.0)
            self._offset = options.any_number("offset", 0.0)
        else:
            raise BadStep("it needs 'from' and 'to', or 'scale' and 'offset'")
        options.close()

    def feed(self, record: Record) -> list[Record]:
        value = number(lookup(record.values, self._field))
        if value is None:
            return [record]
        made = value * self._scale + self._offset
        return [record._replace(values={**record.values, self._into: made})]
