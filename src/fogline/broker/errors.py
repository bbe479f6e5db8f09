"""What can go wrong between Fogline and a broker; distinguished by class, never by text."""

from __future__ import annotations

from fogline.common.errors import FoglineError


class BrokerError(FoglineError):
    """The root of all broker errors."""


class BrokerUnreachableError(BrokerError):
    """Nothing answers at the address, or not in time."""


class BrokerRefusedError(BrokerError):
    """The broker answered and said no: credentials, rights, quota or an option it lacks."""


class BrokerForbiddenError(BrokerRefusedError):
    """The broker will never take this: rights, the topic or the content are not to its liking."""


class BrokerCertificateError(BrokerError):
    """The TLS handshake failed: the other side's certificate, or ours, is not trusted."""


class BrokerTimeoutError(BrokerError):
    """The broker did not confirm in the time given; it may still do so."""


class BrokerClosedError(BrokerError):
    """The connection object was closed, before the call or while it was waiting."""


class TopicError(BrokerError):
    """A topic or filter that MQTT does not allow."""
