"""Who is let in: tokens.json beside the store, the site's own token, the secret of the fabric.

Only hashes of tokens are kept. Whoever changes the files is heard at the next request.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fogline.common.errors import DataError, SetupError, UsageError
from fogline.common.http.auth import SHORTEST, ensure_token, find_holder, hash_token, new_token
from fogline.common.private_files import write_private
from fogline.common.state_files import StateDamaged, add_checksum, read_state
from fogline.fabric.api.rights import NODE, OWNER, Caller, parse_rights
from fogline.fabric.http.secrets import Secrets, as_secrets

TOKENS, OWN, LOCK = "tokens.json", "token", "tokens.lock"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}", re.ASCII)
_say = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Token:
    """What is known of a token: not the token itself."""

    name: str
    hash: str
    rights: tuple[str, ...]


def add_token(folder: Path, name: str, rights: Iterable[str]) -> str:
    """A new token for the store in `folder` (`<site>/store`), shown this once.

    Raises `UsageError` for a name that is taken or a right that does not exist.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(f"invalid token name {name!r:.80}", "letters, digits and . _ @ -")
    requested = tuple(sorted(parse_rights(rights)))
    token = new_token()
    with _hold_lock(folder):
        known = _load(folder)
        if name in known:
            raise UsageError(f"there is a token {name} already", "remove it first")
        _save(folder, {**known, name: Token(name, hash_token(token).hex(), requested)})
    return token


def list_tokens(folder: Path) -> dict[str, tuple[str, ...]]:
    """Names and rights. Raises `DataError` for a file that cannot be understood."""
    return {name: token.rights for name, token in sorted(_load(folder).items())}


def remove_token(folder: Path, name: str) -> None:
    """From now on it is not accepted. Raises `UsageError` when there is none of that name."""
    with _hold_lock(folder):
        known = _load(folder)
        if name not in known:
            raise UsageError(f"unknown token {name!r:.80}")
        _save(folder, {key: token for key, token in known.items() if key != name})


def own_token(folder: Path) -> str:
    """The token with all rights; made when there is none, for its owner's eyes only."""
    file = folder / OWN
    ensure_token(file)
    try:
        token = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"the token in {file} cannot be read: {type(error).__name__}") from error
    if len(token) < SHORTEST:
        raise DataError(f"{file} must hold a token of {SHORTEST} characters or more")
    return token


class Callers:
    """Finds who a caller is; for one thread at a time."""

    def __init__(self, folder: Path, secret: str | Secrets = "") -> None:
        """Makes the site's own token if there is none. `secret` is what nodes share, or nothing."""
        self._secrets = as_secrets(secret)
        own_token(folder)
        self._folder = folder
        self._seen: tuple[object, object] | None = None
        self._known: list[tuple[bytes, Caller]] = []

    def __repr__(self) -> str:
        return f"Callers({len(self._known)})"

    def who(self, authorization: bytes) -> Caller | None:
        """The caller whose token a header's value holds; every one is compared, always."""
        self._refresh()
        nodes = [(hash_token(secret), NODE) for secret in self._secrets.accepted_secrets()]
        return find_holder(authorization, [*nodes, *self._known])

    def _refresh(self) -> None:
        now = _stamp(self._folder / TOKENS), _stamp(self._folder / OWN)
        if now != self._seen:
            self._known = [*self._own(), *self._load_callers()]
            self._seen = now

    def _own(self) -> list[tuple[bytes, Caller]]:
        try:
            return [(hash_token(own_token(self._folder)), OWNER)]
        except (DataError, SetupError) as error:
            _say.error("%s", error)
            return []

    def _load_callers(self) -> list[tuple[bytes, Caller]]:
        """Nobody, when the file cannot be understood: one who was removed must not come back."""
        try:
            tokens = _load(self._folder).values()
        except DataError as error:
            _say.error("%s", error)
            return []
        return [(bytes.fromhex(t.hash), Caller(t.name, frozenset(t.rights))) for t in tokens]


def _stamp(file: Path) -> object:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _load(folder: Path) -> dict[str, Token]:
    file = folder / TOKENS
    try:
        data = json.loads(read_state(file))
        return {name: _token(name, item) for name, item in data["tokens"].items()}
    except FileNotFoundError:
        return {}
    except (
        *(OSError, ValueError, KeyError, TypeError, AttributeError),
        *(RecursionError, UsageError, StateDamaged),
    ) as error:
        hint = "restore it, or remove it and add the tokens anew"
        raise DataError(f"the tokens in {file} cannot be understood", hint) from error


def _token(name: str, item: Any) -> Token:
    if not _NAME.fullmatch(name) or len(bytes.fromhex(item["hash"])) != 32:
        raise ValueError("not a token")
    return Token(name, item["hash"], tuple(sorted(parse_rights(item["rights"]))))


def _save(folder: Path, tokens: Mapping[str, Token]) -> None:
    hashes = {name: {"hash": t.hash, "rights": list(t.rights)} for name, t in tokens.items()}
    text = json.dumps({"version": 1, "tokens": hashes}, indent=2, sort_keys=True)
    write_private(folder / TOKENS, add_checksum(text))


@contextmanager
def _hold_lock(folder: Path) -> Iterator[None]:
    """One change at a time, of all processes."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        fd = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise SetupError(f"{folder} cannot be written: {error.strerror}") from error
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)
