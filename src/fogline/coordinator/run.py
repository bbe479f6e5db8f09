"""`fogline coordinator`: in the foreground until it is stopped."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

from rich.console import Console

from fogline.common.http.server import Server
from fogline.common.private_files import write_private
from fogline.common.process.garbage_collection import leave_what_is_there
from fogline.coordinator.api.rest import make_app
from fogline.coordinator.api.service import Service
from fogline.coordinator.api.tokens import load_tokens, own_tokens
from fogline.coordinator.config import CoordinatorConfig, read_config


def run_coordinator(path: Path | None) -> None:
    """Runs until SIGTERM or Ctrl-C; then ends everything in order."""
    from fogline.coordinator.wiring import Coordinator

    config = read_config(path)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    coordinator = Coordinator(config)
    try:
        coordinator.start()
        _serve(config, coordinator.service, coordinator.control_address, stop)
    finally:
        coordinator.stop()


def _serve(
    config: CoordinatorConfig, service: Service, control: str, stop: threading.Event
) -> None:
    console = Console(stderr=True, highlight=False)
    tokens = load_tokens(config.tokens_file) if config.tokens_file else own_tokens(config.folder)
    server = Server(config.host, config.port, config.hosts)
    address = config.folder / "address"
    try:
        server.start(make_app(service, tokens))
        write_private(address, f"{server.address}\n{os.getpid()}\n")
        console.print(f"coordinator: {server.address} (its interface: /docs)")
        console.print(f"nodes connect to the control broker at {control}")
        console.print(f"the token is in {config.tokens_file or config.folder / 'token'}")
        leave_what_is_there()
        stop.wait()
        console.print("stopping")
    finally:
        address.unlink(missing_ok=True)
        server.stop()
