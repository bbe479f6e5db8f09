"""Sample fractions: which part of each node's values is sent to a query."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fogline.common.errors import DataError

SampleFractions = Mapping[str, Mapping[str, Mapping[str, float]]]
"""By job, stream and node; more than 0, at most 1."""
MOST_FRACTIONS = 100_000


def read_sample_fractions(data: Any) -> dict[str, dict[str, dict[str, float]]]:
    """Checked, from JSON. Raises DataError for anything that is none."""
    try:
        found = {
            _name(job): {
                _name(stream): {
                    _name(node): _fraction(fraction) for node, fraction in nodes.items()
                }
                for stream, nodes in streams.items()
            }
            for job, streams in data.items()
        }
    except (AttributeError, TypeError, ValueError) as error:
        raise DataError(
            "`shares` must map job, stream and node to numbers above 0 and at most 1"
        ) from error
    if sum(len(nodes) for streams in found.values() for nodes in streams.values()) > MOST_FRACTIONS:
        raise DataError(f"too many sample fractions: at most {MOST_FRACTIONS:,}")
    return found


def _name(data: Any) -> str:
    if not isinstance(data, str) or len(data) > 1000:
        raise ValueError("no name")
    return data


def _fraction(data: Any) -> float:
    if isinstance(data, bool) or not isinstance(data, int | float) or not 0 < data <= 1:
        raise ValueError("no fraction")
    return float(data)
