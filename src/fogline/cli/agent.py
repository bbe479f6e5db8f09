"""`fogline agent`: one site in the foreground until it is stopped."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

from rich.console import Console

from fogline.agent.config.site import read_config
from fogline.agent.supervisor.site import Site


def run_agent(path: Path) -> None:
    """Runs until SIGTERM or Ctrl-C; then stops everything in order."""
    site = Site(read_config(path))
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    console = Console(stderr=True, highlight=False)
    try:
        site.start()
        console.print(f"site {site.config.site}: devices connect to {site.broker_address}")
        console.print(f"health and metrics: {site.http_address}/status")
        site.run(stop)
        console.print("stopping")
    finally:
        site.stop()
