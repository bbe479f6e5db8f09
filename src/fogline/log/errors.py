"""What can go wrong with a log. Each error names the file or folder a person should look at."""

from __future__ import annotations

import errno
from pathlib import Path

from fogline.common.errors import FoglineError

_NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class LogError(FoglineError):
    """A log cannot be read or written; the root of this family."""


class LogDamaged(LogError):  # noqa: N818
    """A file does not hold what was written to it; `position` is where that shows."""

    def __init__(self, file: Path, position: int, reason: str, hint: str = "") -> None:
        super().__init__(f"{file} is damaged at position {position}: {reason}", hint)
        self.file = file
        self.position = position
        self.reason = reason


class LogGone(LogError):  # noqa: N818
    """The requested position is no longer in the log: retention has removed it."""

    def __init__(self, folder: Path, position: int, first: int) -> None:
        super().__init__(f"{folder} has no position {position} any more: it starts at {first}")
        self.position = position
        self.first = first


class LogBusy(LogError):  # noqa: N818
    """Another writer has the log open."""


class LogFull(LogError):  # noqa: N818
    """There is no space; nothing was written, and the same call works when space returns."""


def write_failed(folder: Path, error: OSError) -> LogError:
    """The error to raise for a failed write: `LogFull` where space is what was missing."""
    if error.errno in _NO_SPACE:
        return LogFull(f"no space left for the log {folder}", "free some space on its disk")
    return LogError(f"cannot write the log {folder}: {error.strerror}")
