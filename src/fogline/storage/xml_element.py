"""An XML message as a record, read as the Spark connector reads it (docs/connector.md).

Attributes and child elements of the root are fields by their local names, and whatever is deeper
has the path to it as its name, with dots. Only a document type can declare entities or name files:
a message that mentions one is refused before the parser sees it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from xml.parsers import expat

from fogline.storage.mapping import MOST_DEPTH, OTHER
from fogline.storage.values import NAME_BYTES

_PART = 1 << 20
"""What a handler refuses stops the parser only at the end of a part."""
_MOST_FIELDS = 100_000
"""With the paths to them, more could fill the memory."""
_BLANKS = (
    " \t\n\r\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2008\u2009\u200a"
    "\u2028\u2029\u205f\u3000"
)
"""What Java strips, and XML may hold."""


def record(payload: bytes) -> dict[str, Any]:
    """The texts of an element by name; None where it is empty, `OTHER` where elements are in it.

    Raises `ValueError`.
    """
    text = payload.decode()
    if "<!DOCTYPE" in text or "\0" in text:
        raise ValueError("a document type, or another encoding")
    document = _Document()
    parser = expat.ParserCreate("utf-8")
    parser.buffer_text = True
    parser.ordered_attributes = True
    parser.StartElementHandler = document.start
    parser.EndElementHandler = document.end
    parser.CharacterDataHandler = document.text
    try:
        for start in range(0, len(payload), _PART):
            parser.Parse(payload[start : start + _PART], False)
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        raise ValueError(str(error)) from error
    return document.record()


@dataclass(slots=True)
class _Element:
    """One that is open. `inside` is the path of what is in it; None where no path leads."""

    name: str
    inside: str | None
    prefixes: list[str]
    texts: list[str] = field(default_factory=list)
    nested: bool = False


class _Document:
    """Hears of one element after the other. A field whose name has dots wins over a path."""

    def __init__(self) -> None:
        self._open: list[_Element] = []
        self._named: dict[str, Any] = {}
        self._paths: dict[str, Any] = {}
        self._prefixes = {"xml": 1}

    def record(self) -> dict[str, Any]:
        named = {name: value for name, value in self._named.items() if value is not None}
        return self._paths | named

    def start(self, name: str, attributes: list[str]) -> None:
        if len(self._open) == MOST_DEPTH:
            raise ValueError("nested too deep")
        pairs = list(zip(attributes[::2], attributes[1::2], strict=True))
        prefixes = [key[6:] for key, _ in pairs if key.startswith("xmlns:")]
        for prefix in prefixes:
            self._prefixes[prefix] = self._prefixes.get(prefix, 0) + 1
        local = self._local(name)
        element = _Element(local, self._path(local) if self._open else "", prefixes)
        self._open.append(element)
        for key, value in pairs:
            if key != "xmlns" and not key.startswith("xmlns:"):
                self._set(self._local(key), value)

    def text(self, text: str) -> None:
        self._open[-1].texts.append(text)

    def end(self, _name: str) -> None:
        element = self._open.pop()
        for prefix in element.prefixes:
            self._prefixes[prefix] -= 1
        if self._open:
            self._open[-1].nested = True
            text = "".join(element.texts).strip(_BLANKS)
            self._set(element.name, OTHER if element.nested else text)

    def _local(self, name: str) -> str:
        """A name without its prefix, which must be declared."""
        prefix, colon, local = name.rpartition(":")
        if colon and not (local and self._prefixes.get(prefix)):
            raise ValueError("a prefix that is not declared")
        return local

    def _path(self, name: str) -> str | None:
        """Of what is in the open element; None where it would be too long for a metric."""
        inside = self._open[-1].inside
        if inside is None or "." in name or len(inside) + len(name) >= NAME_BYTES:
            return None
        return f"{inside}.{name}" if inside else name

    def _set(self, name: str, value: Any) -> None:
        if self._open[-1].inside == "":
            self._named[name] = value or None
        elif (path := self._path(name)) is not None:
            self._paths[path] = value or None
        if len(self._named) + len(self._paths) > _MOST_FIELDS:
            raise ValueError("too many fields")
