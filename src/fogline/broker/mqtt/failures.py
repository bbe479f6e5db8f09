"""From what the network and MQTT report to errors a person can act on."""

from __future__ import annotations

import ssl

from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.reasoncodes import ReasonCode

from fogline.broker.errors import (
    BrokerCertificateError,
    BrokerError,
    BrokerForbiddenError,
    BrokerRefusedError,
    BrokerUnreachableError,
)
from fogline.model.broker_url import BrokerUrl

LEAST_FAILURE = 128
"""From this reason code on a broker says no."""
BAD_PASSWORD = 134
NOT_AUTHORISED = 135
FORBIDDEN = (NOT_AUTHORISED, 144, 149, 153)
"""Of one message: no right, a topic, a size or a content that is not allowed."""


def of_system(url: BrokerUrl, error: Exception) -> BrokerError:
    """Connecting failed before MQTT had a say."""
    made: BrokerError
    if isinstance(error, ssl.SSLError):
        reason = getattr(error, "verify_message", "") or error.reason or str(error)
        hint = "check the CA, the host name and the client certificate"
        made = BrokerCertificateError(f"no TLS connection to {url}: {reason}", hint)
    else:
        hint = "check the address, and that the broker is running"
        made = BrokerUnreachableError(f"no MQTT broker answers at {url}: {error}", hint)
    made.__cause__ = error
    return made


def of_reason(url: BrokerUrl, reason: ReasonCode) -> BrokerError:
    """The broker said no."""
    hint = ""
    if reason.value == BAD_PASSWORD:
        hint = "check user and password"
    elif reason.value == NOT_AUTHORISED:
        hint = "check user and password, and what the user may do"
    kind = BrokerForbiddenError if reason.value in FORBIDDEN else BrokerRefusedError
    return kind(f"the broker at {url} refuses: {reason}", hint)


def of_code(
    url: BrokerUrl, code: int, packet: int = PacketTypes.PUBACK, what: str = "a message"
) -> BrokerError | None:
    """What the broker's answer to a message of QoS 1 means, or that of another packet, if it is
    a no."""
    if code < LEAST_FAILURE:
        return None
    try:
        return of_reason(url, ReasonCode(packet, identifier=code))
    except KeyError:  # one that MQTT does not know
        return BrokerRefusedError(f"the broker at {url} refuses {what}: reason {code}")


def of_loss(
    url: BrokerUrl, reason: ReasonCode, system: OSError | None, answered: bool
) -> BrokerError:
    """A connection ended; `answered`: after the broker had accepted it."""
    if isinstance(system, ssl.SSLError):
        return of_system(url, system)
    why = system or reason
    if answered:
        return BrokerUnreachableError(f"the connection to {url} is lost: {why}")
    hint = "is it an MQTT broker, and does it use TLS (mqtts://) or none (mqtt://)?"
    return BrokerUnreachableError(f"{url} ended the connection without an answer", hint)
