"""Says in plain words what is wrong where the parser could not go on, and what may help."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from lark import Token

from fogline.language.ast import Position
from fogline.language.faults import Fault
from fogline.language.keywords import OPTION_WORDS, RESERVED, TIME_UNITS, words_of
from fogline.language.scan import starts_statement, thing_at

_OTHER_LANGUAGES = {
    "WHERE": "WHEN",
    "HAVING": "WHEN",
    "IF": "WHEN",
    "GROUP": "BY",
    "SELECT": "COMPUTE",
    "INTO": "TO",
    "USING": "WITH",
    "&&": "AND",
    "||": "OR",
    "!": "NOT",
    "<>": "!=",
    "=>": ">=",
    "=<": "<=",
}
_CURLY = "“”„‟‘’‚‛«»"
_BEHIND = {
    "EVERY": "an interval such as 10 SECONDS",
    "SESSION": "a gap such as 30 SECONDS",
    "BY": "a key such as city",
    "WITH": "an option such as SALIENCE 5",
    "_AND": "a condition or an option",
    "_OPTION_AND": "an option such as SALIENCE 5",
    "NUMBER_OPTION": "a number",
    "TEXT_OPTION": "a name",
    "AWARENESS": "ON COMPUTATIONS or ON ACCURACY",
    "_ON": "COMPUTATIONS or ACCURACY",
    "ALLOW": "WHEN and a condition",
    "WHEN": "a condition such as x > 3",
    "NOT": "a condition such as x > 3",
    "_STREAM": "FROM",
    "TO": "a provider such as mqtt(topic=\"name\")",
    "IN": "values in parentheses such as (a, b)",
    "_COMPUTE": "an expression such as AVG(x, 10 SECONDS)",
    "COMPARE": "a value to compare with",
    "LSQB": "a number",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Bracket:
    """An opened parenthesis or bracket, and what closes it."""

    closing: str
    at: Position


@dataclass(frozen=True, slots=True)
class Stop:
    """Where the parser could not go on: only the `accepted` terminals could stand there."""

    text: str
    place: int
    at: Position
    accepted: AbstractSet[str]
    last: Token | None
    brackets: Sequence[Bracket]

    @property
    def found(self) -> str:
        return thing_at(self.text, self.place)

    def behind(self, *terminals: str) -> bool:
        return self.last is not None and self.last.type in terminals


def diagnose(stop: Stop) -> Fault:
    broken = _find_broken(stop.found, stop.at)
    if broken is not None:
        return broken
    message = f"expected {_describe_expected(stop)}, found {_show_text(stop.found)}"
    return Fault("SYNTAX", message, stop.at, _hint(stop))


def _find_broken(found: str, at: Position) -> Fault | None:
    """Things that are wrong wherever they stand."""
    if found[:1] in ('"', "'") and (len(found) < 2 or found[-1] != found[0]):
        return Fault(
            "SYNTAX",
            "this string is not closed",
            at,
            f"put {found[0]} at its end, on the same line",
        )
    if found == "/*":
        return Fault("SYNTAX", "this comment is not closed", at, "put */ at its end")
    if found and found in _CURLY:
        return Fault("SYNTAX", f"'{found}' is no quotation mark here", at, 'use straight quotes: "')
    return None


def _show_text(found: str) -> str:
    if not found:
        return "the end of the text"
    cut = found if len(found) <= 30 else found[:30] + "…"
    if cut.isprintable():
        return f"'{cut}'"
    return f"the character U+{ord(cut[0]):04X}" if len(cut) == 1 else repr(cut)


def _describe_expected(stop: Stop) -> str:
    if stop.last is not None and stop.last.type in _BEHIND:
        return _BEHIND[stop.last.type]
    accepted, found = stop.accepted, stop.found
    if "SESSION" in accepted and "NUMBER" in accepted:
        return "a window such as 10 SECONDS" if stop.behind("COMMA") else "a metric or a value"
    if "NUMBER" in accepted:
        return "a value"
    if "UNIT" in accepted and ("RPAR" not in accepted or found[:1].isalpha()):
        return "a unit such as SECONDS"
    if "COMPARE" in accepted and found == "=":
        return "a comparison such as =="
    if accepted <= {"_STREAM", "_COMPUTE"}:
        return " or ".join(words_of(accepted))
    if "FUNCTION" in accepted:
        return "a statement such as name = COMPUTE …"
    return _list_choices(accepted)


_SIGNS = {
    "SEMICOLON": "';'",
    "RPAR": "')'",
    "RSQB": "']'",
    "LPAR": "'('",
    "COMMA": "','",
    "EQUAL": "'='",
    "COLON": "':'",
    "NAME": "a name",
    "WORD": "a name",
    "STRING": "a quoted text",
    "COMPARE": "a comparison",
}


def _list_choices(accepted: AbstractSet[str]) -> str:
    signs = [sign for terminal, sign in _SIGNS.items() if terminal in accepted]
    clauses = [w for w in ("BY", "WHEN", "EVERY", "WITH", "TO", "FROM") if _has(w, accepted)]
    if "SEMICOLON" in accepted:
        signs = ["';'"]
    if "RPAR" in accepted:
        signs, clauses = [sign for sign in signs if sign != "'('"], []
    choices = list(dict.fromkeys(signs[:3] + clauses))
    if len(choices) < 2:
        return "".join(choices) or "something else"
    return ", ".join(choices[:-1]) + " or " + choices[-1]


def _has(word: str, accepted: AbstractSet[str]) -> bool:
    return word in accepted or "_" + word in accepted


def _hint(stop: Stop) -> str:
    return (
        _statement_hint(stop)
        or _condition_hint(stop)
        or _meant_hint(stop)
        or _bracket_hint(stop.found, stop.brackets)
        or _list_hint(stop)
    )


def _statement_hint(stop: Stop) -> str:
    if "SEMICOLON" in stop.accepted and starts_statement(stop.text, stop.place):
        return "put ; between two statements"
    if "EQUAL" in stop.accepted and stop.last is not None:
        if stop.found.upper() in ("COMPUTE", "STREAM"):
            return f"put = before {stop.found}"
        if stop.last.upper() in ("COMPUTE", "STREAM"):
            return f"give it a name: name = {stop.last} …"
    return ""


def _condition_hint(stop: Stop) -> str:
    if stop.found == "=" and "COMPARE" in stop.accepted:
        return "write == to compare"
    if stop.found.upper() == "AND" and "WITH" in stop.accepted:
        return "options stand behind WITH; to compare, write =="
    if stop.found in (">", "<", ">=", "<=", "==", "!=") and "WHEN" in stop.accepted:
        return f"filter with WHEN {stop.found} …"
    return ""


def _list_hint(stop: Stop) -> str:
    word = stop.found.upper()
    if word in OPTION_WORDS and "_OPTION_AND" in stop.accepted:
        return "join options with AND"
    if word in TIME_UNITS and stop.behind("NUMBER"):
        return f'put quotes around it: "{stop.last} {stop.found}"'
    if "COMMA" in stop.accepted and "UNIT" not in stop.accepted and word[:1].isalnum():
        return "put , between the two"
    return ""


def _meant_hint(stop: Stop) -> str:
    meant = _guess_word(stop.found, stop.accepted)
    return f"did you mean {meant}?" if meant else ""


def _guess_word(found: str, accepted: AbstractSet[str]) -> str:
    word = found.upper()
    if word in _OTHER_LANGUAGES:
        return _OTHER_LANGUAGES[word]
    if len(word) < 2 or len(word) > 20 or word in RESERVED:
        return ""
    close = difflib.get_close_matches(word, words_of(accepted), n=1, cutoff=0.7)
    return close[0] if close else ""


def _bracket_hint(found: str, brackets: Sequence[Bracket]) -> str:
    if found in (")", "]") and not brackets:
        return "nothing is open here that it could close"
    if brackets and (found in ("", ";") or found.upper() in RESERVED):
        open_ = brackets[-1]
        where = f"line {open_.at.line}, column {open_.at.column}"
        return f"'{open_.closing}' is missing for the bracket opened at {where}"
    return ""
