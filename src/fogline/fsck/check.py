"""A whole folder: what it is of, whether it is in use, and all that is wrong with it."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fogline.common.errors import UsageError
from fogline.common.sealed_files import broken_seal
from fogline.fsck.findings import NOTHING, Finding, find_files, find_folders, unreadable
from fogline.fsck.logs import check_log
from fogline.fsck.state import (
    COORDINATOR,
    GATEWAY,
    JOURNAL,
    SITE,
    StateKind,
    check_state,
    find_set_aside,
)
from fogline.fsck.stores import check_copies, check_database, check_store
from fogline.log.files.lock import is_written
from fogline.spark.jobs.checkpoint_damage import find_damage, find_useless_sums

_SHA = re.compile(r"[0-9a-f]{64}")
_READ_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose folder it is: known by its `marks`, any of which is there."""

    name: str
    marks: tuple[str, ...]
    kinds: tuple[StateKind, ...]
    logs: tuple[str, ...]
    aside: tuple[str, ...]
    """Where state files are set aside, besides logs and the store."""


SITE_FOLDER = Owner(
    "site",
    ("agent.lock", "store/manifest", "log/*/topic"),
    (*SITE, *JOURNAL),
    ("log/*", "journal"),
    ("", "broker", "broker/data", "jobs/*", "jobs/*/counted", "jobs/*/checkpoints/*"),
)
COORDINATOR_FOLDER = Owner("coordinator", ("coordinator.db",), COORDINATOR, (), ("", "broker/data"))
GATEWAY_FOLDER = Owner(
    "gateway",
    ("jobs/topic", "state/*.json", "logs/*/topic"),
    (*GATEWAY, *JOURNAL),
    ("logs/*", "journal", "jobs"),
    ("state", "broker/data"),
)
_OWNERS = (GATEWAY_FOLDER, COORDINATOR_FOLDER, SITE_FOLDER)


def owner_of(folder: Path) -> Owner:
    """Raises `UsageError` where nobody of ours has kept anything."""
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder", "name the folder of a site")
    try:
        for owner in _OWNERS:
            if any(next(find_files(folder, mark), None) for mark in owner.marks):
                return owner
    except OSError as error:
        raise UsageError(f"{folder} cannot be read: {error.strerror}") from error
    hint = "name the folder of a site, a gateway or a coordinator: `folder` in its configuration"
    raise UsageError(f"{folder} is not the folder of a site", hint)


def is_running(folder: Path, owner: Owner) -> bool:
    """Whether somebody works in the folder, as far as its locks show. Takes none that stays."""
    if owner is GATEWAY_FOLDER:
        return is_written(folder / "jobs")
    lock = folder / ("agent.lock" if owner is SITE_FOLDER else "lock")
    try:
        with lock.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def check_folder(folder: Path, owner: Owner) -> Iterator[Finding]:
    """Everything that is wrong, as it is found. Nothing is changed."""
    for check in (_check_state, _check_logs, _check_checkpoints, _check_rest):
        try:
            yield from check(folder, owner)
        except OSError as error:
            yield unreadable(Path(os.fsdecode(error.filename or folder)), error)


def _check_state(folder: Path, owner: Owner) -> Iterator[Finding]:
    yield from check_state(folder, owner.kinds)
    for place in owner.aside:
        yield from find_set_aside(folder, place)


def _check_logs(folder: Path, owner: Owner) -> Iterator[Finding]:
    for pattern in owner.logs:
        for inner in find_folders(folder, pattern):
            yield from check_log(inner)


def _check_checkpoints(folder: Path, _: Owner) -> Iterator[Finding]:
    for inner in find_folders(folder, "jobs/*/checkpoints/*/*"):
        for damage in find_damage(inner):
            lost = "the state of the query: its job does not run until it is restored"
            yield Finding(damage.file, damage.reason, lost, damage.hint(inner))
        for path in find_useless_sums(inner):
            hint = "nothing has to be done; its file goes with later batches"
            yield Finding(path, "it holds no checksums: its file is not checked", NOTHING, hint)


def _check_rest(folder: Path, owner: Owner) -> Iterator[Finding]:
    if owner is SITE_FOLDER:
        yield from check_store(folder / "store")
        yield from check_copies(folder)
    for path in find_files(folder, "coordinator.db"):
        yield from check_database(path)
    for path in find_files(folder, "broker/data/mosquitto.db"):
        if wrong := broken_seal(path):
            lost = "retained messages and sessions of clients"
            yield Finding(path, wrong, lost, "start it: the file is set aside")
    for path in find_files(folder, "packages/*"):
        if _SHA.fullmatch(path.name) and _sha256(path) != path.name:
            hint = "remove it: it is fetched again, or deploy the job again"
            yield Finding(path, "it is not the package of its name", "the code of jobs", hint)


def _sha256(path: Path) -> str:
    found = hashlib.sha256()
    with path.open("rb") as file:
        while part := file.read(_READ_BYTES):
            found.update(part)
    return found.hexdigest()
