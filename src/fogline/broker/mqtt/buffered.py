"""A socket that reads and writes in large pieces, and the MQTT client that uses it.

The client library asks its socket for single bytes and sends every packet by itself. Each of these
is a system call that also lets another thread run first; collecting them is much of the speed.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import time
from collections import deque

import paho.mqtt.client as paho
from paho.mqtt.enums import MQTTProtocolVersion

from fogline.broker.mqtt.packets import MalformedError, PacketReader, Takers

CHUNK = 1 << 16
WRITE_AHEAD = 1 << 20
CLOSE_SECONDS = 1.0
_LATER = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class BufferedSocket:
    """What is sent leaves with `flush`. What came in is read by `fill` and `next_packet`.

    The library's own reading (`recv`) sees one packet at a time, whole, and none of those that the
    reader hands on.
    """

    def __init__(self, inner: socket.socket, is_v5: bool) -> None:
        self._inner = inner
        self._reader = PacketReader(is_v5)
        self._shown = b""
        self._ended = False
        self._out: deque[bytes | bytearray] = deque()
        self._out_bytes = 0
        self._rest = memoryview(b"")
        self.error: OSError | None = None
        """Why the connection broke, where the system said so."""
        with contextlib.suppress(OSError):
            inner.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    # ── reading ──────────────────────────────────────────────────────────────────────────────────

    def fill(self) -> None:
        """Reads once what has arrived; the end of the connection is noted for `recv`."""
        try:
            data = self._inner.recv(max(CHUNK, self._reader.missing))
        except _LATER:
            return
        except OSError as error:
            self.error = error
            return
        self._ended = not data
        self._reader.feed(data)

    def next_packet(self, takers: Takers) -> bool:
        """Hands on what is not the library's; whether there is a packet, or an end, for it now."""
        try:
            self._shown = self._reader.read(takers)
        except MalformedError as error:
            self.error = OSError(str(error))
        return bool(self._shown or self.broken)

    @property
    def broken(self) -> bool:
        return self._ended or self.error is not None

    def recv(self, size: int) -> bytes:
        if self._shown:
            piece, self._shown = self._shown[:size], self._shown[size:]
            return piece
        if self.error is not None:
            raise self.error
        if self._ended:
            return b""
        raise BlockingIOError

    def pending(self) -> int:
        """Bytes that have left the system's buffers and wait here."""
        inside = self._inner.pending() if isinstance(self._inner, ssl.SSLSocket) else 0
        return len(self._shown) + inside

    # ── writing ──────────────────────────────────────────────────────────────────────────────────

    def send(self, data: bytes | bytearray) -> int:
        """Takes the whole packet, so that packets never mix."""
        if not self.takes_more:
            raise BlockingIOError
        self._out.append(data)
        self._out_bytes += len(data)
        return len(data)

    def flush(self) -> None:
        """Writes as much as the system takes; a broken connection shows in the next `recv`."""
        try:
            while self.unsent:
                if not self._rest:
                    self._rest = memoryview(b"".join(self._out))
                    self._out.clear()
                sent = self._inner.send(self._rest)
                self._rest = self._rest[sent:]
                self._out_bytes -= sent
        except _LATER:
            return
        except OSError as error:
            self.error = self.error or error

    @property
    def takes_more(self) -> bool:
        return self._out_bytes < WRITE_AHEAD

    @property
    def unsent(self) -> bool:
        return self._out_bytes > 0

    # ── the rest of a socket ─────────────────────────────────────────────────────────────────────

    def fileno(self) -> int:
        return self._inner.fileno()

    def setblocking(self, flag: bool) -> None:
        self._inner.setblocking(flag)

    def abort(self) -> None:
        """Breaks the connection; the next `fill` finds its end."""
        with contextlib.suppress(OSError):
            self._inner.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Writes the rest, then waits for the other side to end as well.

        Closing at once could take back what is still under way, acknowledgements among it.
        """
        with contextlib.suppress(OSError):
            self._inner.settimeout(CLOSE_SECONDS)
            if not self.broken:
                self.flush()
                self._inner.shutdown(socket.SHUT_WR)
                deadline = time.monotonic() + CLOSE_SECONDS
                while self._inner.recv(CHUNK) and time.monotonic() < deadline:
                    pass
        self._inner.close()


class BufferedClient(paho.Client):
    """paho's client on a `BufferedSocket`; made for a network loop of one's own."""

    buffered: BufferedSocket
    """The socket of the present or last connection; there from the first one on."""

    def _create_socket(self) -> BufferedSocket:
        inner = super()._create_socket()
        assert isinstance(inner, socket.socket)
        self.buffered = BufferedSocket(inner, self.protocol == MQTTProtocolVersion.MQTTv5)
        return self.buffered
