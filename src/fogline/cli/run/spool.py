"""A spool: a growing file that a stream reads while another thread writes it."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import BinaryIO


class Spool:
    """Whole messages appended to one file; `end` says that nothing follows. Removed on exit."""

    def __init__(self, scratch: Path) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="fogline-spool-", dir=scratch))
        self.path = self._folder / "records"
        self._file = self.path.open("ab", buffering=0)

    def __enter__(self) -> Spool:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def write(self, data: bytes) -> None:
        self._file.write(data)

    def end(self) -> None:
        self.path.with_name(self.path.name + ".end").touch()

    def copy(self, source: BinaryIO) -> None:
        """Copies everything from a pipe, as it arrives, then marks the end."""
        try:
            while chunk := getattr(source, "read1", source.read)(1 << 16):
                self.write(chunk)
            self.end()
        except ValueError:
            return  # the spool was closed while data was still coming
