"""paho's client, set up as the options say."""

from __future__ import annotations

from typing import Any

from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from fogline.broker.mqtt.buffered import BufferedClient
from fogline.broker.options import BrokerOptions, Tls
from fogline.model.broker_url import BrokerUrl


def make_client(url: BrokerUrl, options: BrokerOptions, timeout: float) -> BufferedClient:
    """A client that is ready for `reconnect`; acknowledging and its window are left to us."""
    is_v5 = options.protocol == 5
    client = BufferedClient(
        CallbackAPIVersion.VERSION2,
        client_id=options.client_id,
        clean_session=None if is_v5 else not options.persistent,
        protocol=MQTTProtocolVersion.MQTTv5 if is_v5 else MQTTProtocolVersion.MQTTv311,
        reconnect_on_failure=False,
        manual_ack=True,
    )
    client.connect_timeout = timeout
    # paho's own window costs a walk over all of it for every confirmation.
    client.max_inflight_messages = 0
    # With this hook set, packets are left for our network thread to write.
    client.on_socket_register_write = lambda client, data, connection: None
    _set_identity(client, url, options)
    extra: dict[str, Any] = {}
    if is_v5:
        extra = {"clean_start": not options.persistent, "properties": _properties(options)}
    client.connect_async(url.host, url.port, options.keepalive_seconds, **extra)
    return client


def _set_identity(client: BufferedClient, url: BrokerUrl, options: BrokerOptions) -> None:
    if url.user is not None:
        client.username_pw_set(url.user, url.password)
    if url.tls:
        client.tls_set_context((options.tls or Tls()).context())
    if (will := options.will) is not None:
        client.will_set(will.topic, will.payload, will.qos, will.retain)


def _properties(options: BrokerOptions) -> Properties:
    # paho leaves its constructor untyped.
    properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
    properties.ReceiveMaximum = options.receive_maximum
    if options.persistent:
        properties.SessionExpiryInterval = options.expiry_seconds
    return properties
