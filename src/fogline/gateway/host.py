"""Many gateways in one process, with few threads: for trials, tests and measurements.

They share the connection to the broker of the devices, those to sites, and a few working threads.
Each has its own name, folder, logs and jobs. `{gateway}` in a topic that a job reads is its name.
Under control, each also has its own connection to the control broker: a last will needs one.
"""

from __future__ import annotations

import contextlib

from fogline.broker import Tls
from fogline.control import ControlledNode
from fogline.errors import FoglineError, UsageError
from fogline.gateway.config import GatewayConfig
from fogline.gateway.connections import Connections
from fogline.gateway.control import controlled
from fogline.gateway.gateway import Gateway
from fogline.gateway.intake import Intake
from fogline.gateway.scheduler import Scheduler
from fogline.gateway.sources import broker_address


class Host:
    """`start`, then `stop`; `gateways` are those in it."""

    def __init__(self, config: GatewayConfig) -> None:
        if config.broker.url is None:
            raise UsageError("many gateways share one broker", "set broker url")
        tls = Tls(ca=config.broker.ca) if config.broker.ca else None
        self._config = config
        self._scheduler = Scheduler(max(config.threads, 1))
        self._connections = Connections(config.gateway, tls, config.site_broker.login)
        self._intake = Intake(broker_address(config), f"fogline-{config.gateway}-in", tls)
        self._nodes: list[ControlledNode] = []
        self.gateways = [
            Gateway(config.numbered(number + 1), self._scheduler, self._intake, self._connections)
            for number in range(config.gateways)
        ]

    def start(self) -> None:
        self._scheduler.start()
        for gateway in self.gateways:
            gateway.start()
            if self._config.control is not None:
                node = controlled(gateway, self._config.control)
                self._nodes.append(node)
                node.start()
        self._scheduler.add(self._intake.step)

    def stop(self) -> None:
        self._scheduler.remove(self._intake.step)
        for node in self._nodes:
            node.close()
        for gateway in self.gateways:
            with contextlib.suppress(FoglineError):
                gateway.stop()
        self._scheduler.stop()
        self._intake.close()
        self._connections.close()
