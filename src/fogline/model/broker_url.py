"""The address of an MQTT broker, as people type it."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import parse_qs, unquote, urlsplit

from fogline.common.errors import UsageError

PROTOCOLS = {"3.1.1": 4, "5": 5}
EXAMPLE = "for example mqtt://127.0.0.1:1883/city"


@dataclass(frozen=True, slots=True)
class BrokerUrl:
    """`mqtt://user:password@host:port/topic?protocol=3.1.1`; `mqtts` for TLS. The password is never
    shown."""

    host: str
    port: int
    topic: str
    tls: bool
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    protocol: int | None = None
    """5, or 4 for MQTT 3.1.1; nothing where the address does not say."""

    @classmethod
    def parse(cls, url: str, topic: str = "") -> BrokerUrl:
        """Reads a URL; `topic` is taken where the URL names none."""
        try:
            # A '#' is a topic's wildcard here, not the start of a fragment.
            parts = urlsplit(url, allow_fragments=False)
            port = parts.port
        except ValueError as error:
            raise UsageError("the broker's address is not a URL", EXAMPLE) from error
        if parts.scheme not in ("mqtt", "mqtts") or not parts.hostname:
            raise UsageError("the broker's address must be mqtt://host:port/topic", EXAMPLE)
        named = unquote(parts.path.removeprefix("/")) or topic
        if any(sign in named for sign in "#+\0"):
            raise UsageError(f"a topic to publish to must not have wildcards: {named!r}", EXAMPLE)
        tls = parts.scheme == "mqtts"
        user = unquote(parts.username) if parts.username else None
        password = unquote(parts.password) if parts.password else None
        port = port or (8883 if tls else 1883)
        protocol = _protocol(parse_qs(parts.query).get("protocol", [""])[-1])
        return cls(parts.hostname, port, named, tls, user, password, protocol)

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def _protocol(text: str) -> int | None:
    if text and text not in PROTOCOLS:
        raise UsageError(f"no MQTT protocol {text!r:.80}", f"known: {', '.join(PROTOCOLS)}")
    return PROTOCOLS.get(text)
