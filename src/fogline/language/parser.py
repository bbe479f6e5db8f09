"""From query text to its tree.

`parse` answers any text with a `QueryFile` or a `QueryError`, in bounded time and without
recursion. After a problem it goes on behind the next `;`, so one call reports several problems.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

from lark import Lark, TextSlice, Token, UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from fogline.common.errors import Problem, QueryError
from fogline.language.ast import Position, QueryFile
from fogline.language.diagnosis import Bracket, Stop, diagnose
from fogline.language.expressions import DECLARED
from fogline.language.faults import Fault
from fogline.language.limits import (
    MAX_NESTING,
    MAX_OPEN_BRACKETS,
    MAX_PROBLEMS,
    MAX_TEXT_BYTES,
    MAX_TOKENS,
)
from fogline.language.literals import position
from fogline.language.parts import too_deep
from fogline.language.scan import after_separator, declared_functions, starts_statement
from fogline.language.statements import StatementBuilder

_OPENING = {"LPAR": ")", "LSQB": "]"}
_CLOSING = frozenset({"RPAR", "RSQB"})


def parse(text: str) -> QueryFile:
    """The tree of a query file; raises `QueryError` with every problem that can be found."""
    if len(text) > MAX_TEXT_BYTES or len(text.encode("utf-8", "replace")) > MAX_TEXT_BYTES:
        size = f"the text is larger than {MAX_TEXT_BYTES // 1024} KiB"
        raise QueryError((Problem("TOO_LARGE", size, 1, 1, hint="split it into several files"),))
    token = DECLARED.set(declared_functions(text))
    try:
        return _parse(text)
    finally:
        DECLARED.reset(token)


@cache
def _lark() -> Lark:
    grammar = resources.files("fogline.language").joinpath("grammar.lark").read_text("utf-8")
    return Lark(
        grammar,
        start="file",
        parser="lalr",
        lexer="contextual",
        transformer=StatementBuilder(),
        maybe_placeholders=False,
    )


def _parse(text: str) -> QueryFile:
    problems: list[Problem] = []
    start: int | None = 0
    while start is not None and len(problems) < MAX_PROBLEMS:
        run = _Run(text, start)
        try:
            tree = run.tree()
        except Fault as fault:
            problems.append(fault.problem(text))
            start = run.next_start(fault)
        else:
            if not problems:
                return tree
            break
    raise QueryError(tuple(problems))


class _Run:
    """One pass of the parser from a place in the text to its end or to the first fault."""

    def __init__(self, text: str, start: int) -> None:
        self.text = text
        self.start = start
        self.reached = start
        self.last: Token | None = None
        self.brackets: list[Bracket] = []
        slice_ = TextSlice(text, start, len(text))
        self.parser: Any = _lark().parse_interactive(slice_)

    def tree(self) -> QueryFile:
        try:
            self._read()
            tree: QueryFile = self.parser.feed_eof(self.last)
        except UnexpectedInput as error:
            raise self._syntax(error) from None
        return tree

    def _read(self) -> None:
        parser = self.parser
        for count, token in enumerate(parser.lexer_thread.lex(parser.parser_state)):
            self.reached = token.start_pos or 0
            if count > MAX_TOKENS:
                message = f"the text has more than {MAX_TOKENS} words and signs"
                raise Fault("TOO_LARGE", message, position(token), "split it into several files")
            parser.feed_token(token)
            self._follow(token)
            self.last = token

    def _follow(self, token: Token) -> None:
        if token.type in _OPENING:
            self.brackets.append(Bracket(_OPENING[token.type], position(token)))
            if len(self.brackets) > MAX_OPEN_BRACKETS:
                raise too_deep(position(token), f"more than {MAX_NESTING} levels of nesting")
        elif token.type in _CLOSING:
            self.brackets.pop()

    def _syntax(self, error: UnexpectedInput) -> Fault:
        if isinstance(error, UnexpectedCharacters):
            self.reached, at = error.pos_in_stream or 0, Position(error.line, error.column)
        elif isinstance(error, UnexpectedToken) and error.token.type != "$END":
            self.reached, at = error.token.start_pos or 0, position(error.token)
        else:
            self.reached, at = len(self.text), self._end()
        accepted = self.parser.accepts()
        return diagnose(Stop(self.text, self.reached, at, accepted, self.last, self.brackets))

    def _end(self) -> Position:
        if self.last is None:
            return Position(1, 1)
        return Position(self.last.end_line or 1, self.last.end_column or 1)

    def next_start(self, fault: Fault) -> int | None:
        """Where to go on: at what looks like a new statement, else behind the next `;`."""
        if fault.code in ("TOO_LARGE", "TOO_DEEP"):
            return None
        if self.reached > self.start and starts_statement(self.text, self.reached):
            return self.reached
        return after_separator(self.text, self.reached)
