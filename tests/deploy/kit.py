"""Nodes, code and checks for the tests of this folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from fogline.deploy.manifest.composition import read_composition
from fogline.deploy.resolve.resolve import Package, Resolved, resolve
from fogline.deploy.resolve.topology import Topology
from fogline.deploy.resolve.workloads import CodeCheck
from fogline.model.jobs import Scalar
from fogline.model.nodes import GATEWAY, ONLINE, SITE, Node, NodeView

HERE = Path(__file__).parent
SAMPLES = HERE / "samples"

HOSTS = {"a": "10.0.0.1", "b": "10.0.0.2", "c": "10.0.0.3", "d": "10.0.0.4"}
HOLES = {f"{name}_host": host for name, host in HOSTS.items()} | {"code": "code"}


def site(name: str, host: str) -> Node:
    return Node(name, SITE, broker=f"mqtt://{host}:1883", address=f"http://{host}:8081")


def gateway(name: str, at: str, broker: str = "") -> Node:
    return Node(name, GATEWAY, broker=broker, site=at)


def topology(*nodes: Node, gone: tuple[str, ...] = ()) -> Topology:
    states = dict.fromkeys(gone, "gone")
    return Topology.of(NodeView(node, states.get(node.name, ONLINE), 0.0) for node in nodes)


SITES = topology(
    *(site(name, host) for name, host in HOSTS.items()),
    gateway("gw", "a"),
    gateway("gw2", "a", "mqtt://10.0.1.2:1883"),
)


class AnyCode(dict[str, Package]):
    """A package for every path."""

    def get(self, key: str, default: object = None) -> Package:  # type: ignore[override]
        return Package(f"sha-{key}", key.rsplit("/", 1)[-1])


def no_complaint(package: Package, entry: str, parameters: Mapping[str, Scalar]) -> str | None:
    return None


def resolved(
    text: str,
    nodes: Topology = SITES,
    code: Mapping[str, Package] | None = None,
    check: CodeCheck = no_complaint,
    existing: Mapping[str, str] | None = None,
    files: Mapping[str, str] | None = None,
) -> Resolved:
    packages = AnyCode() if code is None else code
    composition = read_composition(text)
    return resolve(composition, nodes, packages, check, existing or {}, files=files)


def sample(name: str) -> str:
    text = (SAMPLES / name).read_text(encoding="utf-8")
    for hole, value in HOLES.items():
        text = text.replace("{" + hole + "}", value)
    return text
