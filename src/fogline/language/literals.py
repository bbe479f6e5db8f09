"""From the text of a token to its value: strings, numbers and windows."""

from __future__ import annotations

import math
import re
from decimal import Decimal

from lark import Token

from fogline.language.ast import EventWindow, Interval, Position, SessionWindow, TimeWindow
from fogline.language.faults import Fault
from fogline.language.keywords import TIME_UNITS
from fogline.language.limits import MAX_WINDOW_EVENTS, MAX_WINDOW_MILLIS

_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")
_SIMPLE = {'"': '"', "'": "'", "\\": "\\", "n": "\n", "t": "\t"}


def position(token: Token) -> Position:
    return Position(token.line or 1, token.column or 1)


def string(token: Token) -> str:
    """What a quoted text stands for."""

    def unescape(match: re.Match[str]) -> str:
        code = match[1]
        if len(code) == 5:
            return chr(int(code[1:], 16))
        if code not in _SIMPLE:
            raise Fault(
                "BAD_VALUE",
                f"unknown escape '\\{code}' in a string",
                position(token),
                r"known are \" \' \\ \n \t and \uXXXX; write \\ for a backslash",
            )
        return _SIMPLE[code]

    value = _ESCAPE.sub(unescape, token[1:-1])
    if _SURROGATE.search(value):
        raise Fault("BAD_VALUE", "a string holds half a Unicode character", position(token))
    return value


def number(token: Token) -> float:
    value = float(token)
    if math.isinf(value):
        raise Fault("BAD_VALUE", "this number is too large", position(token))
    return value


def span(sign: Token | None, amount: Token, unit: Token) -> Interval:
    """`10 SECONDS` or `5 EVENTS`: positive, whole milliseconds or records, and within limits."""
    at = position(sign or amount)
    value = float(amount)
    if sign is not None or value <= 0:
        raise Fault("BAD_WINDOW", "a window must be longer than nothing", at)
    factor = TIME_UNITS.get(unit.upper())
    if factor is None:
        return EventWindow(_whole_amount(amount, 1, MAX_WINDOW_EVENTS, at), at=at)
    return TimeWindow(_whole_amount(amount, factor, MAX_WINDOW_MILLIS, at), at=at)


def session(gap: Interval, at: Position) -> SessionWindow:
    if isinstance(gap, EventWindow):
        raise Fault(
            "BAD_WINDOW",
            "a session needs a length of time, not a number of events",
            gap.at,
            "write for example SESSION 30 SECONDS",
        )
    return SessionWindow(gap.millis, at=at)


def _whole_amount(amount: Token, factor: int, limit: int, at: Position) -> int:
    timed = limit == MAX_WINDOW_MILLIS
    if float(amount) * factor > limit:
        most = "3650 days" if timed else f"{limit} events"
        raise Fault("BAD_WINDOW", f"a window can be at most {most}", at)
    exact = Decimal(str(amount)) * factor
    if exact != exact.to_integral_value():
        unit = "milliseconds" if timed else "events"
        raise Fault("BAD_WINDOW", f"a window must be a whole number of {unit}", at)
    return int(exact)
