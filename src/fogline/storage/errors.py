"""What can go wrong with a store; limits and wrong questions are classes of their own."""

from __future__ import annotations

from pathlib import Path

from fogline.common.errors import FoglineError


class StoreError(FoglineError):
    """A store cannot be read or written; the root of this family."""


class StoreDamaged(StoreError):  # noqa: N818
    """A file does not hold what was written to it; nothing was changed."""

    def __init__(self, file: Path, reason: str, hint: str = "") -> None:
        hint = hint or "restore it from a backup, or move the folder away to begin again"
        super().__init__(f"{file} is damaged: {reason}", hint)
        self.file = file
        self.reason = reason


class StoreBusy(StoreError):  # noqa: N818
    """Another store has the folder open."""


class StoreFull(StoreError):  # noqa: N818
    """There is no space; what waits in memory stays there, and the next flush tries again."""


class BadValue(StoreError):  # noqa: N818
    """A value cannot be stored: a name, a text or a time out of bounds."""


class BadQuery(StoreError):  # noqa: N818
    """The question is wrong: a name, a range, a cursor, a column, a statement."""


class QueryLimit(StoreError):  # noqa: N818
    """The question is right, but takes more time, memory or rows than it may."""
