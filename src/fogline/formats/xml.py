"""An XML message as a record, read as the Spark source reads it (docs/connector.md).

Attributes and child elements of the root are fields by their local names, and whatever is deeper
has the path to it as its name, with dots. Only a document type can declare entities or name files:
a message that has one is refused before the parser sees it. Namespaces are checked here: the parser
would put a namespace, however long, before every name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any
from xml.parsers import expat

from fogline.formats.errors import MOST_DEPTH, BadMessage, too_deep
from fogline.formats.json import text_of
from fogline.formats.values import OTHER

_DOCTYPE = re.compile(r"\ufeff?(?:[ \t\r\n]++|<\?.*?\?>|<!--.*?-->)*+<!DOCTYPE", re.DOTALL)
"""Where it can be: behind the declaration, instructions and comments."""
_XML, _XMLNS = "http://www.w3.org/XML/1998/namespace", "http://www.w3.org/2000/xmlns/"
_PART = 1 << 20
"""What a handler refuses stops the parser only at the end of a part."""
_MOST_FIELDS = 100_000
"""Attributes and elements; with the paths to them, more could fill the memory."""
_LONGEST_PATH = 1_024
_BLANKS = (
    " \t\n\r\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2008\u2009\u200a"
    "\u2028\u2029\u205f\u3000"
)
"""What Java strips, and XML may hold."""


def record(payload: bytes) -> dict[str, Any]:
    """The texts of an element by name; None where it is empty, `OTHER` where elements are in it.

    Raises `BadMessage`.
    """
    text = text_of(payload)
    if _DOCTYPE.match(text):
        raise BadMessage("not accepted: XML with a document type or entities")
    if "\0" in text:
        raise BadMessage("not XML: a NUL byte")
    document = _Document()
    parser = expat.ParserCreate("utf-8")
    parser.buffer_text = True
    parser.ordered_attributes = True
    parser.XmlDeclHandler = _check_version
    parser.StartElementHandler = document.start
    parser.EndElementHandler = document.end
    parser.CharacterDataHandler = document.text
    try:
        for start in range(0, len(payload), _PART):
            parser.Parse(payload[start : start + _PART], False)
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        raise BadMessage(f"not XML: {error}") from error
    return document.record()


def _check_version(version: str, *_: Any) -> None:
    if version != "1.0":
        raise BadMessage(f"not accepted: XML {version:.20}")


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
        self._fields = 0
        self._spaces = {"xml": [_XML]}
        """The namespaces of each prefix, that of the innermost element last."""

    def record(self) -> dict[str, Any]:
        named = {name: value for name, value in self._named.items() if value is not None}
        return self._paths | named

    def start(self, name: str, attributes: list[str]) -> None:
        if len(self._open) == MOST_DEPTH:
            raise too_deep()
        pairs = list(zip(attributes[::2], attributes[1::2], strict=True))
        spaces = [(key[6:], value) for key, value in pairs if key.startswith("xmlns:")]
        for prefix, space in spaces:
            _check_space(prefix, space)
            self._spaces.setdefault(prefix, []).append(space)
        _, local = self._split(name)
        inside = self._path(local) if self._open else ""
        self._open.append(_Element(local, inside, [prefix for prefix, _ in spaces]))
        self._attributes(pairs)

    def _attributes(self, pairs: list[tuple[str, str]]) -> None:
        names = set()
        for key, value in pairs:
            if key == "xmlns":
                if value in (_XML, _XMLNS):
                    raise BadMessage("not XML: a namespace that is reserved")
            elif not key.startswith("xmlns:"):
                name = self._split(key)
                if name in names:
                    raise BadMessage("not XML: an attribute is there twice")
                names.add(name)
                self._set(name[1], value)

    def text(self, text: str) -> None:
        self._open[-1].texts.append(text)

    def end(self, _name: str) -> None:
        element = self._open.pop()
        for prefix in element.prefixes:
            self._spaces[prefix].pop()
        if self._open:
            self._open[-1].nested = True
            text = "".join(element.texts).strip(_BLANKS)
            self._set(element.name, OTHER if element.nested else text)

    def _split(self, name: str) -> tuple[str, str]:
        """The namespace that the prefix of a name declares, and the name without it."""
        prefix, colon, local = name.rpartition(":")
        if not colon:
            return "", local
        spaces = self._spaces.get(prefix)
        if not local or not spaces:
            raise BadMessage("not XML: a prefix that is not declared")
        return spaces[-1], local

    def _path(self, name: str) -> str | None:
        """Of what is in the open element; None where it would be too long."""
        inside = self._open[-1].inside
        if inside is None or "." in name or len(inside) + len(name) >= _LONGEST_PATH:
            return None
        return f"{inside}.{name}" if inside else name

    def _set(self, name: str, value: Any) -> None:
        if self._open[-1].inside == "":
            self._named[name] = value or None
        elif (path := self._path(name)) is not None:
            self._paths[path] = value or None
        self._fields += 1
        if self._fields > _MOST_FIELDS:
            raise BadMessage(f"more than {_MOST_FIELDS} fields in one message")


def _check_space(prefix: str, space: str) -> None:
    """That a prefix may stand for a namespace."""
    is_reserved = prefix in ("", "xmlns") or space == _XMLNS or (prefix == "xml") != (space == _XML)
    if is_reserved or not space:
        raise BadMessage("not XML: a namespace that is reserved or empty")
