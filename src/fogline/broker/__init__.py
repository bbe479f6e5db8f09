"""Brokers behind one interface: `open_broker` gives the one an address names."""

from fogline.broker.delivery import DeliveryFuture
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
from fogline.broker.options import BrokerOptions, Tls

__all__ = [
    "Batch",
    "Broker",
    "BrokerCertificateError",
    "BrokerClosedError",
    "BrokerError",
    "BrokerForbiddenError",
    "BrokerOptions",
    "BrokerRefusedError",
    "BrokerTimeoutError",
    "BrokerUnreachableError",
    "DeliveryFuture",
    "Message",
    "Tls",
    "TopicError",
    "open_broker",
]
