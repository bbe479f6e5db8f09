"""Reading the fields of one mapping: each by its kind, what is wrong reported with its place."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from fogline.deploy.manifest.problems import Problems
from fogline.deploy.manifest.tree import (
    Items,
    Spot,
    TreeTable,
    TreeValue,
    Word,
    kind_of,
    plain_data,
    shorten,
)
from fogline.model.jobs import Scalar

_TRUTH = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_ENTRY = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")


class Fields:
    """The fields of a mapping. A field that is missing or empty is None or its default."""

    def __init__(self, table: TreeTable, problems: Problems) -> None:
        self.table = table
        self._problems = problems

    def value(self, name: str) -> TreeValue | None:
        value = self.table.fields.get(name)
        return None if isinstance(value, Word) and value.empty else value

    def word(self, name: str) -> Word | None:
        value = self.value(name)
        if value is None or isinstance(value, Word):
            return value
        self._add_type_problem(name, value, "a text")
        return None

    def one_of(self, *names: str) -> Word | None:
        """The field that is called one of these; two of them are a problem."""
        given = [name for name in names if self.value(name) is not None]
        for name in given[1:]:
            message = f"{name} and {given[0]} are given, but they are the same"
            self._problems.add("DUPLICATE", message, self.table.key_at(name))
        return self.word(given[0]) if given else None

    def flag(self, name: str, default: bool) -> bool:
        value = self.value(name)
        if value is None:
            return default
        if isinstance(value, Word) and value.text.lower() in _TRUTH:
            return _TRUTH[value.text.lower()]
        self._add_type_problem(name, value, "true or false")
        return default

    def items(self, name: str) -> tuple[TreeValue, ...]:
        value = self.value(name)
        if value is None or isinstance(value, Items):
            return () if value is None else value.items
        self._add_type_problem(name, value, "a list")
        return ()

    def mapping(self, name: str) -> TreeTable | None:
        value = self.value(name)
        if value is None or isinstance(value, TreeTable):
            return value
        self._add_type_problem(name, value, "a mapping")
        return None

    def scalars(self, name: str) -> dict[str, Scalar]:
        """A mapping of single values."""
        table = self.mapping(name)
        found: dict[str, Scalar] = {}
        for key, value in table.fields.items() if table else ():
            single = value.value if isinstance(value, Word) else None
            if single is None:
                self._add_type_problem(shorten(key), value, "a text, a number, true or false")
            else:
                found[key] = single
        return found

    def steps(self, name: str) -> tuple[Mapping[str, Any], ...] | None:
        if self.value(name) is None:
            return None
        found: list[Mapping[str, Any]] = []
        for item in self.items(name):
            op = item.fields.get("op") if isinstance(item, TreeTable) else None
            if isinstance(op, Word) and op.text:
                data: Any = plain_data(item)
                found.append({**data, "op": op.text})
            else:
                hint = "for example {op: filter, when: temperature > 30}"
                self._problems.add("TYPE", "a step must be a mapping with op", item.at, hint)
        return tuple(found)

    def entry(self) -> Word | None:
        """module:function, from `entry` or from `entry_class: module.Function`."""
        word = self.one_of("entry", "entry_class")
        if word is None:
            return None
        return entry_word(word, "entry_class" in self.table.fields, self._problems)

    def spots(self) -> dict[str, Spot]:
        found = {name: value.at for name, value in self.table.fields.items()}
        return {**found, "": self.table.at}

    def refuse_unknown(self, known: tuple[str, ...], what: str) -> None:
        for name, key in self.table.keys.items():
            if name not in known:
                message = f"{what} has no field {shorten(name)!r}"
                hint = "fields: " + ", ".join(known)
                self._problems.add_unknown("FIELD", message, key.at, name, known, hint)

    def _add_type_problem(self, name: str, value: TreeValue, expected: str) -> None:
        self._problems.add("TYPE", f"{name} must be {expected}, not {kind_of(value)}", value.at)


def entry_word(word: Word, as_class: bool, problems: Problems) -> Word | None:
    """`module:function`; of a class `module.Function` too."""
    text = word.text
    if as_class and ":" not in text:
        text = ":".join(text.rsplit(".", 1))
    if _ENTRY.fullmatch(text):
        return Word(text, word.at)
    message = f"{shorten(word.text)!r} names no function"
    problems.add("ENTRY", message, word.at, "write module:function")
    return None
