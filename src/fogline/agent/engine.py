"""The engine process: one Spark session that runs the jobs of a site.

It ends when Spark's own process is gone; the agent starts it again, and every job goes on from its
checkpoint.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fogline import settings
from fogline.agent.children import Parent, tell
from fogline.agent.rejects import RejectMover
from fogline.errors import FoglineError
from fogline.log import LogWriter, SiteLog, set_position
from fogline.plan.query_file import load_query
from fogline.plan.rules import optimise

if TYPE_CHECKING:
    from fogline.spark.site_job import JobSpec, SiteJob

_TICK_SECONDS = 0.5
_ADAPTIVE_SOURCE = 2
"""The one who writes the logs of insights that adapt their sample; any number but 0 will do."""


def main() -> None:
    parent = Parent()
    config, gone = parent.config, parent.gone
    try:
        Engine(config).run(gone)
    except FoglineError as error:
        sys.exit(f"engine: {error}")


class Engine:
    def __init__(self, config: dict[str, Any]) -> None:
        self._config = config
        self._logs = SiteLog(Path(config["logs"]), min_free_bytes=config["min_free_bytes"])
        self._writers: dict[str, LogWriter] = {}
        self._rejected: dict[str, int] = {}

    def run(self, gone: threading.Event) -> None:
        from fogline.spark.session import engine_alive, open_session
        from fogline.spark.site_job import SiteJob
        from fogline.spark.site_session import site_settings

        tell({"state": "starting Spark"})
        specs = [self._spec(job) for job in self._config["jobs"]]
        engine = with_slots(self._config["engine"], len(specs))
        own = replace(settings.load(), engine=engine, memory=self._config["memory"])
        pools = site_settings([spec.salience for spec in specs], self._folder)
        spark = open_session(own, self._config["site"], pools)
        movers = {s.name: RejectMover(s.name, s.rejects, self._logs) for s in specs}
        with engine_alive():
            jobs = [SiteJob(spark, spec) for spec in specs]
            while not gone.is_set():
                self._tick(jobs, movers)
                gone.wait(_TICK_SECONDS)
            for job in jobs:
                job.stop()
            spark.stop()

    @property
    def _folder(self) -> Path:
        return Path(self._config["folder"])

    def _tick(self, jobs: Sequence[SiteJob], movers: dict[str, RejectMover]) -> None:
        for job in jobs:
            job.keep_running()
            self._rejected[job.name] = self._rejected.get(job.name, 0) + movers[job.name].move()
            for log, position in job.needed().items():
                folder = self._logs.folder(log)
                if folder.exists():
                    set_position(folder, f"job {job.name}", position)
        statuses = [job.status() for job in jobs]
        states = [s.state for s in statuses]
        state = next((s for s in ("failed", "starting") if s in states), "running")
        tell({"state": state, "jobs": [asdict(s) | {"state": s.state} for s in statuses]})

    def _spec(self, job: dict[str, Any]) -> JobSpec:
        from fogline.spark.functions import spark_functions
        from fogline.spark.site_job import JobSpec

        loaded = load_query(Path(job["query"]), settings.load())
        plan, _ = optimise(loaded.plan)
        return JobSpec(
            name=job["name"],
            plan=plan,
            text=loaded.text,
            folder=self._folder / "jobs" / job["name"],
            logs=self._logs.root,
            log_folder=self._logs.folder,
            append=self._append,
            functions=spark_functions(loaded.functions),
            trigger_ms=self._config["trigger_ms"],
        )

    def _append(self, log: str, epoch: int, records: Sequence[bytes]) -> None:
        if log not in self._writers:
            self._writers[log] = self._logs.writer(log)
        writer = self._writers[log]
        if writer.last_epoch(_ADAPTIVE_SOURCE) < epoch:
            writer.append([(log, record) for record in records], _ADAPTIVE_SOURCE, epoch)
            writer.commit()


def with_slots(engine: str, jobs: int) -> str:
    """A local engine with room for real time: such a query holds its slots while it waits."""
    return f"local[{(os.cpu_count() or 1) + 8 * jobs}]" if engine == "local[*]" else engine


if __name__ == "__main__":
    main()
