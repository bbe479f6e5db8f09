"""Names in questions: exact, or a prefix written with a trailing `%` as in queries (`cpu_%`)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from fogline.storage.errors import BadQuery
from fogline.storage.values import NAME_BYTES

MAX_NAMES = 100_000


@dataclass(frozen=True, slots=True)
class Pattern:
    """What a name is compared with. `\\%` at the end stands for the sign itself."""

    text: str
    is_prefix: bool = False

    @classmethod
    def parse(cls, name: str) -> Pattern:
        if not isinstance(name, str):
            raise BadQuery(f"a name is a text, not {type(name).__name__}")
        _check(name)
        if name.endswith("\\%"):
            return cls(name[:-2] + "%")
        if name.endswith("%"):
            return cls(name[:-1], is_prefix=True)
        return cls(name)

    def matches(self, name: str) -> bool:
        return name.startswith(self.text) if self.is_prefix else name == self.text


def parse_all(names: str | Iterable[str] | None) -> tuple[Pattern, ...] | None:
    """One name or many; nothing stands for all."""
    if names is None:
        return None
    found = tuple(Pattern.parse(name) for name in ([names] if isinstance(names, str) else names))
    if len(found) > MAX_NAMES:
        raise BadQuery(f"more than {MAX_NAMES} names in one question")
    return found


def _check(name: str) -> None:
    try:
        size = len(name.encode())
    except UnicodeEncodeError as error:
        raise BadQuery("a name holds half a character") from error
    if size > NAME_BYTES + 2:
        raise BadQuery(f"a name is longer than {NAME_BYTES} bytes")
