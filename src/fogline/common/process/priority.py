"""How urgent a process is beside the others of its machine."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

_SESSION = Path("/proc/self/autogroup")
"""Where Linux shares the processors among sessions, niceness counts within one session only; this
file has that of the session as a whole."""
_ATTEMPTS, _PAUSE_SECONDS = 10, 0.1
"""Somebody other than root may change one session's niceness at a time, every tenth of a second."""


def step_back(niceness: int) -> None:
    """Others come first by so much, also before the processes that this one starts. For the first
    process of a session. A system that does not know sessions is none the worse for it."""
    os.nice(niceness)
    with contextlib.suppress(OSError):
        for attempt in range(_ATTEMPTS):
            with contextlib.suppress(BlockingIOError):
                _SESSION.write_text(str(niceness), encoding="ascii")
                return
            if attempt + 1 < _ATTEMPTS:
                time.sleep(_PAUSE_SECONDS)
