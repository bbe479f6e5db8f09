"""How to connect: all that is not in the address."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

from fogline.broker.errors import BrokerCertificateError
from fogline.broker.interface import Message
from fogline.broker.topics import check_topic
from fogline.common.errors import UsageError


@dataclass(frozen=True, slots=True)
class Tls:
    """Whom to trust (the system's CAs when empty), and what to show when asked who we are."""

    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None

    def context(self) -> ssl.SSLContext:
        try:
            context = ssl.create_default_context(cafile=str(self.ca) if self.ca else None)
            if self.certificate:
                context.load_cert_chain(self.certificate, self.key)
        except (OSError, ssl.SSLError) as error:
            files = ", ".join(str(f) for f in (self.ca, self.certificate, self.key) if f)
            text = f"cannot use the certificate files {files}: {error}"
            raise BrokerCertificateError(text, "they must be readable PEM files") from error
        return context


@dataclass(frozen=True, slots=True)
class BrokerOptions:
    """How a connection behaves."""

    client_id: str = ""
    """Stable for a persistent session; empty: the broker chooses."""
    persistent: bool = False
    """The broker keeps subscriptions and collects messages while we are offline."""
    expiry_seconds: int = 7 * 24 * 3600
    """How long it does so (MQTT 5; with 3.1.1 the broker decides)."""
    retained_once: bool = False
    """Retained messages come only with a subscription that the broker does not have yet; with MQTT
    3.1.1 they come with every one."""
    will: Message | None = None
    """Published by the broker when we vanish without closing."""
    tls: Tls | None = None
    protocol: int = 5
    """MQTT 5, or 4 for 3.1.1."""
    keepalive_seconds: int = 30
    window: int = 1000
    """Messages sent and not confirmed, at most; less when the broker says so."""
    receive_maximum: int = 5000
    """Messages delivered and not acknowledged, at most (MQTT 5; else the broker's setting)."""
    queue_messages: int = 20_000
    queue_bytes: int = 64 << 20
    """What waits here at most, in each direction, plus one batch."""
    retry_first: float = 0.1
    retry_longest: float = 30.0
    """Seconds between attempts to reconnect."""

    def __post_init__(self) -> None:
        if self.persistent and not self.client_id:
            raise UsageError("a persistent session needs a client id that stays the same")
        if self.protocol not in (4, 5):
            raise UsageError(f"no MQTT protocol {self.protocol}", "5, or 4 for MQTT 3.1.1")
        if self.will is not None:
            check_topic(self.will.topic)
