"""Connections to brokers, one for each address, made in the background for as long as it takes."""

from __future__ import annotations

import threading
from collections.abc import Callable

from fogline.broker import Broker, BrokerClosedError, BrokerError, BrokerOptions, Tls, open_broker
from fogline.common.backoff import Backoff


class Connections:
    """All brokers that records are sent to. For use by several gateways and threads."""

    def __init__(
        self, name: str, tls: Tls | None = None, login: Callable[[str], str] = lambda url: url
    ) -> None:
        """`login` adds user and password to an address that has none."""
        self._name = name
        self._tls = tls
        self._login = login
        self._brokers: dict[str, Broker] = {}
        self._guard = threading.Lock()
        self._closing = threading.Event()

    def to(self, url: str) -> Broker:
        """The connection, which may not stand yet. Raises `UsageError` for a bad address."""
        with self._guard:
            if url not in self._brokers:
                options = BrokerOptions(client_id="", tls=self._tls, retry_longest=5.0)
                self._brokers[url] = broker = open_broker(self._login(url), options)
                connect_in_background(broker, self._closing)
            return self._brokers[url]

    def close(self) -> None:
        self._closing.set()
        with self._guard:
            for broker in self._brokers.values():
                broker.close(1.0)
            self._brokers.clear()


def connect_in_background(broker: Broker, closing: threading.Event) -> None:
    """Once it stands it is repaired by itself."""

    def attempt() -> None:
        backoff = Backoff(0.05, 5.0)
        while not closing.is_set():
            try:
                broker.connect()
                return
            except BrokerClosedError:
                return
            except BrokerError:
                closing.wait(backoff.next())

    threading.Thread(target=attempt, name="connecting", daemon=True).start()
