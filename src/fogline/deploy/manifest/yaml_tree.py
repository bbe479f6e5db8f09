"""YAML to a tree with places.

Works on the parser's events instead of its objects: nothing is constructed, depth and size are
bounded before memory is spent, and an alias is counted with all it stands for.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import yaml

from fogline.deploy.manifest.problems import Lines, Problems
from fogline.deploy.manifest.tree import (
    MAX_CHARACTERS,
    MAX_DEPTH,
    MAX_VALUES,
    START,
    Items,
    Spot,
    TreeTable,
    TreeValue,
    Word,
    kind_of,
    shorten,
)

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DASHES = re.compile(r"\A(\s*)-{3,}[ \t]*(?=\r?\n|\Z)")
_MERGE = "<<"
_PLAIN = (None, "")
_TEXT_TAG = "tag:yaml.org,2002:str"


class _Stop(Exception):  # noqa: N818 - it never leaves this module
    """Reading cannot go on; the problem has been added."""


@dataclass(slots=True)
class _Open:
    """A list or mapping whose end has not come yet."""

    mapping: bool
    at: Spot
    anchor: str | None
    children: list[TreeValue] = field(default_factory=list)
    size: int = 1


def usable_text(text: str, problems: Problems) -> bool:
    """Whether a text is small enough and Unicode at all."""
    if len(text) > MAX_CHARACTERS:
        problems.add("TOO_LARGE", f"the text is larger than {MAX_CHARACTERS >> 20} MiB", START)
        return False
    try:
        text.encode()
    except UnicodeEncodeError as error:
        at = Spot(text.count("\n", 0, error.start) + 1, 1)
        problems.add("SYNTAX", "the text is not valid Unicode", at, "save the file as UTF-8")
        return False
    return True


def read_yaml(text: str, problems: Problems) -> TreeValue | None:
    """The only document of a text, or None; everything wrong with it goes to `problems`."""
    if not usable_text(text, problems):
        return None
    text = _DASHES.sub(r"\1---", text.removeprefix("\ufeff"))
    builder = _Builder(Lines.of_yaml(text), problems)
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            builder.take(event)
    except yaml.YAMLError as error:
        _add_syntax(error, Lines.of_yaml(text), problems)
        return None
    except _Stop:
        return None
    return builder.document


def _add_syntax(error: Any, lines: Lines, problems: Problems) -> None:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    what = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    at = START if mark is None else _spot(mark)
    line = lines.lines[at.line - 1] if at.line <= len(lines.lines) else ""
    tabs = "\t" in line[: at.column]
    hint = "indent with blanks, not tabs" if tabs else ""
    problems.add("SYNTAX", f"invalid YAML: {shorten(str(what), 120)}", at, hint)


class _Builder:
    def __init__(self, lines: Lines, problems: Problems) -> None:
        self.document: TreeValue | None = None
        self._lines = lines
        self._problems = problems
        self._open: list[_Open] = []
        self._anchors: dict[str, TreeValue] = {}

    def take(self, event: Any) -> None:
        match event:
            case yaml.ScalarEvent():
                self._add(self._word(event), event.anchor)
            case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                self._begin(event)
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                closed = self._open.pop()
                self._add(self._closed(closed), closed.anchor)
            case yaml.AliasEvent():
                self._add(self._resolve_alias(event), None)
            case yaml.DocumentStartEvent():
                self._anchors.clear()

    def _begin(self, event: Any) -> None:
        at = _spot(event.start_mark)
        if len(self._open) >= MAX_DEPTH:
            self._stop("TOO_DEEP", f"more than {MAX_DEPTH} levels of nesting", at)
        mapping = isinstance(event, yaml.MappingStartEvent)
        self._open.append(_Open(mapping, at, event.anchor))

    def _add(self, value: TreeValue, anchor: str | None) -> None:
        if anchor is not None:
            self._anchors[anchor] = value
        if not self._open:
            self._finish(value)
            return
        parent = self._open[-1]
        parent.children.append(value)
        parent.size += value.size
        if parent.size > MAX_VALUES:
            message = f"more than {MAX_VALUES} values, aliases counted with what they stand for"
            self._stop("TOO_LARGE", message, parent.at)

    def _finish(self, value: TreeValue) -> None:
        if isinstance(value, Word) and value.empty:
            return
        if self.document is not None:
            self._stop("SYNTAX", "a second document", value.at, "one document a file")
        self.document = value

    def _resolve_alias(self, event: Any) -> TreeValue:
        found = self._anchors.get(event.anchor)
        if found is None:
            self._stop("SYNTAX", f"*{event.anchor} has no anchor yet", _spot(event.start_mark))
            raise AssertionError
        return found

    def _stop(self, code: str, message: str, at: Spot, hint: str = "") -> None:
        self._problems.add(code, message, at, hint)
        raise _Stop

    # ── values ──────────────────────────────────────────────────────────────────────────────────

    def _closed(self, closed: _Open) -> TreeValue:
        if not closed.mapping:
            return Items(tuple(closed.children), closed.at, closed.size)
        fields: dict[str, TreeValue] = {}
        keys: dict[str, Word] = {}
        merged: list[TreeValue] = []
        pairs = iter(closed.children)
        for key, value in zip(pairs, pairs, strict=True):
            if not isinstance(key, Word):
                self._problems.add("KEY", f"a field is named by {kind_of(key)}", key.at)
            elif key.text == _MERGE and key.plain:
                merged += value.items if isinstance(value, Items) else (value,)
            elif key.text in fields:
                message = f"{shorten(key.text)} is given twice"
                self._problems.add("DUPLICATE", message, key.at)
            else:
                fields[key.text], keys[key.text] = value, key
        for value in merged:
            self._merge(value, fields, keys)
        return TreeTable(fields, keys, closed.at, closed.size)

    def _merge(self, value: TreeValue, fields: dict[str, TreeValue], keys: dict[str, Word]) -> None:
        if not isinstance(value, TreeTable):
            self._problems.add("KEY", f"<< takes a mapping, not {kind_of(value)}", value.at)
            return
        for name, inner in value.fields.items():
            if name not in fields:
                fields[name], keys[name] = inner, value.keys[name]

    def _word(self, event: Any) -> Word:
        at = _spot(event.start_mark)
        plain = event.style in _PLAIN and event.implicit[0] and event.tag != _TEXT_TAG
        return Word(event.value, at, plain, self._starts(event, at))

    def _starts(self, event: Any, at: Spot) -> tuple[Spot, ...]:
        """Where the lines of a value begin: of `|` blocks, and of what stands on one line."""
        if event.style == "|":
            return self._block_starts(event.value.split("\n"), at.line)
        if " " not in event.value:
            return ()  # a single word: nothing in it is ever pointed at
        column = at.column + (event.style not in _PLAIN)
        written = self._lines.lines[at.line - 1 : at.line]
        same = any(line.startswith(event.value, column - 1) for line in written)
        return (Spot(at.line, column),) if same else ()

    def _block_starts(self, values: list[str], before: int) -> tuple[Spot, ...]:
        written = self._lines.lines[before : before + len(values)]
        pairs = zip(values, written, strict=False)
        return tuple(
            Spot(before + number, max(len(line.rstrip("\r")) - len(value), 0) + 1)
            for number, (value, line) in enumerate(pairs, 1)
        )


def _spot(mark: Any) -> Spot:
    return Spot(mark.line + 1, mark.column + 1)
