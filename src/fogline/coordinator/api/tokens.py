"""The coordinator's tokens: lines of a file, or one token made on the first start."""

from __future__ import annotations

from pathlib import Path

from fogline.common.errors import DataError, UsageError
from fogline.common.http.auth import SHORTEST, ensure_token, find_holder, hash_token


class Tokens:
    """The tokens that are accepted; it holds only their hashes."""

    def __init__(self, tokens: list[str]) -> None:
        self._known = [(hash_token(token), True) for token in tokens]

    def __repr__(self) -> str:
        return f"Tokens({len(self._known)})"

    def admit(self, authorization: bytes) -> bool | None:
        """True for a header's value that holds one."""
        return find_holder(authorization, self._known)


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
    ensure_token(folder / "token")
    return load_tokens(folder / "token")
