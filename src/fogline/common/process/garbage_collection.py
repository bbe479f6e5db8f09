"""Python's search for garbage, in processes that run long and answer many."""

from __future__ import annotations

import gc

_NEW_OBJECTS = 20_000
"""That are there before somebody looks for garbage among them: most belong to what is being done
right now, and are freed without a search."""


def leave_what_is_there() -> None:
    """What was made by now stays: looking through it again and again would hold up every thread."""
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS)
