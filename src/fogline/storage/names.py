"""Names in questions: exact, or a prefix written with a trailing `%` as in queries (`cpu_%`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fogline.storage.errors import BadQuery
from fogline.storage.values import NAME_BYTES

MAX_NAMES = 100_000
_LONGEST = NAME_BYTES + len("\\%")


@dataclass(frozen=True, slots=True)
class Patterns:
    """What names are compared with, all of them at once."""

    exact: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Whether there is a name that matches."""
        return bool(self.exact or self.prefixes)

    def matches(self, name: str) -> bool:
        return name in self.exact or name.startswith(self.prefixes)


def parse_all(names: str | Iterable[str] | None) -> Patterns | None:
    """One name or many; nothing stands for all. `\\%` at the end stands for the sign itself."""
    if names is None:
        return None
    given = [names] if isinstance(names, str) else list(names)
    if len(given) > MAX_NAMES:
        raise BadQuery(f"more than {MAX_NAMES} names in one question")
    _check(given)
    if "%" not in "".join(given):  # many names are mostly plain ones: nothing is done for each
        return Patterns(tuple(given))
    signs = [name for name in given if name.endswith("%")]
    plain = [name for name in given if not name.endswith("%")]
    marked = [name[:-2] + "%" for name in signs if name.endswith("\\%")]
    prefixes = [name[:-1] for name in signs if not name.endswith("\\%")]
    return Patterns((*plain, *marked), tuple(prefixes))


def _check(names: Sequence[str]) -> None:
    try:
        together = "".join(names)
        together.encode()
    except UnicodeEncodeError as error:
        raise BadQuery("a name holds half a character") from error
    except TypeError as error:
        wrong = next(name for name in names if not isinstance(name, str))
        raise BadQuery(f"a name must be a text, not {type(wrong).__name__}") from error
    sizes = map(len, names) if together.isascii() else map(len, map(str.encode, names))
    if max(sizes, default=0) > _LONGEST:
        raise BadQuery(f"a name is longer than {NAME_BYTES} bytes")
