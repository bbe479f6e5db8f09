"""The brokers that a gateway takes messages from, by the addresses that its jobs name."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fogline.broker import Tls
from fogline.gateway.runtime.config import GatewayConfig
from fogline.gateway.runtime.intake import GatewayIntake
from fogline.gateway.runtime.scheduler import StepScheduler
from fogline.gateway.runtime.sources import OWN, OtherBroker, OwnBroker, Sources, broker_address
from fogline.log import SiteLog


class Brokers:
    """Each is started when it is first asked for. Not for several threads at once.

    `shared` is the connection that several gateways have to the broker of their devices; `ready`
    says whether there is space for more messages.
    """

    def __init__(
        self,
        config: GatewayConfig,
        logs: SiteLog,
        scheduler: StepScheduler,
        shared: GatewayIntake | None,
        ready: Callable[[], bool],
    ) -> None:
        self._config, self._logs, self._scheduler = config, logs, scheduler
        self._shared, self._ready = shared, ready
        self._known: dict[str, Sources] = {}

    def at(self, address: str) -> Sources:
        """The broker of this address; the gateway's own where there is none."""
        if address not in self._known:
            made = self._own() if address == OWN else self._other(address, None)
            made.start()
            self._known[address] = made
        return self._known[address]

    def __iter__(self) -> Iterator[tuple[str, Sources]]:
        return iter(list(self._known.items()))

    @property
    def own(self) -> OwnBroker | OtherBroker | None:
        """That of the devices; None before it is started."""
        found = self._known.get(OWN)
        return found if isinstance(found, OwnBroker | OtherBroker) else None

    @property
    def state(self) -> str:
        """`running`, or what is wrong with one of them."""
        states = (source.state for source in self._known.values())
        return next((state for state in states if state != "running"), "running")

    def stop(self) -> None:
        for source in self._known.values():
            source.stop()
        self._known.clear()

    def _own(self) -> Sources:
        if self._config.broker.url is None:
            return OwnBroker(self._config, self._ready)
        return self._other(broker_address(self._config), self._shared)

    def _other(self, url: str, shared: GatewayIntake | None) -> Sources:
        client = f"fogline-{self._config.gateway}-in"
        folder, tls = self._config.folder, tls_of(self._config)
        return OtherBroker(
            folder, url, client, self._ready, self._logs, self._scheduler, tls, shared
        )


def tls_of(config: GatewayConfig) -> Tls | None:
    return Tls(ca=config.broker.ca) if config.broker.ca is not None else None
