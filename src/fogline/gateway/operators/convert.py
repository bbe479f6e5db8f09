"""`convert`: a field in another unit, or scaled and shifted. What is no number stays as it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fogline.formats.values import lookup
from fogline.gateway.operators.base import BadStep, GatewayOperator, Record, StepOptions, number

_DIMENSIONS: dict[str, dict[str, tuple[float, float]]] = {
    "temperature": {"K": (1, 0), "C": (1, 273.15), "F": (5 / 9, 459.67 * 5 / 9)},
    "speed": {"m/s": (1, 0), "km/h": (1 / 3.6, 0), "mph": (0.44704, 0), "kn": (1852 / 3600, 0)},
    "pressure": {
        "Pa": (1, 0), "hPa": (100, 0), "mbar": (100, 0), "kPa": (1000, 0), "bar": (100_000, 0),
        "psi": (6894.757293168361, 0), "atm": (101_325, 0), "mmHg": (133.322387415, 0),
    },
    "length": {
        "m": (1, 0), "mm": (0.001, 0), "cm": (0.01, 0), "km": (1000, 0),
        "in": (0.0254, 0), "ft": (0.3048, 0), "mi": (1609.344, 0),
    },
    "mass": {"kg": (1, 0), "g": (0.001, 0), "t": (1000, 0), "lb": (0.45359237, 0)},
    "energy": {"J": (1, 0), "kJ": (1000, 0), "Wh": (3600, 0), "kWh": (3.6e6, 0), "MWh": (3.6e9, 0)},
    "power": {"W": (1, 0), "kW": (1000, 0), "MW": (1e6, 0), "hp": (745.6998715822702, 0)},
    "volume": {"m3": (1, 0), "l": (0.001, 0), "ml": (1e-6, 0), "gal": (0.003785411784, 0)},
    "time": {"s": (1, 0), "ms": (0.001, 0), "min": (60, 0), "h": (3600, 0)},
    "ratio": {"1": (1, 0), "%": (0.01, 0), "ppm": (1e-6, 0)},
}  # fmt: skip

_UNITS = {unit: name for name, units in _DIMENSIONS.items() for unit in units}


def between(source: str, target: str) -> tuple[float, float]:
    """Scale and offset from one unit to another. Raises `BadStep` for those that do not fit."""
    for unit in (source, target):
        if unit not in _UNITS:
            raise BadStep(f"no unit {unit[:40]!r}; known are {', '.join(_UNITS)}")
    dimension = _UNITS[source]
    if _UNITS[target] != dimension:
        raise BadStep(f"{source} is a {dimension}, {target} a {_UNITS[target]}")
    scale, offset = _DIMENSIONS[dimension][source]
    to_scale, to_offset = _DIMENSIONS[dimension][target]
    return scale / to_scale, (offset - to_offset) / to_scale


class ConvertOperator(GatewayOperator):
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
