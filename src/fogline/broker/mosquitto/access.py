"""Who may read and write restricted topics at the own Mosquitto of a site, as a file.

The plugin `native/access.c` looks at the file whenever somebody publishes or subscribes: a rule is
in force for every message that is published after the file was written, also after a crash. Topics
without a rule are everybody's. Mosquitto's own `acl_file` will not do: the journal has its say
before it, so that a message would be in the journal already when it is refused; and it cannot let
somebody read what they may not write, where they may write everything else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from fogline.common.errors import UsageError
from fogline.common.private_files import write_private
from fogline.model.keys import KEY_HINT, is_key, opens

SITE = "fogline-site"
"""The login of the site's own processes, which may read and write everything."""
_ESCAPES = str.maketrans({"\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"})
_SIGNS = ":\r\n\t\0"


@dataclass(frozen=True, slots=True)
class Restricted:
    """A topic for the site's own processes, and for logins that hold the keys to read it."""

    topic: str
    keys: frozenset[str] | None = None
    """None: it is for no other login."""
    all_write: bool = False


def rules(topics: Iterable[Restricted], logins: Mapping[str, frozenset[str]]) -> str:
    """The file's text: the logins, then a line for each topic with who may write and read it."""
    lines = [_line("logins", SITE, *logins)]
    for restricted in sorted(topics, key=lambda item: item.topic):
        readers = [] if restricted.keys is None else _readers(restricted.keys, logins)
        lines.append(_line("all" if restricted.all_write else "site", restricted.topic, *readers))
    return "".join(lines)


def check_login(name: str, keys: Iterable[str]) -> None:
    """Raises `UsageError` for one that cannot be."""
    if not name or name == SITE or any(sign in name for sign in _SIGNS):
        hint = f"any other than {SITE}, without colons, tabs and line breaks"
        raise UsageError(f"no login of a broker can be called {name!r:.80}", hint)
    for key in keys:
        if not is_key(key):
            raise UsageError(f"{key!r:.80} cannot be a key of {name}", KEY_HINT)


class AccessFile:
    """The file of one broker. `restrict` as often as something changes; for one thread."""

    def __init__(self, path: Path, logins: Mapping[str, frozenset[str]]) -> None:
        self.path = path
        self._logins = logins
        self._text = ""

    def restrict(self, topics: Iterable[Restricted]) -> None:
        """From now on these, and no others. Raises `SetupError` when it cannot be written."""
        text = rules(topics, self._logins)
        if text != self._text:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_private(self.path, text)
            self._text = text


def _readers(keys: frozenset[str], logins: Mapping[str, frozenset[str]]) -> list[str]:
    return [name for name, held in logins.items() if opens(held, keys)]


def _line(*fields: str) -> str:
    return "\t".join(field.translate(_ESCAPES) for field in fields) + "\n"
