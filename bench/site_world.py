"""The live site that is measured: a process of its own, as `fogline agent` runs it."""

from __future__ import annotations

import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.agent.kit import AgentProcess

__all__ = ["SENSORS", "STREAM", "AgentProcess", "end_on_request", "site"]

SENSORS = 788
STREAM = (
    's = STREAM FROM mqtt(topic="s/+", format="json", time="t", lateness="200 ms", '
    'schema="sensor string, x double");\n'
)


@contextmanager
def site(queries: dict[str, str], more: str = "") -> Iterator[AgentProcess]:
    """`more` is further configuration."""
    with tempfile.TemporaryDirectory(prefix="fogline-bench-") as folder:
        agent = AgentProcess(Path(folder), queries, more)
        agent.start()
        try:
            agent.wait_healthy()
            yield agent
        finally:
            agent.end()


def end_on_request() -> None:
    """A run that is asked to end takes its site with it."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
