"""The nodes of the fabric for whoever follows all their values."""

from __future__ import annotations

from collections.abc import Callable

from fogline.fabric.errors import NodeUnreachable
from fogline.fabric.membership.node_client import NodeClient
from fogline.fabric.membership.peers import read_state
from fogline.model.question import Question
from fogline.storage.errors import BadValue
from fogline.storage.query.changes import Changes
from fogline.storage.store import SiteStore
from fogline.storage.values import SCHEMA

ReadChanges = Callable[[str, int, Question, int, bool], tuple[Changes, str]]
"""`Copies.changes`."""


class OwnChanges:
    """Of this node's own store."""

    def __init__(self, store: SiteStore, at: str) -> None:
        self._store = store
        self.at = at

    @property
    def store_id(self) -> str:
        return self._store.id

    def changes(self, after: int, question: Question, limit: int) -> Changes:
        """Of all entities."""
        return self._store.changes(after, question.metrics, limit, question.share)


class CopyChanges:
    """Of another node by way of the copy here. Raises `NodeUnreachable`."""

    def __init__(self, origin: str, store: str, ask: ReadChanges, at: str) -> None:
        self._origin = origin
        self._ask = ask
        self.store_id = store
        self.at = at

    def changes(self, after: int, question: Question, limit: int) -> Changes:
        """Of all entities."""
        page, store = self._ask(self._origin, after, question, limit, True)
        if store != self.store_id:
            raise NodeUnreachable(f"the copy of {self._origin} is of another store now")
        return page


class NodeChanges:
    """Of another node, or of its copy of one, as long as that is of the same store.

    Raises `NodeUnreachable`.
    """

    def __init__(self, client: NodeClient, store: str, at: str, copy_of: str = "") -> None:
        self._client = client.copy_of(copy_of) if copy_of else client
        self._copy_of = copy_of
        self.store_id = store
        self.at = at

    def changes(self, after: int, question: Question, limit: int) -> Changes:
        """Of all entities; of no metrics, only where the changes end now."""
        if question.metrics == ():
            return self._end(after)
        metrics, share = question.metrics, question.share
        page, store = self._client.changes(after, metrics, limit, share, bool(self._copy_of))
        self._check(store)
        return page

    def _end(self, after: int) -> Changes:
        try:
            report = read_state(self._client.state())
        except BadValue as error:
            raise NodeUnreachable(f"{self._client.address} cannot be understood") from error
        found = report.copies.get(self._copy_of) if self._copy_of else report
        if found is None:
            raise NodeUnreachable(f"{self._client.address} has no copy of {self._copy_of} any more")
        self._check(found.id)
        return Changes(SCHEMA.empty_table(), max(after, found.last), end=True)

    def _check(self, store: str) -> None:
        if store != self.store_id:
            raise NodeUnreachable(f"{self._client.address} has another store now")
