"""What is wrong with a file, in the words that people read, and how files are found."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from pathlib import Path

NOTHING = "nothing"
_MOST_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem: of which file, what it is, what is lost by it, and what to do."""

    path: Path
    problem: str
    lost: str
    hint: str

    def as_json(self) -> dict[str, str]:
        return asdict(self) | {"path": str(self.path)}

    def text(self) -> str:
        return f"{self.path}: {self.problem}\n  lost: {self.lost}\n  do: {self.hint}"


def unreadable(path: Path, error: OSError) -> Finding:
    reason = error.strerror or type(error).__name__
    hint = "give yourself the right to read it, or check the disk"
    return Finding(path, f"it cannot be read: {reason}", "not known", hint)


def too_large(path: Path) -> bool:
    """For a file that is read as a whole. Raises `OSError`."""
    return path.stat().st_size > _MOST_BYTES


def find_files(folder: Path, pattern: str) -> Iterator[Path]:
    """Plain files that fit a pattern, in order. Links are not followed: none is made by us."""
    *parts, name = pattern.split("/")
    for inner in _below([folder], parts):
        yield from (Path(entry.path) for entry in _entries(inner, name) if _is_file(entry))


def find_folders(folder: Path, pattern: str) -> Iterator[Path]:
    """Folders that fit a pattern, in order. Links are not followed."""
    yield from _below([folder], pattern.split("/"))


def _below(folders: list[Path], parts: list[str]) -> list[Path]:
    for part in parts:
        folders = [
            Path(entry.path)
            for folder in folders
            for entry in _entries(folder, part)
            if entry.is_dir(follow_symlinks=False)
        ]
    return folders


def _entries(folder: Path, pattern: str) -> list[os.DirEntry[str]]:
    with contextlib.suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as found:
        return sorted((e for e in found if fnmatchcase(e.name, pattern)), key=lambda e: e.name)
    return []


def _is_file(entry: os.DirEntry[str]) -> bool:
    return entry.is_file(follow_symlinks=False)
