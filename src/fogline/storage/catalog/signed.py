"""Signed insights: which metrics of which node can be read only with a key.

Each site keeps, for every signed metric of its own, the key of each job that publishes it; who is
to read the metric's values of that site needs all of them. This is kept beside the metric's
metadata, as that of an entity that no value can be of, and so reaches every site as metadata does.
A site changes only what is its own, so no two ever disagree. It stays when a job goes: values may
be left.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from typing import TypeVar

from fogline.model.keys import Keys, key_list, opens

_ENTITY = "\x1fsigned at "

Outlets = Mapping[str, str]
"""The job under whose name an insight is published, and the keys that it needs, as `key_text`."""


def signing(node: str) -> str:
    """The entity under which it is kept what a node has signed."""
    return _ENTITY + node


def signer(entity: str) -> str | None:
    """The node that signed, where it is such an entity."""
    return entity.removeprefix(_ENTITY) if entity.startswith(_ENTITY) else None


def after(known: Outlets, outlets: Mapping[str, str | None]) -> dict[str, str]:
    """What is known of a metric once jobs announce their keys, or None: it needs none any more."""
    found = {**known, **outlets}
    return {outlet: key for outlet, key in found.items() if key is not None}


class Signed:
    """What is known here, in memory. For any thread."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._by_node: dict[str, dict[str, Outlets]] = {}
        self._needed_keys: dict[str, dict[str, frozenset[str]]] = {}
        """By node and metric: all keys together, so that a question has little to do."""

    def learn(self, node: str, metric: str, outlets: Outlets) -> None:
        """Of no outlets: the metric is not signed."""
        with self._guard:
            self._by_node[node] = _with(self._by_node.get(node, {}), metric, dict(outlets))
            self._needed_keys[node] = _with(
                self._needed_keys.get(node, {}), metric, _all_keys(outlets)
            )

    def outlets(self, node: str, metric: str) -> Outlets:
        return self._by_node.get(node, {}).get(metric, {})

    def metrics(self, node: str) -> tuple[str, ...]:
        return tuple(self._by_node.get(node, ()))

    def hidden(self, node: str, keys: Keys) -> frozenset[str]:
        """The metrics whose values of that node are not for who holds these keys."""
        if keys is None:
            return frozenset()
        metrics = self._needed_keys.get(node, {}).items()
        return frozenset(metric for metric, needed in metrics if not opens(keys, needed))

    def hidden_anywhere(self, keys: Keys) -> frozenset[str]:
        """Those of any node."""
        with self._guard:
            nodes = list(self._needed_keys)
        return frozenset[str]().union(*(self.hidden(node, keys) for node in nodes))


_Kept = TypeVar("_Kept", bound=Collection[str])


def _with(known: Mapping[str, _Kept], metric: str, kept: _Kept) -> dict[str, _Kept]:
    """The same with what is kept of a metric, nothing if that is empty."""
    others = {name: held for name, held in known.items() if name != metric}
    return others | ({metric: kept} if kept else {})


def _all_keys(outlets: Outlets) -> frozenset[str]:
    return frozenset[str]().union(*map(key_list, outlets.values()))
