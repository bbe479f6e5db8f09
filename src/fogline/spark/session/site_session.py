"""Spark settings of a site: fair scheduling by SALIENCE, and real-time mode."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from xml.sax.saxutils import quoteattr

_FRUGAL = (
    "-Xms64m -XX:MinHeapFreeRatio=10 -XX:MaxHeapFreeRatio=25 -XX:G1PeriodicGCInterval=30000 "
    "-XX:ReservedCodeCacheSize=160m -XX:-UsePerfData"
)
"""A site may be a small machine: what an idle engine does not need goes back to the system."""

_BROADCAST_BLOCK = "128k"
"""Spark allocates a whole block to send tasks a few kilobytes, twice a batch. In a small heap its
usual 4 MB each start another search for garbage in all of it."""

_SHUFFLE_WAIT_MS = 3
"""How long a row may wait for others on its way between two stages in real time."""


_HIGHEST_SALIENCE = 100
"""Jobs come and go while Spark runs, so there are pools for all; higher ones share the last."""


def pool_name(salience: int) -> str:
    return f"salience-{min(salience, _HIGHEST_SALIENCE)}"


def site_settings(folder: Path) -> dict[str, str]:
    """Writes the pools beside the jobs; a pool's share of the cores grows with its salience."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "pools.xml"
    file.write_text(pools_xml(range(_HIGHEST_SALIENCE + 1)), encoding="utf-8")
    return {
        "spark.driver.defaultJavaOptions": _FRUGAL,
        "spark.scheduler.mode": "FAIR",
        "spark.scheduler.allocation.file": file.as_uri(),
        "spark.sql.streaming.realTimeMode.allowlistCheck": "false",
        "spark.sql.streaming.realTimeMode.asyncProgressTrackingByDefault.enabled": "false",
        "spark.shuffle.streaming.networkBufferMaxWaitTimeMs": str(_SHUFFLE_WAIT_MS),
        "spark.sql.streaming.numRecentProgressUpdates": "5",
        "spark.broadcast.blockSize": _BROADCAST_BLOCK,
        "spark.sql.ui.explainMode": "simple",
    }


def pools_xml(saliences: Iterable[int]) -> str:
    pools = "".join(
        f"<pool name={quoteattr(pool_name(s))}><schedulingMode>FIFO</schedulingMode>"
        f"<weight>{max(1, s)}</weight><minShare>0</minShare></pool>"
        for s in sorted(set(saliences))
    )
    return f'<?xml version="1.0"?><allocations>{pools}</allocations>\n'
