"""Sorts what stands between a call's parentheses into arguments, condition, window and offset."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from lark import Token

from fogline.language.ast import (
    NOWHERE,
    Call,
    Condition,
    EventWindow,
    Expression,
    KeyExpression,
    Metric,
    Position,
    SessionWindow,
    TimeWindow,
    WindowClause,
)
from fogline.language.faults import Fault
from fogline.language.keywords import RESERVED
from fogline.language.literals import position
from fogline.language.parts import Part, condition, expression, make_part, tail_keys, with_tail_keys


@dataclass(frozen=True, slots=True)
class Argument:
    """`value` or `value WHEN test` between a call's parentheses."""

    value: Part
    test: Part | None = None
    at: Position = NOWHERE


@dataclass(slots=True)
class CallParts:
    """A call being put together, item by item in the order of the text."""

    name: Token
    declared: bool
    parameters: tuple[float, ...] = ()
    arguments: list[Part] = field(default_factory=list)
    test: Part | None = None
    windows: list[WindowClause] = field(default_factory=list)
    open_tail: bool = False
    """The last argument ended with BY and one key, so a name behind it is its next key."""
    more_keys: list[KeyExpression] = field(default_factory=list)

    def take(self, item: Argument | WindowClause) -> None:
        if isinstance(item, Argument):
            self._take_argument(item)
        else:
            self._take_window(item)

    def _take_argument(self, item: Argument) -> None:
        if self.windows:
            raise Fault(
                "SYNTAX",
                "expected ')' or an offset such as 2 SECONDS behind the window",
                item.value.node.at,
                "arguments stand before the window",
            )
        key = self._next_key(item.value)
        if key is not None:
            self.more_keys.append(key)
        else:
            self._give_keys()
            self.arguments.append(item.value)
            self.open_tail = item.value.tail
        if item.test is not None:
            self._take_test(item.test, item.at)

    def _give_keys(self) -> None:
        if self.more_keys:
            last = self.arguments[-1]
            keys = (*tail_keys(last.node), *self.more_keys)
            self.arguments[-1] = replace(last, node=with_tail_keys(last.node, keys))
            self.more_keys.clear()

    def _next_key(self, value: Part) -> KeyExpression | None:
        node = value.node
        plain = isinstance(node, Metric) and not node.streams and value.inner is None
        return node if self.open_tail and plain and isinstance(node, Metric) else None

    def _take_test(self, test: Part, at: Position) -> None:
        if self.test is not None:
            raise Fault("CLAUSE_TWICE", "WHEN is given twice in one call", at, "join them with AND")
        self.test = test
        self.open_tail = False

    def _take_window(self, window: WindowClause) -> None:
        if len(self.windows) == 2:
            raise Fault("BAD_WINDOW", "a call has at most a window and an offset", window.at)
        if self.windows and not isinstance(window, TimeWindow):
            raise Fault("BAD_WINDOW", "an offset must be a length of time", window.at)
        if self.windows and isinstance(self.windows[0], EventWindow | SessionWindow):
            raise Fault("BAD_WINDOW", "only a window of time can have an offset", window.at)
        self.windows.append(window)

    def build(self) -> Part:
        self._give_keys()
        window = self.windows[0] if self.windows else None
        offset = self.windows[1] if len(self.windows) == 2 else None
        node = Call(
            self._function(),
            tuple(self._expressions()),
            self.parameters,
            self._condition(),
            window,
            offset if isinstance(offset, TimeWindow) else None,
            at=position(self.name),
        )
        inside = self.arguments if self.test is None else [*self.arguments, self.test]
        return make_part(node, inside, levels=1)

    def _function(self) -> str:
        name = str(self.name)
        if name.upper() in RESERVED:
            raise reserved_fault(self.name)
        return name if self.declared or not name.isascii() else name.upper()

    def _expressions(self) -> list[Expression]:
        return [expression(part) for part in self.arguments]

    def _condition(self) -> Condition | None:
        return None if self.test is None else condition(self.test)


def reserved_fault(name: Token) -> Fault:
    return Fault(
        "SYNTAX", f"{name.upper()} is a word of the language and names no function", position(name)
    )
