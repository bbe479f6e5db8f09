"""Tokens: read from a file or made on the first start, compared in constant time, never shown."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from pathlib import Path

from fogline.common.errors import DataError, UsageError
from fogline.common.private_files import write_private

SHORTEST = 16


class Tokens:
    """The tokens that are accepted; it holds only their hashes."""

    def __init__(self, tokens: list[str]) -> None:
        self._hashes = [_hash(token.encode()) for token in tokens]

    def __repr__(self) -> str:
        return f"Tokens({len(self._hashes)})"

    def admit(self, authorization: bytes) -> bool:
        """Whether a header's value holds one; every token is compared, whatever the others say."""
        scheme, _, token = authorization.partition(b" ")
        given = _hash(token.strip())
        right = [hmac.compare_digest(given, known) for known in self._hashes]
        return scheme.lower() == b"bearer" and any(right)


def load_tokens(file: Path) -> Tokens:
    """One token a line; empty lines and lines that begin with # do not count."""
    try:
        lines = [line.strip() for line in file.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"the tokens in {file} cannot be read: {type(error).__name__}") from error
    tokens = [line for line in lines if line and not line.startswith("#")]
    if not tokens or any(len(token) < SHORTEST for token in tokens):
        raise UsageError(f"{file} must hold tokens of {SHORTEST} characters or more, one a line")
    return Tokens(tokens)


def own_tokens(folder: Path) -> Tokens:
    """The token in the coordinator's folder; made when there is none, for its owner's eyes only."""
    file = folder / "token"
    if not file.exists():
        write_private(file, secrets.token_urlsafe(32) + "\n")
    return load_tokens(file)


def _hash(token: bytes) -> bytes:
    return hashlib.sha256(token).digest()
