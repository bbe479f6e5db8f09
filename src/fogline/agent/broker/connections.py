"""Connecting the processes of a site to brokers, however long it takes them to come up."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from fogline.broker import (
    Broker,
    BrokerClosedError,
    BrokerError,
    BrokerOptions,
    BrokerUnreachableError,
    Tls,
    open_broker,
)

_RETRY_SECONDS = 0.5
_REFUSED_SECONDS = 5.0


def broker_options(
    client: str, tls: Mapping[str, str] | None, persistent: bool = False
) -> BrokerOptions:
    files = {name: Path(path) for name, path in (tls or {}).items()}
    return BrokerOptions(
        client_id=client, persistent=persistent, tls=Tls(**files) if files else None
    )


def connect(broker: Broker, stop: threading.Event, report: Callable[[str], None]) -> bool:
    """Tries until the connection stands; false when `stop` is set, or the broker closed, first.

    `report` gets the reason whenever it does not. What a person has to put right (a wrong password,
    a bad certificate) is tried again too, less often.
    """
    last = ""
    while not stop.is_set():
        try:
            broker.connect()
            return True
        except BrokerClosedError:
            return False
        except BrokerError as error:
            soon = isinstance(error, BrokerUnreachableError)
            report(f"waiting for the broker: {error}")
            if str(error) != last:
                last = str(error)
                print(f"waiting for the broker: {last}", file=sys.stderr, flush=True)
            stop.wait(_RETRY_SECONDS if soon else _REFUSED_SECONDS)
    return False


class Connection:
    """One broker, connected in the background; it can be asked from the start whether it stands."""

    def __init__(self, url: str, options: BrokerOptions) -> None:
        self.broker = open_broker(url, options)
        self._waiting = "waiting for the broker"
        self._stop = threading.Event()
        arguments = (self.broker, self._stop, self._set_waiting)
        self._thread = threading.Thread(target=connect, args=arguments, daemon=True)
        self._thread.start()

    @property
    def state(self) -> str:
        if self.broker.connected:
            return "running"
        return self._waiting if self._thread.is_alive() else f"disconnected: {self.broker.problem}"

    def _set_waiting(self, text: str) -> None:
        self._waiting = text

    def close(self) -> None:
        """What is under way is given up."""
        self._stop.set()
        self.broker.close()
