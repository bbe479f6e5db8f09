"""What a gateway has of its own, or several gateways of one process together."""

from __future__ import annotations

from dataclasses import dataclass

from fogline.gateway.jobs.ledger import Ledger
from fogline.gateway.runtime.brokers import tls_of
from fogline.gateway.runtime.config import GatewayConfig
from fogline.gateway.runtime.connections import Connections
from fogline.gateway.runtime.intake import GatewayIntake
from fogline.gateway.runtime.scheduler import StepScheduler


@dataclass(frozen=True, slots=True)
class Shared:
    """What several gateways of one process have together."""

    scheduler: StepScheduler
    intake: GatewayIntake
    connections: Connections
    ledger: Ledger


def ledger_of(config: GatewayConfig) -> Ledger:
    return Ledger(config.folder / "jobs")


def connections_of(config: GatewayConfig) -> Connections:
    return Connections(config.gateway, tls_of(config), config.site_broker.login)
