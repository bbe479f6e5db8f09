"""`fogline gateway`: one gateway, or a process with many, until it is stopped."""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path

from fogline.broker.login import without_login
from fogline.common.errors import FoglineError
from fogline.common.process.garbage_collection import leave_what_is_there
from fogline.gateway.runtime.config import GatewayConfig, read_config
from fogline.gateway.runtime.control import connect_gateways
from fogline.gateway.runtime.gateway import Gateway
from fogline.gateway.runtime.host import Host


def run_gateway(path: Path) -> None:
    """Runs until SIGTERM or Ctrl-C; then ends everything in order."""
    config = read_config(path)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    if config.gateways > 1:
        _run_many(config, stop)
    else:
        _run_one(config, stop)


def _run_one(config: GatewayConfig, stop: threading.Event) -> None:
    gateway = Gateway(config)
    gateway.start()
    try:
        node = connect_gateways([gateway], config.control) if config.control else None
        if node is not None:
            node.start()
        shown = without_login(gateway.broker_url)
        _print_line(f"gateway {config.gateway}: devices connect to {shown}")
        stop.wait()
        _print_line("stopping")
        if node is not None:
            node.close()
    finally:
        gateway.stop()


def _run_many(config: GatewayConfig, stop: threading.Event) -> None:
    host = Host(config)
    try:
        host.start()
        leave_what_is_there()
        _print_line(f"{config.gateways} gateways, {host.gateways[0].config.gateway} and so on")
        stop.wait()
        _print_line("stopping")
    finally:
        host.stop()


def _print_line(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    """`python -m fogline.gateway FILE`: the same without the command line's other commands."""
    if len(sys.argv) != 2:
        sys.exit("usage: python -m fogline.gateway CONFIG")
    try:
        run_gateway(Path(sys.argv[1]))
    except FoglineError as error:
        sys.exit(f"gateway: {error}")
