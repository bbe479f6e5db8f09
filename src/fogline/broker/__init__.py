"""Brokers behind one interface: `open_broker` gives the one an address names."""

from fogline.broker.delivery import Ticket
from fogline.broker.errors import (
    BrokerCertificateError,
    BrokerClosedError,
    BrokerError,
    BrokerForbiddenError,
    BrokerRefusedError,
    BrokerTimeoutError,
    BrokerUnreachableError,
    TopicError,
)
from fogline.broker.interface import Batch, Broker, Message
from fogline.broker.open import open_broker
from fogline.broker.options import Options, Tls

__all__ = [
    "Batch",
    "Broker",
    "BrokerCertificateError",
    "BrokerClosedError",
    "BrokerError",
    "BrokerForbiddenError",
    "BrokerRefusedError",
    "BrokerTimeoutError",
    "BrokerUnreachableError",
    "Message",
    "Options",
    "Ticket",
    "Tls",
    "TopicError",
    "open_broker",
]
