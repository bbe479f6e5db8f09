"""Waiting for something to change."""

from __future__ import annotations

import threading


class News:
    """Counts what happens. For several threads."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._number = 0

    @property
    def number(self) -> int:
        return self._number

    def tell(self) -> None:
        """Something may be different now."""
        with self._changed:
            self._number += 1
            self._changed.notify_all()

    def wait(self, seen: int, seconds: float) -> None:
        """Until there is more than was seen, or so long."""
        with self._changed:
            self._changed.wait_for(lambda: self._number != seen, seconds)
