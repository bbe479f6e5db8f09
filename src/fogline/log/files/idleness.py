"""What the writer of a log reports to its readers about silence, in the file `heard` of the log.

`<position> <milliseconds>`: up to the position everything is there, and while somebody listened
nothing more has come for so long. It is a help for those who wait, not a part of the log: it is not
synced, and may be missing.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path

from fogline.common.state_files import add_checksum

_FILE = "heard"
_NOTE_SECONDS = 1.0


class Silence:
    """How long nothing has come for a log. For one thread."""

    def __init__(self, folder: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._folder = folder
        self._clock = clock
        self._position = -1
        self._since = 0.0
        self._due = 0.0

    def note(self, position: int, listening: bool) -> None:
        """Called again and again with the log's end. Silence begins anew when something came, or
        when nobody listened for a while: what is sent then comes later."""
        now = self._clock()
        if position != self._position or not listening:
            self._position, self._since, self._due = position, now, now + _NOTE_SECONDS
        elif now >= self._due:
            self._due = now + _NOTE_SECONDS
            with contextlib.suppress(OSError):
                write_heard(self._folder, position, round((now - self._since) * 1000))


def write_heard(folder: Path, position: int, quiet_ms: int) -> None:
    partial = folder / f".{_FILE}"
    partial.write_text(add_checksum(f"{position} {quiet_ms}\n"), encoding="ascii")
    partial.replace(folder / _FILE)
