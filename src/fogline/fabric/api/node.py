"""What the REST interface of a node speaks for."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from fogline.fabric.api.tokens_file import Callers
from fogline.fabric.query.local_backend import StoreAnswers
from fogline.fabric.query.query_types import Everywhere, NodeBackend
from fogline.fabric.query.space_keys import SpaceKeys
from fogline.fabric.query.spaces import OwnSpaces, SpacesEverywhere
from fogline.model.question import Question
from fogline.storage.query.changes import Changes
from fogline.storage.store import SiteStore


class Copying(Everywhere, SpacesEverywhere, Protocol):
    """All nodes as one, and the copies that this one holds. For any thread."""

    def copy_of(self, origin: str) -> NodeBackend | None:
        """The copy of another node's values, if there is one here."""
        ...

    def copy_changes(
        self,
        origin: str,
        after: int,
        question: Question,
        limit: int,
        whole: bool = False,
        without: Collection[str] = (),
    ) -> tuple[Changes, str]:
        """What the copy of an origin holds, by number, and the id of the store it is of; with
        `whole` only up to where nothing is missing. Metrics of `without` are left out."""
        ...

    def keep_copy(self, origin: str, metrics: tuple[str, ...] | None) -> None:
        """From now on; None means all metrics. Raises `StoreError`."""
        ...

    def drop_copy(self, origin: str) -> None:
        """Ends and removes it; one that is not there is no error."""
        ...

    def copies(self) -> Mapping[str, Mapping[str, Any]]:
        """By origin: what of it, up to when, how much."""
        ...

    def state(self, with_metrics: bool = False) -> Mapping[str, Any]:
        """The response of `GET /v1/state`."""
        ...


@dataclass(frozen=True, slots=True)
class FabricNode:
    """A site's store and its part in the fabric."""

    site: str
    store: SiteStore
    fabric: Copying
    callers: Callers
    keys: SpaceKeys

    @property
    def own(self) -> NodeBackend:
        return StoreAnswers(self.store, self.site)

    @property
    def spaces(self) -> OwnSpaces:
        return OwnSpaces(self.store, self.keys)
