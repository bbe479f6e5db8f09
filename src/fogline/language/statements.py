"""Builds statements, clauses and options while the parser reads them."""

from __future__ import annotations

from lark import Token

from fogline.language import literals
from fogline.language.ast import (
    Function,
    Insight,
    Options,
    Parameter,
    Provider,
    QueryFile,
    Stream,
)
from fogline.language.calls import reserved_fault
from fogline.language.expressions import Children, ExpressionBuilder
from fogline.language.faults import Fault
from fogline.language.keywords import RESERVED
from fogline.language.literals import position
from fogline.language.options import Given, gather, number_option, text_option
from fogline.language.parts import (
    Clause,
    Part,
    condition,
    expression,
    tail_keys,
    unwrap_part,
    with_tail_keys,
)


class StatementBuilder(ExpressionBuilder):
    """One method a rule of the grammar, named like the rule or its alias."""

    def file(self, children: Children) -> QueryFile:
        return QueryFile(tuple(children))

    def statement_name(self, children: Children) -> Token:
        token: Token = children[0]
        return token

    def stream(self, children: Children) -> Stream:
        name, provider = children
        return Stream(str(name), provider, at=position(name))

    def function(self, children: Children) -> Function:
        word, name, *arguments, target = children
        if name.upper() in RESERVED:
            raise reserved_fault(name)
        names = tuple(map(str, arguments))
        return Function(str(name), names, literals.string(target), at=position(word))

    def insight(self, children: Children) -> Insight:
        name, value, *outside = children
        value, inside = unwrap_part(value)
        return _insight(name, value, _clauses((*inside, *outside)))

    # ── providers ──────────────────────────────────────────────────────────────────────────

    def provider(self, children: Children) -> Provider:
        name, *parameters = children
        seen: set[str] = set()
        for parameter in parameters:
            if parameter.key in seen:
                message = f"{parameter.key} is given twice"
                raise Fault("OPTION_TWICE", message, parameter.at, "keep one of the two")
            seen.add(parameter.key)
        return Provider(str(name), tuple(parameters), at=position(name))

    def parameter(self, children: Children) -> Parameter:
        key, value = children
        return Parameter(str(key), value, at=position(key))

    def text_value(self, children: Children) -> str:
        return literals.string(children[0])

    def word_value(self, children: Children) -> str:
        return str(children[0])

    # ── clauses and options ────────────────────────────────────────────────────────────────

    def every_clause(self, children: Children) -> Clause:
        return Clause("EVERY", children[1], position(children[0]))

    def with_clause(self, children: Children) -> Clause:
        at = position(children[0])
        return Clause("WITH", gather(children[1:], at), at)

    def to_clause(self, children: Children) -> Clause:
        return Clause("TO", children[1], position(children[0]))

    def number_option(self, children: Children) -> Given:
        return number_option(*children)

    def text_option(self, children: Children) -> Given:
        return text_option(*children)

    def awareness_option(self, children: Children) -> Given:
        word, level = children
        return Given("awareness", level.upper(), word)

    def allow_option(self, children: Children) -> Given:
        word, _, test = children
        return Given("allow", condition(test), word)


def _clauses(clauses: tuple[Clause, ...]) -> dict[str, Clause]:
    found: dict[str, Clause] = {}
    for clause in clauses:
        if clause.kind in found:
            raise Fault(
                "CLAUSE_TWICE",
                f"{clause.kind} stands twice in one insight",
                clause.at,
                "join the conditions with AND" if clause.kind == "WHEN" else "keep one of the two",
            )
        found[clause.kind] = clause
    return found


def _insight(name: Token, value: Part, clauses: dict[str, Clause]) -> Insight:
    said = {kind: clause.value for kind, clause in clauses.items()}
    node, test, keys = expression(value), said.get("WHEN"), said.get("BY")
    when = condition(test) if isinstance(test, Part) else None
    if keys is None and value.tail:
        keys, node = tail_keys(node), with_tail_keys(node, ())
    elif keys is None and isinstance(test, Part) and test.tail:
        keys, when = tail_keys(test.node), with_tail_keys(test.node, ())
    return Insight(
        str(name),
        node,
        keys or (),  # type: ignore[arg-type]
        when,
        said.get("EVERY"),  # type: ignore[arg-type]
        said.get("WITH", Options()),  # type: ignore[arg-type]
        said.get("TO"),  # type: ignore[arg-type]
        at=position(name),
    )
