"""`sample`: a fraction of the records, chosen by content.

A record is kept when the XXH64 of its message, as a number from 0 to 1, is below the fraction: what
the Spark source keeps with `sample`. So the records of one message stay together, the same ones are
kept everywhere, and those kept at a fraction are kept at every larger one. Records that an operator
made have no message; then the hash is that of their values.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fogline.gateway.operators.base import GatewayOperator, Record, StepOptions, is_number
from fogline.gateway.operators.hashing import unit, xxh64


class SampleOperator(GatewayOperator):
    """`{"op": "sample", "fraction": 0.1}`, with `seed` for another choice."""

    def __init__(self, step: Mapping[str, Any]) -> None:
        options = StepOptions(step)
        expected = "a number from 0 to 1"
        self._fraction = options.take("fraction", lambda v: is_number(v) and 0 <= v <= 1, expected)
        self._seed = options.take("seed", lambda v: type(v) is int, "a whole number", 0)
        options.close()

    def feed(self, record: Record) -> list[Record]:
        return [record] if unit(self._hash(record)) < self._fraction else []

    def _hash(self, record: Record) -> int:
        message = record.message
        if message is None:
            text = json.dumps(record.values, sort_keys=True, default=str)
            return xxh64(text.encode("utf-8", "replace"), self._seed)
        return xxh64(message.payload, self._seed) if self._seed else message.hash
