"""Which share of each node's values is sent to a query, where less will do than it asks for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fogline.common.errors import DataError

Shares = Mapping[str, Mapping[str, Mapping[str, float]]]
"""By job, stream and node; more than 0, at most 1."""
MOST_SHARES = 100_000


def read_shares(told: Any) -> dict[str, dict[str, dict[str, float]]]:
    """Checked, from JSON. Raises DataError for anything that is none."""
    try:
        found = {
            _name(job): {
                _name(stream): {_name(node): _share(share) for node, share in nodes.items()}
                for stream, nodes in streams.items()
            }
            for job, streams in told.items()
        }
    except (AttributeError, TypeError, ValueError) as error:
        raise DataError("shares are numbers, by job, stream and node") from error
    if sum(len(nodes) for streams in found.values() for nodes in streams.values()) > MOST_SHARES:
        raise DataError(f"there are more than {MOST_SHARES:,} shares")
    return found


def _name(told: Any) -> str:
    if not isinstance(told, str) or len(told) > 1000:
        raise ValueError("no name")
    return told


def _share(told: Any) -> float:
    if isinstance(told, bool) or not isinstance(told, int | float) or not 0 < told <= 1:
        raise ValueError("no share")
    return float(told)
