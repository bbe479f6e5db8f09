"""State files: their checksums, their copies, and what was set aside already."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from fogline.common.state_files import (
    DAMAGED,
    StateDamaged,
    copy_of,
    decode_state,
    has_checksum,
)
from fogline.fsck.findings import NOTHING, Finding, find_files, too_large, unreadable
from fogline.storage.files.identity import is_id

_ITSELF = "nothing: it is made anew at the next start"
_AGAIN = "how much was counted: it begins at 0 again"
_ASIDE = "start the site: the file is set aside"


@dataclass(frozen=True, slots=True)
class StateKind:
    """Files of one kind, found by a pattern; `understand` raises `ValueError` and the like."""

    pattern: str
    lost: str
    hint: str
    understand: Callable[[str], object] = str
    hidden: bool = False
    """Its name begins with a dot."""
    required: bool = False
    """Without a checksum it is damaged, also where an older version wrote it."""


def _numbers(text: str) -> None:
    first, second = text.split()
    int(first), int(second)


def _pairs(text: str) -> None:
    for line in text.splitlines()[1:]:
        _numbers(line)


def _store_id(text: str) -> None:
    if not is_id(text.strip()):
        raise ValueError(text)


SITE = (
    StateKind(
        "assignments.json",
        "the jobs that the coordinator assigned, until it sends them again",
        "start the site: the file is set aside and the coordinator sends its jobs again",
        json.loads,
    ),
    StateKind(
        "endings.json",
        "what removed jobs still had to send",
        _ASIDE,
        json.loads,
    ),
    StateKind(
        "fabric-secret",
        "the secret of the fabric",
        "move it away: the coordinator hands it over again",
        json.loads,
    ),
    StateKind(
        "copies.json",
        "which copies of other sites are kept here",
        "start the site: the coordinator says it again, or set it with fogline replicas",
        json.loads,
    ),
    StateKind(
        "fabric.json", _ITSELF, "start the site: other sites announce themselves", json.loads
    ),
    StateKind("store-port", _ITSELF, "start the site: the store may get another port", int),
    StateKind("broker/port", _ITSELF, "start the site: the broker may get another port", int),
    StateKind(
        "jobs/*/lives.json",
        "where the job began: it does not run until the file is back",
        "restore it from a backup, or move the job's folder away to begin the job anew",
        json.loads,
    ),
    StateKind("jobs/*/muted", _ITSELF, "start the site: it is written anew", required=True),
    StateKind("jobs/*/counted/[0-9]*", _AGAIN, _ASIDE, _numbers),
    StateKind("jobs/*/counted/taken.json", _AGAIN, _ASIDE, json.loads),
    StateKind(
        "jobs/*/checkpoints/*/*.logs", _ITSELF, "start the site: it is written anew", json.loads
    ),
)
JOURNAL = (
    StateKind(
        "journal/intake",
        "which messages of the journal are in the logs already",
        "restore it from a backup, or move the journal away to go on without what it holds",
        json.loads,
    ),
)
LOG = (
    StateKind(
        "readers/*",
        "how far this reader is: it reads what is kept again, some results may come twice",
        "start the site: the file is set aside, the reader goes on with the oldest record",
        int,
    ),
    StateKind(
        "readers/.*.retired",
        "how far this reader was: used again, it begins with the oldest record",
        "remove it",
        int,
        hidden=True,
    ),
    StateKind("sources", _ITSELF, "start the site: it is made from the log", _pairs),
    StateKind("removed", _ITSELF, "start the site: it is written anew", _numbers),
    StateKind(
        "damage/[0-9]*",
        "what was noted about a damaged place of the log",
        "remove it: the place is noted again when it is read",
        json.loads,
    ),
    StateKind("heard", _ITSELF, "start the site: it is written anew", _numbers),
    StateKind(
        "id",
        "the number of the log, by which other sites know what they have of it",
        "restore it from a backup, or move the log's folder away",
        int,
    ),
    StateKind(
        "begins",
        "from where the log follows each store: it begins anew from now on",
        _ASIDE,
        json.loads,
    ),
)
STORE = (
    StateKind(
        "id",
        "which store this is: it does not open",
        "restore it from a backup, or move the store away and let copies of it come back",
        _store_id,
    ),
    StateKind(
        "space-keys.json",
        "the keys of spaces: the store does not open",
        "restore it from a backup, or remove it and set the keys of spaces anew",
        json.loads,
    ),
    StateKind(
        "tokens.json",
        "the tokens that were added: the store refuses them",
        "restore it from a backup, or remove it and add the tokens anew",
        json.loads,
    ),
)
GATEWAY = (
    StateKind(
        "state/*.json",
        "the state of the job: it does not run until it is deployed anew",
        "restore it from a backup, or deploy the job anew",
        json.loads,
    ),
)
COORDINATOR = (
    StateKind("control-port", _ITSELF, "start the coordinator: the broker may move", int),
    StateKind(
        "fabric-secret",
        "the secret of the fabric",
        "move it away: a new one is made and handed to all sites",
        json.loads,
    ),
)


def check_state(folder: Path, kinds: tuple[StateKind, ...]) -> Iterator[Finding]:
    """All state files of these kinds in a folder, with their copies."""
    for kind in kinds:
        for path in find_files(folder, kind.pattern):
            if path.name.startswith(".") == kind.hidden:
                yield from _check_file(path, kind)


def find_set_aside(folder: Path, pattern: str) -> Iterator[Finding]:
    """Damaged files that were found and set aside before."""
    for path in find_files(folder, f"{pattern}/.*{DAMAGED}*".removeprefix("/")):
        hint = "nothing has to be done; remove the file to acknowledge"
        yield Finding(path, "it was damaged, and is set aside", "see the site's log", hint)


def _check_file(path: Path, kind: StateKind) -> Iterator[Finding]:
    copy = copy_of(path)
    wrong = _find_problem(path, kind, must=kind.required or copy.exists())
    of_copy = _find_problem(copy, kind, must=True) if copy.exists() else None
    if isinstance(wrong, Finding) or wrong is None:
        if isinstance(wrong, Finding):
            yield wrong
        if isinstance(of_copy, str):
            hint = "remove the copy: it is written again with the next change"
            yield Finding(copy, of_copy, NOTHING, hint)
    elif copy.exists() and of_copy is None:
        yield Finding(path, wrong, "nothing: its copy is whole", "start it: the copy is used")
    else:
        yield Finding(path, wrong, kind.lost, kind.hint)


def _find_problem(path: Path, kind: StateKind, must: bool) -> str | Finding | None:
    try:
        if too_large(path):
            return "it is far too large"
        data = path.read_bytes()
        if must and not has_checksum(data):
            return "its checksum is missing"
        kind.understand(decode_state(path, data))
    except StateDamaged as error:
        return error.reason
    except FileNotFoundError:
        return None
    except OSError as error:
        return unreadable(path, error)
    except (ValueError, TypeError, RecursionError):
        return "it cannot be understood"
    return None
