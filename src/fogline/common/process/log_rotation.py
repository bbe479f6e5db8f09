"""Files with what processes say, kept bounded while they write."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

LARGEST = 16 << 20


def keep_bounded(path: Path, most: int = LARGEST) -> None:
    """Moves what is in a file that has become too large to `<name>.1`, in place of what was there.

    The process that has it open for appending goes on at its beginning. Without space for the copy
    it is emptied all the same.
    """
    with contextlib.suppress(OSError):
        if path.stat().st_size <= most:
            return
        old = path.with_name(f"{path.name}.1")
        try:
            shutil.copyfile(path, old)
        except OSError:
            old.unlink(missing_ok=True)
        os.truncate(path, 0)
