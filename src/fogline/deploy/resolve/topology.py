"""The nodes that are known, by name and by the addresses people write."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from fogline.model.nodes import GATEWAY, Node, NodeView

_PORTS = {"": 1883, "mqtt": 1883, "tcp": 1883, "mqtts": 8883, "ssl": 8883, "tls": 8883}
_WEB_PORTS = {"http": 80, "https": 443}
_SAME_HOST = {"localhost": "127.0.0.1"}


@dataclass(frozen=True, slots=True)
class Topology:
    """A frozen view of the nodes. Several may share a broker, so an address gives several."""

    nodes: Mapping[str, Node]
    offline: frozenset[str] = frozenset()
    """Names of nodes that are not online now."""
    by_address: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    by_broker: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, views: Iterable[NodeView]) -> Topology:
        known = sorted(views, key=lambda view: view.node.name)
        nodes = {view.node.name: view.node for view in known}
        offline = frozenset(view.node.name for view in known if not view.online)
        return cls(
            nodes,
            offline,
            _group_names((endpoint(node.address), node.name) for node in nodes.values()),
            _group_names((endpoint(node.broker), node.name) for node in nodes.values()),
        )

    def node(self, name: str) -> Node | None:
        return self.nodes.get(name)

    def at_address(self, address: str) -> tuple[str, ...]:
        """Names of the nodes that announce themselves at this address."""
        return self.by_address.get(endpoint(address) or "", ())

    def at_broker(self, address: str) -> tuple[str, ...]:
        """Names of the nodes whose records are sent to this broker; sites before gateways."""
        return self.by_broker.get(endpoint(address) or "", ())

    def broker_of(self, name: str) -> str:
        node = self.nodes.get(name)
        return node.broker if node else ""

    def reads_at(self, node: Node) -> str:
        """Where its jobs read unless they say: of a gateway without broker at its site."""
        return node.site if node.kind == GATEWAY and not node.broker and node.site else node.name

    def writes_at(self, node: Node) -> str:
        """Where its jobs write unless they say: a gateway forwards to its site."""
        return node.site if node.kind == GATEWAY and node.site else node.name


def endpoint(url: str) -> str | None:
    """`host:port`, the same for all ways to write one address; None for what is no address."""
    scheme, _, rest = url.strip().rpartition("://")
    ports = _PORTS | _WEB_PORTS
    if not rest or scheme.lower() not in ports:
        return None
    try:
        parts = urlsplit(f"//{rest}", allow_fragments=False)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if not host or any(sign.isspace() or not sign.isprintable() for sign in host):
        return None
    return f"{_SAME_HOST.get(host, host)}:{port or ports[scheme.lower()]}"


def broker_address(url: str) -> str | None:
    """`mqtt://host:port` (`mqtts` for TLS) of a broker's address as people write it."""
    where = endpoint(url)
    scheme = url.strip().rpartition("://")[0].lower()
    if where is None or scheme not in _PORTS:
        return None
    return f"{'mqtts' if _PORTS[scheme] == 8883 else 'mqtt'}://{where}"


def _group_names(pairs: Iterable[tuple[str | None, str]]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for key, name in pairs:
        if key is not None:
            found[key] = (*found.get(key, ()), name)
    return found
