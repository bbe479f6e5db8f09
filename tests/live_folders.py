"""Looking at folders while others work in them: what vanishes meanwhile is not there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def below(folder: Path) -> Iterator[Path]:
    """Every folder and file in it, at any depth."""
    for place, folders, files in os.walk(folder):
        yield from (Path(place, name) for name in (*folders, *files))


def contents(folder: Path, suffix: str = "") -> Iterator[bytes]:
    """Of every file in it whose name ends so."""
    for path in below(folder):
        if path.name.endswith(suffix) and path.is_file():
            with suppress(FileNotFoundError):
                yield path.read_bytes()
