"""The nodes of the fabric for whoever follows all their values."""

from __future__ import annotations

from fogline.fabric.asking import Names
from fogline.fabric.errors import NodeAway
from fogline.fabric.node_client import NodeClient
from fogline.fabric.seen import read_state
from fogline.storage.changes import Changes
from fogline.storage.errors import BadValue
from fogline.storage.store import SiteStore
from fogline.storage.values import SCHEMA


class OwnChanges:
    """Of this node's own store."""

    def __init__(self, store: SiteStore) -> None:
        self._store = store

    @property
    def store_id(self) -> str:
        return self._store.id

    def changes(self, after: int, names: Names, limit: int) -> Changes:
        """Of all entities."""
        return self._store.changes(after, names.metrics, limit)


class NodeChanges:
    """Of another node, as long as it has the same store. Raises `NodeAway`."""

    def __init__(self, client: NodeClient, store: str) -> None:
        self._client = client
        self.store_id = store

    def changes(self, after: int, names: Names, limit: int) -> Changes:
        """Of all entities; of no metrics, only where the changes end now."""
        if names.metrics == ():
            return self._end(after)
        page, store = self._client.changes(after, names.metrics, limit)
        self._check(store)
        return page

    def _end(self, after: int) -> Changes:
        try:
            told = read_state(self._client.state())
        except BadValue as error:
            raise NodeAway(f"{self._client.address} cannot be understood") from error
        self._check(told.id)
        return Changes(SCHEMA.empty_table(), max(after, told.last), end=True)

    def _check(self, store: str) -> None:
        if store != self.store_id:
            raise NodeAway(f"{self._client.address} has another store now")
