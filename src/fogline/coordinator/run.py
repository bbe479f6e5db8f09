"""`fogline coordinator`: in the foreground until it is told to stop."""

from __future__ import annotations

import os
import signal
import socket
import threading
from pathlib import Path

import uvicorn
from rich.console import Console

from fogline.coordinator.config import CoordinatorConfig, read_config
from fogline.coordinator.rest import make_app
from fogline.coordinator.service import Service
from fogline.coordinator.tokens import Tokens, load_tokens, own_tokens
from fogline.errors import SetupError
from fogline.private_files import write_private

STOP_SECONDS = 10


class RestServer:
    """REST on a socket of its own, in a thread: `start`, then `stop`."""

    def __init__(self, service: Service, tokens: Tokens, host: str, port: int) -> None:
        self._socket = listen(host, port)
        bound = self._socket.getsockname()[1]
        self.address = f"http://{f'[{host}]' if ':' in host else host}:{bound}"
        self._server = uvicorn.Server(
            uvicorn.Config(
                make_app(service, tokens),
                log_config=None,
                access_log=False,
                server_header=False,
                lifespan="off",
                ws="none",
                timeout_graceful_shutdown=STOP_SECONDS,
            )
        )
        self._thread = threading.Thread(
            target=self._server.run, args=([self._socket],), name="rest", daemon=True
        )

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join(STOP_SECONDS + 5)
        self._socket.close()


def listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((host, port))
        made.listen(256)
    except OSError as error:
        made.close()
        text = f"cannot listen on {host}:{port}: {error.strerror}"
        raise SetupError(text, "choose another port in the configuration") from error
    return made


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
    server = RestServer(service, tokens, config.host, config.port)
    address = config.folder / "address"
    try:
        server.start()
        write_private(address, f"{server.address}\n{os.getpid()}\n")
        console.print(f"coordinator: {server.address} (its interface: /docs)")
        console.print(f"nodes connect to the control broker at {control}")
        console.print(f"the token is in {config.tokens_file or config.folder / 'token'}")
        stop.wait()
        console.print("stopping")
    finally:
        address.unlink(missing_ok=True)
        server.stop()
