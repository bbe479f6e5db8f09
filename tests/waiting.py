"""Waiting for a condition, never for a time: the one place that says how patient tests are."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

PATIENCE = 4
"""Limits are for a machine with nothing else to do; a busy one gets so many times as long."""

_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.01, 0.2
"""The longer it takes, the less often it is asked: who is asked has work to do."""


def wait_for(
    condition: Callable[[], Any], seconds: float = 20.0, what: object = "sign of it"
) -> Any:
    """The first true answer; fails with `what`, or what that returns, when none comes in time."""
    limit, begun = PATIENCE * seconds, time.monotonic()
    while not (answer := condition()):
        waited = time.monotonic() - begun
        if waited > limit:
            told = what() if callable(what) else what
            raise AssertionError(f"after {limit:.0f} s there is still no {told}")
        time.sleep(min(max(_SHORTEST_PAUSE, waited / 20), _LONGEST_PAUSE))
    return answer
