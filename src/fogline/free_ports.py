"""Ports that nobody listens on, for processes that are told theirs before they start.

They are below those that Linux gives to outgoing connections: one of these may belong to a
connection by the time somebody wants to listen on it.
"""

from __future__ import annotations

import secrets
import socket

from fogline.errors import SetupError

_FIRST, _COUNT = 20_000, 12_000
_TRIES = 200


def free_port(host: str = "127.0.0.1") -> int:
    """One by chance, so that two who ask at a time hardly get the same."""
    for _ in range(_TRIES):
        port = _FIRST + secrets.randbelow(_COUNT)
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
            try:
                probe.bind((host, port))
            except OSError:
                continue
            return port
    raise SetupError(f"no free port between {_FIRST} and {_FIRST + _COUNT}", "close something")
