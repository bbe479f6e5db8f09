"""Keys: only who holds one may read the insights that are signed with it (`SIGNATURE 'id'`)."""

from __future__ import annotations

import re
from collections.abc import Iterable

KEY_HINT = "up to 64 letters, digits and . _ @ -, the first one a letter or digit"
_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}", re.ASCII)

Keys = frozenset[str] | None
"""What somebody holds; None: all there are."""


def is_key(text: str) -> bool:
    return _KEY.fullmatch(text) is not None


def opens(held: Keys, needed: Iterable[str]) -> bool:
    """Whether who holds these may read what needs those."""
    return held is None or held.issuperset(needed)


def key_text(keys: Iterable[str]) -> str:
    """Several as one text."""
    return " ".join(sorted(keys))


def key_list(text: str | None) -> frozenset[str]:
    """What `key_text` made a text of; none for none."""
    return frozenset((text or "").split())
