"""How stable nodes have been, and which data should therefore be copied where.

Two scores over the same history. `instability` grows with failures, with how close they follow each
other and with how recent they are; `stability` falls with failures and restarts over a life.
`choose` pairs the nodes with the highest instability with those of the highest stability.

Every function is pure: times are seconds on any one clock, and the caller says what time it is.
What a history may leave open is decided here, towards "unstable":

- Without failures the instability is 0, and such a node's data is never copied for its sake.
- Failures less than `SHORTEST_GAP` apart, and a first failure at or before the start (the clock
  went back, or the node was introduced anew), count as that far apart.
- A failure later than now counts as a new one; a life that has not begun counts as that short.
- Order does not matter: times are sorted.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from fogline.common.errors import DataError

DAY = 86_400.0
SHORTEST_GAP = 1.0
WEIGHTS = {"old": 0.5, "mid": 1.0, "new": 2.0}


@dataclass(frozen=True, slots=True)
class Past:
    """The earliest failures and restarts of a node, as the sums that the scores need of them."""

    fails: int = 0
    restarts: int = 0
    closeness: float = 0.0
    """Σ 1 / (tᵢ - tᵢ₋₁) over these failures; all of them count as `old`."""
    last: float = 0.0
    """When the last of these failures was."""


@dataclass(frozen=True, slots=True)
class NodeHistory:
    """When a node was first seen, when it failed, and when it came up again or was restarted."""

    start: float
    fails: tuple[float, ...] = ()
    restarts: tuple[float, ...] = ()
    past: Past = Past()
    """What was before the first of these."""

    def __post_init__(self) -> None:
        past = (self.past.closeness, self.past.last)
        if not all(map(math.isfinite, (self.start, *self.fails, *self.restarts, *past))):
            raise DataError("a node's history holds a time that is no number")
        object.__setattr__(self, "fails", tuple(sorted(self.fails)))
        object.__setattr__(self, "restarts", tuple(sorted(self.restarts)))

    @property
    def failures(self) -> int:
        return self.past.fails + len(self.fails)

    @property
    def gaps(self) -> tuple[float, ...]:
        """How long each of `fails` came after the one before, or after the start."""
        before = self.past.last if self.past.fails else self.start
        return tuple(later - earlier for earlier, later in pairwise((before, *self.fails)))


@dataclass(frozen=True, slots=True)
class Replica:
    """So many bytes of what `origin` produced are also at `destination`."""

    origin: str
    destination: str
    size: int
    outgoing: bool = True
    """Whether it counts towards the most replicas a node may have: those that stability made, or
    that are of everything. Some metrics near a query keep nobody's data safe."""

    def __post_init__(self) -> None:
        if self.origin == self.destination or self.size < 0:
            raise DataError(f"no replica: {self.size} bytes of {self.origin} at {self.destination}")


@dataclass(frozen=True, slots=True)
class Replicas:
    """What is stored where, so far."""

    sizes: Mapping[str, int]
    """The bytes each node produced and holds itself."""
    copies: tuple[Replica, ...] = ()
    chosen: Mapping[str, float] = field(default_factory=dict)
    """When each node's data was last chosen to be copied."""
    offline: frozenset[str] = frozenset()
    """Nodes that cannot be reached now: they neither give nor take."""
    refused: frozenset[tuple[str, str]] = frozenset()
    """Origins and destinations that somebody has refused together."""
    pieces: Mapping[str, int] = field(default_factory=dict)
    """The least bytes of a node's data that can be copied without the rest and are nowhere else
    yet; the data of nodes that are not named is copied as a whole or not at all."""

    def __post_init__(self) -> None:
        if any(size < 0 for size in self.sizes.values()):
            raise DataError("a node cannot hold less than no bytes")
        if not all(map(math.isfinite, self.chosen.values())):
            raise DataError("the time a node was last chosen is no number")
        if len({(c.origin, c.destination) for c in self.copies}) < len(self.copies):
            raise DataError("one destination holds two replicas of the same origin")

    def held_bytes(self, origin: str, destination: str) -> int:
        return sum(
            c.size for c in self.copies if (c.origin, c.destination) == (origin, destination)
        )

    def space(self, destination: str, limits: RoundLimits) -> int:
        """Bytes of replicas that a node can still take."""
        used = sum(copy.size for copy in self.copies if copy.destination == destination)
        return max(limits.capacity.get(destination, limits.otherwise) - used, 0)


@dataclass(frozen=True, slots=True)
class RoundLimits:
    """How much one round may do."""

    nodes: int = 3
    """N: at most so many origins, and at most so many destinations."""
    outgoing: int = 3
    """Once a node has so many outgoing replicas, it is not chosen any more."""
    recent: float = DAY
    """Chosen within so many seconds: not chosen again; chosen or failed: no destination."""
    most_fails: int = 1
    """With more failures in its history a node is no destination."""
    capacity: Mapping[str, int] = field(default_factory=dict)
    """Bytes of replicas a node may hold in all; for others, `otherwise`."""
    otherwise: int = 256 * 2**20

    def __post_init__(self) -> None:
        counts = (self.nodes, self.outgoing, self.most_fails, self.otherwise)
        if min((*counts, *self.capacity.values())) < 0 or not self.recent >= 0:
            raise DataError("a limit is less than nothing")


@dataclass(frozen=True, slots=True)
class Placement:
    """Copy so many bytes of `origin` to `destination`, which then holds all of it, if `whole`."""

    origin: str
    destination: str
    size: int
    completes: bool
    """Whether the destination already held a part."""
    whole: bool = True
    """False where there is space for a part only: then `size` is the space."""


def period(fail: float, now: float) -> str:
    """`old`: over a week ago; `mid`: over two days ago; else `new`."""
    age = now - fail
    return "old" if age > 7 * DAY else "mid" if age > 2 * DAY else "new"


