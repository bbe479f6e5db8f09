"""Application data of one node and of all: what can be asked, and this node's own answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from fogline.fabric.errors import NotThere
from fogline.fabric.query.query_types import NodeAnswer
from fogline.fabric.query.space_keys import SpaceKeys, key_text
from fogline.fabric.query.space_pages import RowPlace, SpaceInfo, SpacePage, merge_pages, to_table
from fogline.storage.errors import BadQuery
from fogline.storage.store import SiteStore
from fogline.storage.values import END_TIME, FIRST_TIME

MOST_ROWS = 50_000


@dataclass(frozen=True, slots=True)
class SpaceRange:
    """Rows from `start` up to, not including, `end`, behind `after`, by time and key.

    `key` has a value for each column of the space's key; None means all rows.
    """

    space: str
    key: tuple[str, ...] | None = None
    start: int = FIRST_TIME
    end: int = END_TIME
    limit: int = MOST_ROWS
    descending: bool = False
    after: RowPlace | None = None


class SpaceAnswers(Protocol):
    """Spaces of one node: its own store, or the node by REST. For any thread.

    Raises `StoreError` for a wrong question, `NodeUnreachable` when there is no answer.
    """

    def spaces(self) -> Sequence[SpaceInfo]: ...

    def space_rows(self, question: SpaceRange) -> SpacePage:
        """Raises `NotThere` when this node has no such space."""
        ...


class OwnSpaces:
    """`SpaceAnswers` of this process."""

    def __init__(self, store: SiteStore, keys: SpaceKeys) -> None:
        self._spaces = store.spaces
        self._keys = keys

    def spaces(self) -> list[SpaceInfo]:
        return [SpaceInfo(space, self._keys.of(space.name)) for space in self._spaces.all()]

    def info(self, name: str) -> SpaceInfo:
        for info in self.spaces():
            if info.space.name == name:
                return info
        raise NotThere(f"unknown space {name!r:.80}")

    def space_rows(self, question: SpaceRange) -> SpacePage:
        info = self.info(question.space)
        rows = self._spaces.range(
            *(question.space, row_key(info, question.key), question.start, question.end),
            limit=question.limit + 1,
            descending=question.descending,
            after=question.after,
        )
        table = to_table(info.space.columns, rows[: question.limit])
        return SpacePage(info, table, len(rows) > question.limit)


def row_key(info: SpaceInfo, given: Sequence[str] | None) -> str | None:
    """The key of a row as the store knows it. Raises `BadQuery` for one that cannot be."""
    if given is None:
        return None
    if len(given) != max(len(info.key), 1):
        raise BadQuery(f"the key of this space is {' and '.join(info.key) or 'one text'}")
    return key_text(given)


@dataclass(frozen=True, slots=True)
class SpacesWhole:
    """The spaces of all nodes, each with the nodes that have it so."""

    spaces: tuple[tuple[SpaceInfo, tuple[str, ...]], ...]
    nodes: tuple[NodeAnswer, ...] = ()


@dataclass(frozen=True, slots=True)
class RowsWhole:
    """Rows of a space of all nodes that have it."""

    page: SpacePage
    nodes: tuple[NodeAnswer, ...] = field(default=())


class SpacesEverywhere(Protocol):
    """The spaces of all nodes as one; `own` are those of the node that is asked.

    Raises `StoreError` for a wrong question, never for a missing node.
    """

    def spaces(self, own: SpaceAnswers) -> SpacesWhole: ...

    def space_rows(self, question: SpaceRange, own: SpaceAnswers) -> RowsWhole:
        """Raises `NotThere` when no node that answers has it, `ConflictError` when the nodes' rows
        do not go together."""
        ...


def list_spaces(found: Mapping[str, Sequence[SpaceInfo]]) -> tuple[tuple[SpaceInfo, Any], ...]:
    """Spaces of all nodes by name; one that differs somewhere is listed once for each kind."""
    kinds: dict[str, tuple[SpaceInfo, list[str]]] = {}
    for node in sorted(found):
        for info in found[node]:
            kinds.setdefault(repr(info.as_json()), (info, []))[1].append(node)
    ordered = sorted(kinds.values(), key=lambda kind: (kind[0].space.name, kind[1]))
    return tuple((info, tuple(nodes)) for info, nodes in ordered)


def merge_rows(
    found: Mapping[str, SpacePage | None], nodes: tuple[NodeAnswer, ...], question: SpaceRange
) -> RowsWhole:
    """The rows of those nodes that have the space. Raises as `SpacesEverywhere.space_rows`."""
    pages = {node: page for node, page in found.items() if page is not None}
    if not pages:
        missing = [answer.node for answer in nodes if answer.node not in found]
        hint = f"no answer from {', '.join(missing)}" if missing else ""
        raise NotThere(f"no node has a space {question.space!r:.80}", hint)
    return RowsWhole(merge_pages(pages, question.limit, question.descending), nodes)
