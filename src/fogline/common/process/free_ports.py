"""Ports that nobody listens on, for processes that are given theirs before they start.

They are below those that Linux gives to outgoing connections: one of these may belong to a
connection by the time somebody listens on it. The last ports that a process got stay
reserved, by a UDP socket of the same number, which nobody minds who listens for TCP.
"""

from __future__ import annotations

import secrets
import socket
from collections import deque

from fogline.common.errors import SetupError

_FIRST, _COUNT = 20_000, 12_000
_TRIES = 200
_KEPT = 64  # a reservation is an open file, and select (paho) knows only the first 1,024 of these
_reserved: deque[socket.socket] = deque()


def free_port(host: str = "127.0.0.1") -> int:
    """A port that nobody else gets who asks for one here, until many more were asked for."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for _ in range(_TRIES):
        port = _FIRST + secrets.randbelow(_COUNT)
        reservation = socket.socket(family, socket.SOCK_DGRAM)
        with socket.socket(family) as probe:
            try:
                reservation.bind((host, port))
                probe.bind((host, port))
            except OSError:
                reservation.close()
                continue
        _reserved.append(reservation)
        if len(_reserved) > _KEPT:
            _reserved.popleft().close()
        return port
    raise SetupError(f"no free port between {_FIRST} and {_FIRST + _COUNT}", "close something")
