"""The second step in force: how much of each source is sent to a query that samples. No I/O.

The first step has said where each source is read. With `replicas: sampling: true` the second one,
`fogline.adapt.replication.query_placement.sample`, lowers L at the same F: the sample fractions q_i
of the sources that are far go down, with a mean of at least Q. Nodes then send q_i of what `SAMPLE`
leaves.

Only queries take part that sample all of their streams, so that their authors have said that some
of the values will do, and of which no result is divided by the fraction: an average stays one when
less is sent, a count would not. Fractions stay as they are until others bring L or F down by a
fifth.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping

from fogline.adapt.replication.query import evaluate
from fogline.adapt.replication.query_placement import sample
from fogline.coordinator.replication.config import ReplicaConfig
from fogline.coordinator.replication.fabric_jobs import FabricJob
from fogline.coordinator.replication.queries import GAIN, QueryReads, reading
from fogline.coordinator.replication.stability import Situation
from fogline.model.sample_fractions import SampleFractions

_CLOSE = 1e-6


def find_sample_fractions(
    situation: Situation,
    jobs: Iterable[FabricJob],
    config: ReplicaConfig,
    before: SampleFractions,
    clock: Callable[[], float] = time.monotonic,
) -> SampleFractions:
    """By job, stream and origin, where less is sent than the query asks for."""
    if not config.sampling:
        return {}
    able = [job for job in jobs if all(stream.reducible for stream in job.streams)]
    deadline = clock() + config.solve_seconds
    found = {}
    for place, job in enumerate(sorted(able, key=lambda job: job.name)):
        now = reading(situation, job, config)
        seconds = max(deadline - clock(), 0.0) / (len(able) - place)
        if now is not None and (fraction := _job(now, before.get(job.name, {}), seconds)):
            found[job.name] = fraction
    return found


def _job(
    now: QueryReads, before: Mapping[str, Mapping[str, float]], seconds: float
) -> dict[str, dict[str, float]]:
    whole = evaluate(now.query, now.nodes)
    best = sample(now.query, whole, seconds)
    old = _as_quality(now, before)
    quality = old if _is_kept(now, old, best.latency) else best.quality
    fractions: dict[str, dict[str, float]] = {}
    for name, q in quality.items():
        origin, stream = now.sources[name]
        if q < 1:
            fractions.setdefault(stream.name, {})[origin] = q * stream.fraction
    return fractions


def _as_quality(now: QueryReads, before: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """The q that are in force; 1 for what is read anew."""
    found = {}
    for name, (origin, stream) in now.sources.items():
        fraction = before.get(stream.name, {}).get(origin, stream.fraction)
        found[name] = min(fraction / stream.fraction, 1.0)
    return {source.name: found[source.name] for source in now.query.sources}


def _is_kept(now: QueryReads, old: Mapping[str, float], latency: float) -> bool:
    enough = math.fsum(old.values()) >= now.query.least_quality * len(old) - _CLOSE
    if not enough:
        return False
    present = evaluate(now.query, now.nodes, old)
    least = evaluate(now.query, now.nodes)
    good = least.objective >= GAIN * present.objective
    return good and latency >= GAIN * present.latency
