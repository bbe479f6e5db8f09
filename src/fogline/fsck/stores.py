"""Stores: the manifest, every data file, the databases, and copies of other sites."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

from fogline.common.sealed_files import broken_seal, remedy
from fogline.common.state_files import copy_of
from fogline.fsck.findings import NOTHING, Finding, find_files, find_folders, too_large, unreadable
from fogline.fsck.state import STORE, check_state, find_set_aside
from fogline.storage.errors import StoreDamaged
from fogline.storage.files import data_files, manifest
from fogline.storage.files.manifest import DataFile, LostFile, Manifest


def check_store(folder: Path, is_copy: bool = False) -> Iterator[Finding]:
    if not folder.is_dir():
        return
    again = "it is made anew from its origin" if is_copy else ""
    try:
        yield from _check_values(folder, again)
    except OSError as error:
        yield unreadable(Path(error.filename or folder), error)
    yield from check_state(folder, STORE)
    yield from find_set_aside(folder, "")
    for path in find_files(folder, "*.db"):
        yield from check_database(path, again)


def check_copies(folder: Path) -> Iterator[Finding]:
    """Copies of other sites, in the folder of a site."""
    for inner in find_folders(folder, "copies/*"):
        if inner.name.endswith(".damaged"):
            hint = "nothing has to be done; remove the folder to acknowledge"
            yield Finding(inner, "it was damaged, and is set aside", NOTHING, hint)
        elif "." not in inner.name:
            yield from check_store(inner, is_copy=True)


def _check_values(folder: Path, again: str) -> Iterator[Finding]:
    path = folder / manifest.NAME
    known, wrong = _manifest(path)
    copied, wrong_copy = _manifest(copy_of(path))
    if wrong and copied is not None:
        yield Finding(path, wrong, "nothing: its copy is whole", "start it: the copy is used")
        known = copied
    elif wrong:
        lost = f"nothing: {again}" if again else "all values in this store"
        yield Finding(path, wrong, lost, again or _RESTORE)
    elif wrong_copy:
        hint = "nothing has to be done; it is written again with the next change"
        yield Finding(copy_of(path), wrong_copy, NOTHING, hint)
    if known is not None:
        yield from _check_files(folder, known, again)


def _manifest(path: Path) -> tuple[Manifest | None, str]:
    """The manifest, if there is one, and what is wrong with it."""
    try:
        if too_large(path):
            return None, "it is far too large"
        return manifest.read(path), ""
    except FileNotFoundError:
        return None, ""
    except StoreDamaged as error:
        return None, error.reason


def _check_files(folder: Path, known: Manifest, again: str) -> Iterator[Finding]:
    for listed in known.files:
        if wrong := data_files.what_is_wrong(folder / "data" / listed.name, listed):
            lost = _values(listed) if not again else f"nothing: {again}"
            yield Finding(folder / "data" / listed.name, wrong, lost, again or _START)
    for file in known.lost:
        path = folder / "damaged" / file.name
        yield Finding(
            path, f"it was damaged, and is set aside: {file.reason}", _values(file), _ASIDE
        )


_RESTORE = "restore it from a backup, or move the store away: values that have copies come back"
_START = "start the site: the file is set aside, and values come back from a copy if there is one"
_ASIDE = "values come back from a copy of this store when there is one; else remove the file"


def _values(file: DataFile | LostFile) -> str:
    return manifest.amount(file.rows, file.first, file.last)


def check_database(path: Path, hint: str = "") -> Iterator[Finding]:
    """Its seal, and what SQLite finds, which would write beside a database that was not closed: one
    of these is copied first."""
    logged = path.with_name(f"{path.name}-wal")
    try:
        problem = broken_seal(path)
        if logged.exists():
            with TemporaryDirectory() as place:
                for file in (path, logged):
                    shutil.copy(file, place)
                problem = _integrity(Path(place, path.name), "rw")
        elif not problem:
            problem = _integrity(path, "ro&immutable=1")
    except OSError as error:
        yield unreadable(path, error)
        return
    if problem:
        lost = "some of what is in it: it does not open"
        yield Finding(path, f"the database is damaged: {problem}", lost, hint or remedy(path))


def _integrity(path: Path, mode: str) -> str:
    try:
        address = f"file:{quote(str(path.absolute()))}?mode={mode}"
        with closing(sqlite3.connect(address, uri=True)) as database:
            ((found,),) = database.execute("PRAGMA integrity_check(1)").fetchall()
    except sqlite3.Error as error:
        return str(error)
    return "" if found == "ok" else str(found)
