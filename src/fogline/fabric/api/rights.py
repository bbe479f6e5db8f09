"""What a caller may do: read or write values, metadata, SQL, spaces and copies; and their keys."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from fogline.common.errors import UsageError
from fogline.model.keys import Keys, is_key

READ, WRITE, KEY, ALL = "read", "write", "key", "*"
VALUES, METADATA, SQL, COPIES = "values", "metadata", "sql", "copies"
_RIGHT = re.compile(
    r"\*|(read|write):(\*|values|metadata|sql|copies|space:(\*|[a-z][a-z0-9_]{0,62}))", re.ASCII
)
_HINT = "*, read:values, write:values, read:metadata, read:sql, read:space:NAME, read:*, key:ID, …"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks, and what for they may ask."""

    name: str
    rights: frozenset[str]

    def may(self, right: str) -> bool:
        """Whether they have `read:values` or whatever else; `*` stands for the rest of a name."""
        if ALL in self.rights or right in self.rights:
            return True
        action, _, thing = right.partition(":")
        wider = {f"{action}:*"} | ({f"{action}:space:*"} if thing.startswith("space:") else set())
        return not wider.isdisjoint(self.rights)

    @property
    def keys(self) -> Keys:
        """Those of signed insights that they may read."""
        if not self.rights.isdisjoint((ALL, f"{KEY}:{ALL}")):
            return None
        held = (right.partition(":") for right in self.rights)
        return frozenset(name for kind, _, name in held if kind == KEY)


OWNER = Caller("owner", frozenset({ALL}))
"""Who can read the site's files."""
NODE = Caller("node", frozenset({f"{READ}:*", f"{WRITE}:{COPIES}", f"{KEY}:{ALL}"}))
"""Another node of the fabric."""


def parse_rights(texts: Iterable[str]) -> frozenset[str]:
    """Rights as people write them. Raises `UsageError` for one that does not exist."""
    found = frozenset(texts)
    for text in found:
        if not isinstance(text, str) or not _is_right(text):
            raise UsageError(f"unknown right {text!r:.80}", _HINT)
    if not found:
        raise UsageError("a token must have at least one right", _HINT)
    return found


def _is_right(text: str) -> bool:
    kind, _, name = text.partition(":")
    if kind == KEY:
        return name == ALL or is_key(name)
    return _RIGHT.fullmatch(text) is not None
