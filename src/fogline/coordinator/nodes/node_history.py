"""Who has failed and who was restarted, from what the control loop sees. No I/O and no clock.

A node has *failed* when its last will came, when it fell silent, or when another start of its
process is there and the one before never said good-bye. It was *restarted* when another start of
its process is there, whatever ended the one before. A node that says good-bye has not failed.

What is seen of nodes comes by way of the broker, so the broker's own failures must not count as
theirs. Nothing counts while there is no connection. What is seen shortly before a connection is
lost, or soon after there is one, is in doubt: it counts if the node stays offline although it can
be heard, or comes back as another start; not if the same start is simply there again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from fogline.model.nodes import OFFLINE, SILENT, NodeView

PRESENT, FAILED, LEFT, FORGOTTEN = "present", "failed", "left", "forgotten"
FAIL, RESTART = "fail", "restart"

PAUSE_SECONDS = 5.0
"""Who does not look for so long has not listened."""
SURE_SECONDS = 3.0
"""What is seen counts when the connection stands so much longer."""
SETTLE_SECONDS = 30.0
"""After a new connection every node that is there has been heard by then."""
MOST_STARTS = 8

WILL = "its connection broke without a good-bye"
SILENCE = "it fell silent"
UNHEARD = "it was not there any more"
REPLACED = "it came up again without having said good-bye"


@dataclass(frozen=True, slots=True)
class KnownNode:
    """What is remembered of a node from one look to the next, and over a restart of ours."""

    first: float
    instance: str
    state: str
    """PRESENT, FAILED (and counted), LEFT (with a good-bye) or FORGOTTEN."""


@dataclass(frozen=True, slots=True)
class Happened:
    """A failure or a restart."""

    kind: str
    at: float
    why: str


@dataclass(frozen=True, slots=True)
class NodeChange:
    """A node as it is known from now on, and what has happened to it."""

    node: str
    known: KnownNode
    happened: tuple[Happened, ...] = ()


@dataclass(frozen=True, slots=True)
class _Doubt:
    """A failure that may yet turn out to be none."""

    at: float
    why: str
    shaky: bool
    """The broker may be to blame."""


class Watch:
    """Views in, changes out. Not for several threads at once."""

    def __init__(self, known: Mapping[str, KnownNode]) -> None:
        self._known = dict(known)
        self._doubts: dict[str, _Doubt] = {}
        self._starts: dict[str, deque[str]] = {}
        self._hearing: float | None = None
        self._looked: float | None = None

    @property
    def known_nodes(self) -> Mapping[str, KnownNode]:
        return self._known

    def forget(self, name: str) -> None:
        """The node is new when it is seen again."""
        self._doubts.pop(name, None)
        self._starts.pop(name, None)
        if name in self._known:
            self._known[name] = replace(self._known[name], state=FORGOTTEN)

    def look(
        self, views: Mapping[str, NodeView], connected: bool, now: float
    ) -> tuple[NodeChange, ...]:
        """What is new since the last look; `connected`: whether nodes can be heard at all."""
        self._listen(connected, now)
        if not connected:
            return ()
        found = [*self._note_views(views, now)]
        for name, known in self._known.items():
            if name not in views and known.state == PRESENT:
                self._doubts.setdefault(name, _Doubt(now, UNHEARD, shaky=True))
        return (*found, *self._settle_doubts(views, now))

    def _listen(self, connected: bool, now: float) -> None:
        slept = self._looked is not None and not 0 <= now - self._looked <= PAUSE_SECONDS
        self._looked = now
        if connected and not slept and self._hearing is not None:
            return
        self._hearing = now if connected else None
        self._doubts = {name: replace(d, shaky=True) for name, d in self._doubts.items()}

    def _note_views(self, views: Mapping[str, NodeView], now: float) -> Iterator[NodeChange]:
        for name, view in views.items():
            before = self._known.get(name)
            if before is not None and self._is_as_before(name, before, view):
                continue
            if before is None or before.state == FORGOTTEN:
                state = PRESENT if view.state != OFFLINE else LEFT if view.clean else FAILED
                change = NodeChange(name, KnownNode(now, view.instance, state))
            elif view.instance and before.instance and view.instance != before.instance:
                change = self._other_start(name, before, view, now)
            else:
                change = NodeChange(name, self._same_start(name, before, view, now))
            self._known[name] = change.known
            if change.known != before:
                yield change

    def _is_as_before(self, name: str, before: KnownNode, view: NodeView) -> bool:
        """What most nodes are most of the time."""
        present = view.online and before.state == PRESENT and view.instance == before.instance
        return present and name not in self._doubts

    def _same_start(self, name: str, before: KnownNode, view: NodeView, now: float) -> KnownNode:
        known = replace(before, instance=view.instance or before.instance)
        if view.state == OFFLINE and view.clean:
            self._doubts.pop(name, None)
            return replace(known, state=LEFT)
        if view.online:
            if name in self._doubts and self._doubts[name].shaky:
                del self._doubts[name]
            return replace(known, state=PRESENT)
        if before.state == PRESENT:
            self._doubt(name, SILENCE if view.state == SILENT else WILL, now)
        return known

    def _other_start(self, name: str, before: KnownNode, view: NodeView, now: float) -> NodeChange:
        state = LEFT if view.state == OFFLINE and view.clean else PRESENT
        known = KnownNode(before.first, view.instance, state)
        starts = self._starts.setdefault(name, deque(maxlen=MOST_STARTS))
        if before.instance not in starts:
            starts.append(before.instance)
        if view.instance in starts:
            # Two processes of one name speak in turn: nobody was restarted.
            return NodeChange(name, known)
        doubt = self._doubts.pop(name, None)
        happened = [Happened(RESTART, now, "")]
        if before.state == PRESENT:
            fail = Happened(FAIL, doubt.at, doubt.why) if doubt else Happened(FAIL, now, REPLACED)
            happened.insert(0, fail)
        return NodeChange(name, known, tuple(happened))

    def _doubt(self, name: str, why: str, now: float) -> None:
        assert self._hearing is not None
        if name not in self._doubts:
            shaky = now - self._hearing < SETTLE_SECONDS
            self._doubts[name] = _Doubt(now, why, shaky)

    def _settle_doubts(self, views: Mapping[str, NodeView], now: float) -> Iterator[NodeChange]:
        """Doubts that are none any more. One that is not shaky counts even if the node is back."""
        assert self._hearing is not None
        for name, doubt in list(self._doubts.items()):
            wait = SETTLE_SECONDS if doubt.shaky else SURE_SECONDS
            if now >= max(doubt.at, self._hearing) + wait:
                del self._doubts[name]
                view = views.get(name)
                state = PRESENT if view is not None and view.online else FAILED
                self._known[name] = replace(self._known[name], state=state)
                happened = (Happened(FAIL, doubt.at, doubt.why),)
                yield NodeChange(name, self._known[name], happened)
