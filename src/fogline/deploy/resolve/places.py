"""Looking up where jobs are and where their topics are."""

from __future__ import annotations

from collections.abc import Iterable

from fogline.common.errors import START_SITE
from fogline.deploy.manifest.manifest import WrittenJob, WrittenPlace
from fogline.deploy.manifest.problems import Problems, list_names
from fogline.deploy.manifest.tree import Word, shorten
from fogline.deploy.resolve.topology import Topology, broker_address
from fogline.model.jobs import Place
from fogline.model.nodes import GATEWAY, SITE, Node
from fogline.model.topics import wrong_job_topic


class PlaceResolver:
    """Names and addresses to nodes. What cannot be found is None, and a problem."""

    def __init__(self, topology: Topology, foreign: Iterable[Word], problems: Problems) -> None:
        self._topology = topology
        self._problems = problems
        self._foreign = {address for word in foreign if (address := self._address(word))}

    def node(self, job: WrittenJob) -> Node | None:
        """Where a job runs."""
        if job.site is not None and job.address is not None:
            message = "site and spe_address are given, one of them is enough"
            self._problems.add("CONFLICT", message, job.address.at)
        if job.site is not None:
            return self.find_node(job.site)
        if job.address is not None:
            return self._find_address(job.address)
        if not job.is_sure("site", "spe_address"):
            return None
        hint = "add site: one of " + list_names(self._topology.nodes)
        message = f"{job.label} is at no site"
        self._problems.add("SITE", message, job.at(), hint)
        return None

    def find_node(self, word: Word) -> Node | None:
        node = self._topology.nodes.get(word.text)
        if node is None:
            message = f"there is no node {shorten(word.text)!r}"
            names = self._topology.nodes
            hint = f"nodes: {list_names(names)}" if names else f"no node is known yet: {START_SITE}"
            self._problems.add_unknown("SITE", message, word.at, word.text, names, hint)
        return node

    def _find_address(self, word: Word) -> Node | None:
        names = self._topology.at_address(word.text)
        if len(names) == 1:
            return self._topology.node(names[0])
        count = "no node is" if not names else f"{len(names)} nodes ({list_names(names)}) are"
        message = f"{count} at {shorten(word.text)}"
        known = (node.address for node in self._topology.nodes.values() if node.address)
        self._problems.add("ADDRESS", message, word.at, "addresses: " + list_names(known))
        return None

    # ── topics ──────────────────────────────────────────────────────────────────────────────────

    def place(self, written: WrittenPlace, home: Node | None, reading: bool) -> Place | None:
        """A topic and where it is; `home` is the job's own node, or None when it is not known."""
        if not self.usable(written.topic, reading):
            return None
        topic = written.topic.text
        if written.site is not None:
            node = self.find_node(written.site)
            return Place(topic, self._visible_name(node, written, home)) if node else None
        if written.broker is not None:
            return self.at_broker(topic, written.broker, home)
        if home is None:
            return None
        at_home = self._topology.reads_at(home) if reading else self._topology.writes_at(home)
        return Place(topic, at_home)

    def at_broker(self, topic: str, word: Word, home: Node | None) -> Place | None:
        names = self._topology.at_broker(word.text)
        if names:
            node = self._choice(names, word, home)
            return Place(topic, node) if node else None
        address = self._address(word)
        if address is None or address in self._foreign:
            return Place(topic, broker=address) if address else None
        message = f"{shorten(word.text)} is no node's broker"
        known = {node.broker for node in self._topology.nodes.values() if node.broker}
        hint = f"brokers: {list_names(known)}; list it under brokers: when it is none of ours"
        self._problems.add("BROKER", message, word.at, hint)
        return None

    def usable(self, topic: Word, reading: bool) -> bool:
        wrong = wrong_job_topic(topic.text, reading)
        if wrong:
            self._problems.add("TOPIC", wrong[0], topic.at, wrong[1])
        return wrong is None

    def _visible_name(self, node: Node, written: WrittenPlace, home: Node | None) -> str:
        """A gateway has topics of its own for its own jobs, and where it has a broker."""
        own = home is not None and node.name == home.name
        stands = written.forwarded or (not node.broker and not own)
        return node.site if node.kind == GATEWAY and node.site and stands else node.name

    def _choice(self, names: tuple[str, ...], word: Word, home: Node | None) -> str | None:
        """Of several nodes at one broker: the job's own, else the only site."""
        if home is not None and home.name in names:
            return home.name
        sites = [name for name in names if self._topology.nodes[name].kind == SITE]
        if len(sites) == 1 or len(names) == 1:
            return (sites or list(names))[0]
        message = f"{shorten(word.text)} is the broker of {list_names(names)}"
        self._problems.add("BROKER", message, word.at, "write site instead of a broker's address")
        return None

    def _address(self, word: Word) -> str | None:
        address = broker_address(word.text)
        if address is None:
            message = f"{shorten(word.text)!r} is no broker's address"
            self._problems.add("BROKER", message, word.at, "for example mqtt://127.0.0.1:1883")
        return address
