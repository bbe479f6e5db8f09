"""Many gateways in one process, with few threads: for trials, tests and measurements.

They share the connection to the broker of the devices, those to sites, that to the control broker,
a few working threads, and the ledger of what they were assigned: what comes for many of them
together is on disk at once. Each has its own name, folder, logs and jobs. `{gateway}` in a topic
that a job reads is its name.
"""

from __future__ import annotations

import contextlib

from fogline.broker import BrokerError
from fogline.common.errors import FoglineError, UsageError
from fogline.control import ControlledNodes
from fogline.gateway.runtime.brokers import tls_of
from fogline.gateway.runtime.config import GatewayConfig
from fogline.gateway.runtime.control import connect_gateways
from fogline.gateway.runtime.gateway import Gateway
from fogline.gateway.runtime.intake import GatewayIntake
from fogline.gateway.runtime.scheduler import StepScheduler
from fogline.gateway.runtime.shared import Shared, connections_of, ledger_of
from fogline.gateway.runtime.sources import broker_address


class Host:
    """`start`, then `stop`; `gateways` are those in it."""

    def __init__(self, config: GatewayConfig) -> None:
        if config.broker.url is None:
            raise UsageError("many gateways share one broker", "set broker url")
        self._shared = Shared(
            StepScheduler(max(config.threads, 1)),
            GatewayIntake(broker_address(config), f"fogline-{config.gateway}-in", tls_of(config)),
            connections_of(config),
            ledger_of(config),
        )
        self.gateways = [
            Gateway(config.with_number(number + 1), self._shared)
            for number in range(config.gateways)
        ]
        self._control = config.control
        self._nodes: ControlledNodes | None = None

    def start(self) -> None:
        self._shared.scheduler.start()
        for gateway in self.gateways:
            gateway.start()
        with contextlib.suppress(BrokerError):
            self._shared.intake.settle()
        self._shared.scheduler.add(self._shared.intake.step)
        if self._control is not None:
            self._nodes = connect_gateways(self.gateways, self._control)
            self._nodes.start()

    def stop(self) -> None:
        shared = self._shared
        shared.scheduler.remove(shared.intake.step)
        if self._nodes is not None:
            self._nodes.close()
        for gateway in self.gateways:
            with contextlib.suppress(FoglineError):
                gateway.stop()
        shared.scheduler.stop()
        shared.intake.close()
        shared.connections.close()
        with contextlib.suppress(FoglineError):
            shared.ledger.commit()
        shared.ledger.close()
