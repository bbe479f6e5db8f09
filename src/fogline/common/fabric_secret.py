"""The secret that the sites of one fabric share, with those it replaced, and its private file.

A coordinator makes it and hands it to its sites. The one that was made last counts, whoever made
it: its version is above that of all before. A secret that was replaced is accepted for a while, so
a rotation has no gap while the sites get the new one one after the other.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fogline.common.errors import DataError
from fogline.common.private_files import write_private
from fogline.common.state_files import add_checksum, read_state

FILE = "fabric-secret"
ACCEPT_SECONDS = 3600.0
"""How long a secret is accepted after it was replaced."""
LONGEST_ACCEPT_SECONDS = 30 * 86400.0
SHORTEST, _LONGEST = 16, 1024
_MOST_REPLACED = 16
_HIGHEST = 1 << 62


@dataclass(frozen=True, slots=True)
class Replaced:
    """A secret of before, and until when it is accepted, in seconds since 1970."""

    secret: str = field(repr=False)
    until: float


@dataclass(frozen=True, slots=True)
class FabricSecret:
    version: int
    """When it was made, in microseconds since 1970; more than any before in any case."""
    secret: str = field(repr=False)
    others_until: float
    """Until when a site accepts what it had before and is not named in `replaced`."""
    replaced: tuple[Replaced, ...] = ()
    """The newest first."""

    @classmethod
    def make(cls, now: float) -> FabricSecret:
        return cls(round(now * 1e6), secrets.token_urlsafe(32), now + ACCEPT_SECONDS)

    def rotate(
        self, now: float, accept_seconds: float = ACCEPT_SECONDS, above: int = 0
    ) -> FabricSecret:
        """A new secret, with a version above this one and `above`. No older one is accepted any
        longer than so many seconds."""
        until = now + accept_seconds
        before = (Replaced(self.secret, until), *self.replaced)
        kept = [Replaced(old.secret, min(old.until, until)) for old in before]
        return FabricSecret(
            max(round(now * 1e6), self.version + 1, above + 1),
            secrets.token_urlsafe(32),
            until,
            tuple(old for old in kept if old.until > now)[:_MOST_REPLACED],
        )

    def after(self, before: FabricSecret | None, now: float) -> FabricSecret:
        """This one as a site keeps it that had another: what that site accepted until now may come
        from a coordinator that was reset, and others may still show it for a while."""
        if before is None:
            return self
        named = {self.secret, *(old.secret for old in self.replaced)}
        former = (Replaced(before.secret, self.others_until), *before.replaced)
        others = [
            Replaced(old.secret, min(old.until, self.others_until))
            for old in former
            if old.secret not in named
        ]
        kept = [old for old in (*self.replaced, *others) if old.until > now]
        return FabricSecret(
            self.version, self.secret, self.others_until, tuple(kept[:_MOST_REPLACED])
        )

    def as_json(self) -> dict[str, Any]:
        """Holds the secret: for its file and the way to the sites, never for showing."""
        return {
            "version": self.version,
            "secret": self.secret,
            "others_until": self.others_until,
            "replaced": [{"secret": old.secret, "until": old.until} for old in self.replaced],
        }

    @classmethod
    def from_json(cls, data: Any) -> FabricSecret:
        """Raises `DataError`, whose text holds nothing of the data."""
        try:
            replaced = tuple(
                Replaced(_text(old["secret"]), _time(old["until"])) for old in data["replaced"]
            )
            version = data["version"]
            if type(version) is not int or not 0 < version < _HIGHEST:
                raise ValueError("version")
            if len(replaced) > _MOST_REPLACED:
                raise ValueError("replaced")
            return cls(version, _text(data["secret"]), _time(data["others_until"]), replaced)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise DataError("invalid fabric secret") from None


def load_secret(folder: Path) -> FabricSecret | None:
    """The one in the folder's file; None where there is no file. Raises `DataError`."""
    file = folder / FILE
    try:
        return FabricSecret.from_json(json.loads(read_state(file)))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError, DataError):
        hint = "move it away to have a new one made"
        raise DataError(f"the fabric's secret in {file} cannot be read", hint) from None


def save_secret(folder: Path, secret: FabricSecret) -> None:
    """Only its owner can read it. Raises `SetupError` when it cannot be written."""
    write_private(folder / FILE, add_checksum(json.dumps(secret.as_json())))


def version_of(answer: Mapping[str, Any]) -> int:
    """The version that a site says it has. Raises `DataError`."""
    found = answer.get("version")
    if type(found) is not int or not 0 <= found < _HIGHEST:
        raise DataError("the site does not say which secret it has")
    return found


def _text(value: Any) -> str:
    if not isinstance(value, str) or not SHORTEST <= len(value) <= _LONGEST:
        raise ValueError("not a secret")
    if not (value.isascii() and value.isprintable()):
        raise ValueError("not for a header")
    return value


def _time(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e12:
        raise ValueError("not a time")
    return float(value)