def instability(history: NodeHistory, now: float) -> float:
    """U(x) = Σ a(tᵢ) / (tᵢ - tᵢ₋₁) over the failures tᵢ, where t₋₁ is the node's start.

    a(t) = w · (failures of this node in the same period as t), with w = 0.5 for the period `old`,
    1 for `mid`, 2 for `new`. One more failure, wherever it lies, never lowers the score. Time does
    not always lower it: a failure that ages from `new` into a `mid` with many others weighs more
    there, because a(t) counts its company.
    """
    periods = [period(fail, now) for fail in history.fails]
    counts = Counter({"old": history.past.fails}) + Counter(periods)
    return WEIGHTS["old"] * counts["old"] * history.past.closeness + sum(
        WEIGHTS[name] * counts[name] / max(gap, SHORTEST_GAP)
        for name, gap in zip(periods, history.gaps, strict=True)
    )


def stability(history: NodeHistory, now: float) -> float:
    """S(x) = -(restarts + 3 · failures) · (now - start); 0, the best, for a spotless node.

    As a product with the age, the score of two nodes with equally many failures is higher for the
    younger one.
    """
    spots = history.past.restarts + len(history.restarts) + 3 * history.failures
    return -spots * max(now - history.start, SHORTEST_GAP) if spots else 0.0


def most_stable(
    histories: Mapping[str, NodeHistory], replicas: Replicas, limits: RoundLimits, now: float
) -> list[str]:
    """Up to N nodes that may take data, the best first; of equal scores, the older node first.

    Left out: who failed more than once, and who failed or was chosen as unstable recently.
    """
    able = [
        name
        for name, history in histories.items()
        if name not in replicas.offline
        and history.failures <= limits.most_fails
        and not is_recent(replicas.chosen.get(name), limits, now)
        and not is_recent(max(history.fails, default=None), limits, now)
    ]
    able.sort(key=lambda name: (-stability(histories[name], now), histories[name].start, name))
    return able[: limits.nodes]


def choose(
    histories: Mapping[str, NodeHistory], replicas: Replicas, limits: RoundLimits, now: float
) -> tuple[Placement, ...]:
    """One round: for each unstable node, the worst first, the best destination still free.

    A destination takes the data of one node a round. It is passed over when it holds all of that
    node's data already or has no space for the rest. A node of the better half of the pool (as the
    pool was when the round began) that holds a part of the data goes before the others. A node may
    give and take in one round, since one failure long ago makes it no worse a destination; where
    only itself is left for a node, it changes places with one before it.

    Where nobody has space for all of a node's data, it goes in part to who has most space. A node
    that nobody has space for does not count among the N: it would keep the others from theirs.
    """
    if not math.isfinite(now):
        raise DataError("the time now is no number")
    if missing := histories.keys() - replicas.sizes.keys():
        raise DataError(f"it is not known how much data {min(missing)} holds")
    pool = most_stable(histories, replicas, limits, now)
    better = set(pool[: math.ceil(len(pool) / 2)])
    found: list[Placement] = []
    for origin in _in_need(histories, replicas, limits, now):
        if len(found) == limits.nodes:
            break
        fitting = [p for name in pool if (p := _offer(origin, name, replicas, limits))]
        if fitting:
            best = min(fitting, key=lambda p: _rank(p, better))
            pool.remove(best.destination)
            found.append(best)
        elif origin in pool and (changed := _change_places(found, origin, replicas, limits)):
            pool.remove(origin)
            found = changed
    return tuple(found)


def _change_places(
    found: list[Placement], origin: str, replicas: Replicas, limits: RoundLimits
) -> list[Placement] | None:
    """`origin` gets what another was to have, and that other goes to `origin`; the last first."""
    for place in reversed(range(len(found))):
        mine = _offer(origin, found[place].destination, replicas, limits)
        other = _offer(found[place].origin, origin, replicas, limits)
        if mine and other:
            return [*found[:place], other, *found[place + 1 :], mine]
    return None


def _offer(origin: str, name: str, replicas: Replicas, limits: RoundLimits) -> Placement | None:
    if origin == name or (origin, name) in replicas.refused:
        return None
    held, space = replicas.held_bytes(origin, name), replicas.space(name, limits)
    rest = replicas.sizes[origin] - held
    if 0 < rest <= space:
        return Placement(origin, name, rest, held > 0)
    piece = replicas.pieces.get(origin)
    if rest > 0 and piece is not None and 0 < piece <= space:
        return Placement(origin, name, space, held > 0, whole=False)
    return None


def _rank(placed: Placement, better: set[str]) -> tuple[bool, bool, int]:
    """Who is best comes first; of equal ones the more stable, as they are in order."""
    completes = placed.completes and placed.destination in better
    return not placed.whole, not completes, 0 if placed.whole else -placed.size


def _in_need(
    histories: Mapping[str, NodeHistory], replicas: Replicas, limits: RoundLimits, now: float
) -> list[str]:
    outgoing = Counter(copy.origin for copy in replicas.copies if copy.outgoing)
    return [
        name
        for name in _by_instability(histories, now)
        if name not in replicas.offline
        and outgoing[name] < limits.outgoing
        and not is_recent(replicas.chosen.get(name), limits, now)
    ]


def _by_instability(histories: Mapping[str, NodeHistory], now: float) -> list[str]:
    scores = {name: instability(history, now) for name, history in histories.items()}
    failed: Iterable[str] = (name for name, score in scores.items() if score > 0)
    return sorted(failed, key=lambda name: (-scores[name], name))


def is_recent(time: float | None, limits: RoundLimits, now: float) -> bool:
    """Whether it lies within what `limits` call recent; no time does not."""
    return time is not None and now - time < limits.recent
