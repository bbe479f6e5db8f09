"""The HTTP server of coordinator, store and agent: an application on a socket, in a thread.

It answers only requests that are meant for it, see `hosts`.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import uvicorn
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from fogline.common.errors import SetupError
from fogline.common.http.hosts import Hosts, Refusal
from fogline.common.state_files import StateDamaged, read_state, set_aside, write_state

STOP_SECONDS = 5
_TICK_SECONDS = 1.0
_KEEP_SECONDS = 30
"""Who asks every few seconds need not connect anew."""


class _Quiet(uvicorn.Server):
    """Wakes once a second, not ten times, and at once when it is to end."""

    _loop: asyncio.AbstractEventLoop | None = None
    _ending: asyncio.Event

    async def main_loop(self) -> None:
        self._ending = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        while not await self.on_tick(0):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ending.wait(), _TICK_SECONDS)

    def end(self) -> None:
        self.should_exit = True
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # it has ended by itself
                self._loop.call_soon_threadsafe(self._ending.set)


class _OnlyOwnHosts:
    """Asks `Hosts` before the application sees a request."""

    def __init__(self, app: ASGIApp, hosts: Hosts) -> None:
        self._app, self._hosts = app, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._refusal(scope) if scope["type"] == "http" else None
        if refusal is None:
            await self._app(scope, receive, send)
            return
        headers = {"Connection": "close"}  # nobody reads the body of the request
        reply = Response(refusal.body, refusal.status, headers, "application/json")
        await reply(scope, receive, send)

    def _refusal(self, scope: Scope) -> Refusal | None:
        hosts = [value for name, value in scope["headers"] if name == b"host"]
        origins = [value for name, value in scope["headers"] if name == b"origin"]
        arrived = str((scope.get("server") or ("",))[0])
        return self._hosts.refusal(scope["method"], scope["path"], hosts, origins, arrived)


class _Protocol(H11Protocol):
    """What is no HTTP at all, with no Host, with two, or with huge headers, is refused like
    everything else: with a line of JSON."""

    def send_400_response(self, msg: str) -> None:
        hint = "it needs one Host header, and headers of a few KiB"
        super().send_400_response(Refusal(400, "this is no HTTP request", hint).body)


class Server:
    """Listens from its construction on, answers from `start` until `stop`."""

    def __init__(self, host: str, port: int, hosts: Iterable[str] = ()) -> None:
        """`hosts`: other names and addresses it has. Raises `SetupError` when the port is taken,
        `UsageError` for a host that cannot be."""
        self._hosts = Hosts(host, hosts)
        self._socket = _listen(host, port)
        self.port: int = self._socket.getsockname()[1]
        self.address = f"http://{f'[{host}]' if ':' in host else host}:{self.port}"
        self._server: _Quiet | None = None
        self._thread: threading.Thread | None = None

    def start(self, app: Any) -> None:
        config = uvicorn.Config(
            _OnlyOwnHosts(app, self._hosts),
            loop="asyncio",
            http=_Protocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_keep_alive=_KEEP_SECONDS,
            timeout_graceful_shutdown=STOP_SECONDS,
        )
        self._server = _Quiet(config)
        self._thread = threading.Thread(
            target=self._server.run, args=([self._socket],), name="rest", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        if self._server is not None and self._thread is not None:
            self._server.end()
            self._thread.join(STOP_SECONDS + 5)
        self._socket.close()


def listen_again(host: str, port: int, memory: Path, hosts: Iterable[str] = ()) -> Server:
    """On this port; for 0 on the one of the last time if it is free, else on any free one."""
    if port:
        return Server(host, port, hosts)
    server = _listen_as_before(host, memory, hosts) or Server(host, 0, hosts)
    with contextlib.suppress(OSError):
        write_state(memory, f"{server.port}\n")
    return server


def _listen_as_before(host: str, memory: Path, hosts: Iterable[str]) -> Server | None:
    try:
        port = int(read_state(memory))
        return Server(host, port, hosts) if 0 < port < 1 << 16 else None
    except (ValueError, StateDamaged):
        with contextlib.suppress(OSError):
            set_aside(memory)
        return None
    except (OSError, SetupError):
        return None


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named, so that asyncio turns off Nagle's algorithm: small answers would wait 40 ms.
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((host, port))
        made.listen(256)
    except OSError as error:
        made.close()
        text = f"cannot listen on {host}:{port}: {error.strerror or error}"
        raise SetupError(text, "choose another port in the configuration") from error
    return made
