"""A cluster that fails for thousands of steps: are unstable nodes found, and does data survive?

In every step each node that is up stores one unit of its own data, and fails with its own
probability; it is back after some steps, and some failures take its disk with them. Rounds of
`choose` copy data in between. The same seed gives the same failures whether data is copied or not,
so that two runs differ by the copies alone.

What a node holds of an origin is a set of blocks, one for each time between two rounds, kept as the
bits of one integer: copying is "or", and what is left after a loss can be counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from fogline.adapt.replication.stability import (
    NodeHistory,
    Replica,
    Replicas,
    RoundLimits,
    choose,
    instability,
)
from fogline.common.errors import DataError


@dataclass(frozen=True, slots=True)
class Scenario:
    """The settings of one experiment; a rate is the probability of a failure in one step."""

    rates: tuple[float, ...]
    steps: int = 5000
    step_seconds: float = 300.0
    down_steps: int = 24
    disk_loss: float = 0.0
    """The fraction of failures after which the node comes back empty."""
    round_steps: int = 48
    limits: RoundLimits = field(default_factory=RoundLimits)
    replicate: bool = True
    follow: bool = False
    """Whether existing replicas are brought up to date in every round, or stay as they were."""

    def __post_init__(self) -> None:
        if not all(0 <= rate <= 1 for rate in (*self.rates, self.disk_loss)) or not self.rates:
            raise DataError("a probability lies between 0 and 1, and there is at least one node")
        if min(self.steps, self.step_seconds, self.down_steps, self.round_steps) <= 0:
            raise DataError("steps, their length, and the times in steps are over 0")


@dataclass(frozen=True, slots=True)
class StabilityOutcome:
    """What became of a scenario."""

    histories: tuple[NodeHistory, ...]
    scores: tuple[tuple[float, ...], ...]
    """The instability of every node, at every round."""
    chosen: tuple[int, ...]
    """How often each node's data was chosen to be copied."""
    requested: tuple[int, ...]
    """For each node: the blocks it had stored until then, summed over all steps it was down."""
    reached: tuple[int, ...]
    """Of these, the ones that could be read elsewhere."""
    survived: float
    """The fraction of all blocks that some node still holds at the end."""
    copied: int
    """Blocks that were sent."""

    def reachable(self, nodes: Sequence[int] | None = None) -> float:
        """The fraction of the data of these nodes (of all) that could be read while they were
        down."""
        of = range(len(self.requested)) if nodes is None else nodes
        return sum(self.reached[n] for n in of) / max(1, sum(self.requested[n] for n in of))


def zipf_rates(nodes: int, seed: int, least: float = 0.0001, exponent: float = 2.0) -> list[float]:
    """Most nodes near `least`, a few many times that: `least` · a Zipf number, at most 1 %."""
    drawn = np.random.default_rng(seed).zipf(exponent, nodes)
    return [float(min(0.01, least * factor)) for factor in sorted(drawn, reverse=True)]


def document_rates() -> tuple[float, ...]:
    """50 Zipf rates like those that the document describes: three nodes between 0.27 % and 0.86 %,
    most near 0.01 %. Of the eight draws in 20,000 that are closest to both ends it is the one with
    the widest gap behind the third."""
    return tuple(zipf_rates(50, seed=11_823))


def simulate(scenario: Scenario, seed: int) -> StabilityOutcome:
    random = np.random.default_rng(seed)
    shape = (scenario.steps, len(scenario.rates))
    fails = random.random(shape) < np.array(scenario.rates)
    losses = random.random(shape) < scenario.disk_loss
    cluster = _Cluster(scenario)
    for step in range(scenario.steps):
        cluster.step(step, fails[step], losses[step])
    return cluster.outcome()


