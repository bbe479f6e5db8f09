"""Connecting the processes of a site to its broker, however long it takes to come up."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from fogline.broker import Broker, BrokerUnreachableError, Options, Tls, open_broker

_RETRY_SECONDS = 0.5


def broker_options(client: str, tls: dict[str, str] | None, persistent: bool = False) -> Options:
    files = {name: Path(path) for name, path in (tls or {}).items()}
    return Options(client_id=client, persistent=persistent, tls=Tls(**files) if files else None)


def connect(url: str, options: Options, stop: threading.Event) -> Broker | None:
    """Tries until the broker is there; nothing when `stop` is set first.

    What will not get better by waiting (a wrong password, a bad certificate) is raised.
    """
    told = ""
    while not stop.is_set():
        broker = open_broker(url, options)
        try:
            broker.connect()
            return broker
        except BrokerUnreachableError as error:
            if str(error) != told:
                told = str(error)
                print(f"waiting for the broker: {told}", file=sys.stderr, flush=True)
            broker.close()
            stop.wait(_RETRY_SECONDS)
    return None
