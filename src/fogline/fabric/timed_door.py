"""Requests with an end: an answer that never stops coming is no answer."""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
from collections.abc import Mapping

from fogline.fabric.http import Door, Patience


class TimedDoor(Door):
    """A door that waits so long for the whole of an answer, not for each piece of it."""

    def __init__(self, url: str, token: str, patience: Patience) -> None:
        super().__init__(url, token, patience)
        self._seconds = patience.answer
        self._busy: set[socket.socket] = set()
        self._ended = False

    def close(self) -> None:
        """Ends what is being asked, too."""
        self._ended = True
        for connected in list(self._busy):
            _cut(connected)
        super().close()

    def _exchange(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        target: str,
        body: bytes | None,
        headers: Mapping[str, str],
    ) -> bytes:
        connected = connection.sock
        timer = threading.Timer(self._seconds, _cut, [connected])
        timer.daemon = True
        self._busy.add(connected)
        timer.start()
        try:
            if self._ended:
                raise ConnectionAbortedError("nobody waits for it any more")
            return super()._exchange(connection, method, target, body, headers)
        finally:
            timer.cancel()
            self._busy.discard(connected)


def _cut(connected: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connected.shutdown(socket.SHUT_RDWR)
