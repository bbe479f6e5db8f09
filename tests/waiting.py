"""Waiting for a condition, never for a time: the one place that says how patient tests are."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

PATIENCE = 4
"""Limits are for a machine with nothing else to do; a busy one gets so many times as long."""


def wait_for(
    condition: Callable[[], Any], seconds: float = 20.0, what: object = "sign of it"
) -> Any:
    """The first true answer; fails with `what` when none comes in time."""
    deadline = time.monotonic() + PATIENCE * seconds
    while not (answer := condition()):
        told = what() if callable(what) else what
        assert time.monotonic() < deadline, (
            f"after {PATIENCE * seconds:.0f} s there is still no {told}"
        )
        time.sleep(0.01)
    return answer
