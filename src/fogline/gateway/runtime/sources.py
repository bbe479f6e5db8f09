"""Where a gateway's messages come from: its own Mosquitto, or brokers that are there already."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol

from fogline.broker import Tls
from fogline.broker.login import read_password, with_login
from fogline.broker.mosquitto.server import Mosquitto, MosquittoOptions
from fogline.common.errors import SetupError
from fogline.gateway.jobs.inputs import InputLog
from fogline.gateway.runtime.config import GatewayConfig
from fogline.gateway.runtime.intake import GatewayIntake, Target
from fogline.gateway.runtime.scheduler import StepScheduler
from fogline.log import SiteLog

_START_SECONDS = 15.0
_RETRY_SECONDS = 1.0
OWN = ""


class Sources(Protocol):
    """What a gateway asks of where its messages come from."""

    state: str

    def start(self) -> None: ...

    def request(self, patterns: Iterable[str]) -> None:
        """What comes on these topics is to be kept."""

    def settle(self) -> None:
        """What is requested since the last time is kept from now on, else raises `BrokerError`."""

    def has(self, patterns: Iterable[str]) -> bool:
        """Whether what comes on these topics is kept already."""

    def input(self) -> InputLog: ...

    def step(self) -> None:
        """Called now and then: puts right what is wrong."""

    def stop(self) -> None: ...


class OwnBroker:
    """A Mosquitto of our own: every message is in its journal before it is confirmed.

    While the gateway's buffer is full it is stopped, so that devices keep what they have.
    """

    def __init__(self, config: GatewayConfig, ready: Callable[[], bool]) -> None:
        given = config.broker
        password = None
        if given.user is not None:
            password = read_password(given.password_file) or ""
        self._journal = config.folder / "journal"
        options = MosquittoOptions(
            host=given.host,
            port=given.port,
            tls=given.server_tls,
            inner=given.certificate is not None,
            user=given.user,
            password=password,
            journal=self._journal,
            journal_sync=given.sync,
            journal_free_bytes=int(config.min_free_megabytes * (1 << 20)),
        )
        self._broker = Mosquitto(config.folder / "broker", options)
        self._input = InputLog(self._journal, journal=True)
        self._ready = ready
        self._due = 0.0
        self.state = "starting"

    @property
    def url(self) -> str:
        """For the gateway itself."""
        return self._broker.inner_url

    @property
    def address(self) -> str:
        """Where devices connect; with user and password, not for printing."""
        return self._broker.url

    def start(self) -> None:
        """The one before may still be ending, and then has the port."""
        self._journal.mkdir(parents=True, exist_ok=True)
        deadline = time.monotonic() + _START_SECONDS
        while True:
            try:
                self._broker.start()
                self.state = "running"
                return
            except SetupError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def request(self, patterns: Iterable[str]) -> None:
        """The journal has everything."""

    def settle(self) -> None:
        """Here too."""

    def has(self, patterns: Iterable[str]) -> bool:
        return True

    def input(self) -> InputLog:
        return self._input

    def step(self) -> None:
        if not self._ready():
            if self._broker.running:
                self._broker.stop()
            self.state = "the buffer is full: intake waits"
        elif not self._broker.running and time.monotonic() >= self._due:
            self._due = time.monotonic() + _RETRY_SECONDS
            try:
                self._broker.start()
                self.state = "running"
            except SetupError as error:
                self.state = str(error)

    def stop(self) -> None:
        self._broker.stop()
        self._input.close()


class OtherBroker:
    """A broker that is there already. `shared`: the connection of several gateways."""

    def __init__(
        self,
        folder: Path,
        url: str,
        client: str,
        ready: Callable[[], bool],
        logs: SiteLog,
        scheduler: StepScheduler,
        tls: Tls | None = None,
        shared: GatewayIntake | None = None,
    ) -> None:
        self.url = url
        self._folder, self._logs, self._ready = folder, logs, ready
        self._client, self._tls = client, tls
        self._scheduler = scheduler
        self._shared = shared
        self._intake: GatewayIntake | None = shared
        self._target: Target | None = None
        self._input = InputLog(logs.folder(self._name), journal=False)

    @property
    def _name(self) -> str:
        return f"in/{self.url.rpartition('@')[2].rpartition('//')[2]}"

    @property
    def state(self) -> str:
        return self._intake.state if self._intake is not None else "starting"

    @state.setter
    def state(self, text: str) -> None:
        raise AttributeError("the intake sets its state")

    @property
    def address(self) -> str:
        return self.url

    def start(self) -> None:
        self._target = Target(self._logs.writer(self._name), self._ready)
        self._input.writer = self._target.log
        if self._intake is None:
            self._intake = GatewayIntake(self.url, self._client, self._tls)
            self._scheduler.add(self._intake.step)
        self._intake.add(self._target)

    def request(self, patterns: Iterable[str]) -> None:
        assert self._intake is not None
        assert self._target is not None
        self._intake.request(self._target, patterns)

    def settle(self) -> None:
        assert self._intake is not None
        self._intake.settle()

    def has(self, patterns: Iterable[str]) -> bool:
        return self._intake is not None and self._intake.has(patterns)

    def input(self) -> InputLog:
        return self._input

    def step(self) -> None:
        """The intake looks after itself."""

    def stop(self) -> None:
        if self._intake is not None and self._target is not None:
            if self._shared is None:
                self._scheduler.remove(self._intake.step)
                self._intake.close()
            else:
                self._intake.remove(self._target)
        self._input.close()


def broker_address(config: GatewayConfig) -> str:
    given = config.broker
    assert given.url is not None
    return with_login(given.url, given.user, given.password_file)
