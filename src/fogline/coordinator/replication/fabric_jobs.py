"""Which stored values the running queries read: of which metrics, of which nodes, how many."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from fogline.common.errors import QueryError
from fogline.coordinator.nodes.store_reports import Metrics, Report, matches
from fogline.language.parser import parse
from fogline.model.jobs import Job, Query
from fogline.model.question import METRIC, NODE, read_pattern
from fogline.plan.analysis.build import plan_text
from fogline.plan.analysis.scope import SCALED
from fogline.plan.expressions import Aggregate
from fogline.plan.operators import Scan, walk_plan
from fogline.plan.rules.shared import map_aggregates

FABRIC = "storageFabric"


@dataclass(frozen=True, slots=True)
class FabricStream:
    """A stream over stored values: which metrics of which nodes; None means all."""

    name: str
    metrics: Metrics = None
    nodes: Metrics = None
    fraction: float = 1.0
    """What the query samples it down to: no more is sent."""
    reducible: bool = False
    """Whether even less may be sent: it is sampled, and no result is divided by its fraction."""

    def reads(self, origin: str, report: Report) -> bool:
        if self.nodes is not None and not any(matches(node, origin) for node in self.nodes):
            return False
        return report.has(self.metrics)


@dataclass(frozen=True, slots=True)
class FabricJob:
    """A running query over stored values, and the node it runs at."""

    name: str
    node: str
    streams: tuple[FabricStream, ...]


def fabric_job(job: Job, node: str) -> FabricJob | None:
    """None for a job that does not run or reads no stored values."""
    if not job.running or not isinstance(job.work, Query):
        return None
    streams = fabric_streams(job.work.text)
    return FabricJob(job.name, node, streams) if streams else None


@lru_cache(maxsize=1024)
def fabric_streams(text: str) -> tuple[FabricStream, ...]:
    """Kept by text: every turn of the loop asks for it, and planning a query takes milliseconds."""
    if FABRIC not in text:
        return ()
    try:
        streams = parse(text).streams
    except QueryError:
        return ()
    found, (fractions, scaled) = [], _find_fractions(text)
    for stream in streams:
        if stream.provider.name == FABRIC:
            given = (stream.provider.get(METRIC), stream.provider.get(NODE))
            metrics, nodes = (None if v is None else (read_pattern(str(v)),) for v in given)
            fraction = fractions.get(stream.name, 1.0)
            reducible = fraction < 1 and stream.name not in scaled
            found.append(FabricStream(stream.name, metrics, nodes, fraction, reducible))
    return tuple(found)


def _find_fractions(text: str) -> tuple[dict[str, float], set[str]]:
    """By stream, and the streams of which results are divided by the fraction. A query with
    functions of the user's own counts as one that reads everything."""
    try:
        plan = plan_text(text)
    except QueryError:
        return {}, set()
    scaled: set[str] = set()

    def look(aggregate: Aggregate) -> Aggregate:
        if aggregate.function in SCALED:
            scaled.update(aggregate.origins)
        return aggregate

    map_aggregates(plan, look)
    scans = [op.stream for op in walk_plan(plan) if isinstance(op, Scan)]
    return {stream.name: stream.share for stream in scans}, scaled
