"""Processes that end with the one that started them, however it ends."""

from __future__ import annotations

import ctypes
import signal

_PR_SET_PDEATHSIG = 1
_prctl = getattr(ctypes.CDLL(None, use_errno=True), "prctl", None)


def die_with_parent() -> None:
    """For a new process: the kernel kills it when the *thread* that started it has ended."""
    _on_parent_death(signal.SIGKILL)


def end_with_parent() -> None:
    """The same for a process that has something to save: it is asked to end."""
    _on_parent_death(signal.SIGTERM)


def _on_parent_death(number: int) -> None:
    if _prctl is not None:
        _prctl(_PR_SET_PDEATHSIG, number)