class _Cluster:
    def __init__(self, scenario: Scenario) -> None:
        count = len(scenario.rates)
        self.scenario = scenario
        self.fails: list[list[float]] = [[] for _ in range(count)]
        self.restarts: list[list[float]] = [[] for _ in range(count)]
        self.back_at = [0] * count
        self.blocks = [[0] * count for _ in range(count)]
        """blocks[holder][origin], as bits."""
        self.stored = [0] * count
        self.chosen: dict[str, float] = {}
        self.times_chosen = [0] * count
        self.scores: list[tuple[float, ...]] = []
        self.requested = [0] * count
        self.reached = [0] * count
        self.copied = 0

    def step(self, step: int, fails: NDArray[np.bool_], losses: NDArray[np.bool_]) -> None:
        now = (step + 1) * self.scenario.step_seconds
        for node, back in enumerate(self.back_at):
            if step == back and step:
                self.restarts[node].append(now)
            if step >= back and fails[node]:
                self._fail(node, step, now, bool(losses[node]))
        self._store(step)
        if (step + 1) % self.scenario.round_steps == 0:
            self._round(step, now)
        self._look(step)

    def _fail(self, node: int, step: int, now: float, loses: bool) -> None:
        self.fails[node].append(now)
        self.back_at[node] = step + self.scenario.down_steps
        if loses:
            self.blocks[node] = [0] * len(self.blocks)

    def _store(self, step: int) -> None:
        block = 1 << (step // self.scenario.round_steps)
        for node in self._up(step):
            self.blocks[node][node] |= block
            self.stored[node] |= block

    def _round(self, step: int, now: float) -> None:
        histories = self.histories()
        self.scores.append(tuple(instability(history, now) for history in histories))
        if not self.scenario.replicate:
            return
        up = self._up(step)
        if self.scenario.follow:
            for origin in up:
                for holder in up:
                    if holder != origin and self.blocks[holder][origin]:
                        self._copy(origin, holder)
        named = {str(node): history for node, history in enumerate(histories)}
        for placed in choose(named, self._replicas(step), self.scenario.limits, now):
            self._copy(int(placed.origin), int(placed.destination))
            self.chosen[placed.origin] = now
            self.times_chosen[int(placed.origin)] += 1

    def _copy(self, origin: int, holder: int) -> None:
        missing = self.blocks[origin][origin] & ~self.blocks[holder][origin]
        self.blocks[holder][origin] |= missing
        self.copied += missing.bit_count()

    def _replicas(self, step: int) -> Replicas:
        """A block counts as one byte; of a copy counts what the origin still has itself."""
        copies = [
            Replica(str(origin), str(holder), (bits & self.blocks[origin][origin]).bit_count())
            for holder, held in enumerate(self.blocks)
            for origin, bits in enumerate(held)
            if bits and origin != holder
        ]
        sizes = {str(n): held[n].bit_count() for n, held in enumerate(self.blocks)}
        offline = frozenset(str(n) for n, back in enumerate(self.back_at) if step < back)
        return Replicas(sizes, tuple(copies), dict(self.chosen), offline)

    def _look(self, step: int) -> None:
        up = self._up(step)
        for node, back in enumerate(self.back_at):
            if step < back:
                self.requested[node] += self.stored[node].bit_count()
                self.reached[node] += self._reachable_blocks(node, up).bit_count()

    def _reachable_blocks(self, origin: int, holders: Sequence[int]) -> int:
        bits = 0
        for holder in holders:
            bits |= self.blocks[holder][origin]
        return bits

    def _up(self, step: int) -> list[int]:
        return [node for node, back in enumerate(self.back_at) if step >= back]

    def histories(self) -> tuple[NodeHistory, ...]:
        return tuple(
            NodeHistory(0.0, tuple(fails), tuple(restarts))
            for fails, restarts in zip(self.fails, self.restarts, strict=True)
        )

    def outcome(self) -> StabilityOutcome:
        everyone = range(len(self.blocks))
        left = sum(self._reachable_blocks(node, everyone).bit_count() for node in everyone)
        return StabilityOutcome(
            histories=self.histories(),
            scores=tuple(self.scores),
            chosen=tuple(self.times_chosen),
            requested=tuple(self.requested),
            reached=tuple(self.reached),
            survived=left / max(1, sum(bits.bit_count() for bits in self.stored)),
            copied=self.copied,
        )
