"""From an address to a broker."""

from __future__ import annotations

from dataclasses import replace

from fogline.broker.interface import Broker
from fogline.broker.memory import MemoryBroker, hub
from fogline.broker.mqtt.broker import MqttBroker
from fogline.broker.options import BrokerOptions
from fogline.common.errors import UsageError
from fogline.model.broker_url import BrokerUrl

MEMORY = "memory://"


def open_broker(url: str, options: BrokerOptions | None = None) -> Broker:
    """The broker at `mqtt://…`, `mqtts://…` or `memory://name`; not connected yet. A protocol in
    the address is the one that is spoken.

    Raises `UsageError` when the address is none of these. What it raises never shows a password.
    """
    if url.startswith(MEMORY):
        name = url.removeprefix(MEMORY)
        if not name:
            raise UsageError("a broker in memory needs a name", "for example memory://tests")
        return MemoryBroker(hub(name), options)
    parsed = BrokerUrl.parse(url)
    if parsed.protocol is not None:
        options = replace(options or BrokerOptions(), protocol=parsed.protocol)
    return MqttBroker(parsed, options)
