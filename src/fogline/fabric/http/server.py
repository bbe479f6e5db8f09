"""A node's REST interface listens at the same port as the last time."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path

from fogline.common.errors import SetupError
from fogline.common.http.server import Server
from fogline.common.state_files import StateDamaged, read_state, set_aside, write_state


def listen_again(host: str, port: int, memory: Path, hosts: Iterable[str] = ()) -> Server:
    """On this port; for 0 on the one of the last time if it is free, else on any free one."""
    if port:
        return Server(host, port, hosts)
    server = _as_before(host, memory, hosts) or Server(host, 0, hosts)
    with contextlib.suppress(OSError):
        write_state(memory, f"{server.port}\n")
    return server


def _as_before(host: str, memory: Path, hosts: Iterable[str]) -> Server | None:
    try:
        port = int(read_state(memory))
        return Server(host, port, hosts) if 0 < port < 1 << 16 else None
    except (ValueError, StateDamaged):
        with contextlib.suppress(OSError):
            set_aside(memory)
        return None
    except (OSError, SetupError):
        return None
