"""A coordinator made from its configuration: the one place that knows all the real parts."""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any

from fogline.broker import Tls
from fogline.broker.login import read_password, with_login
from fogline.broker.mosquitto.server import Mosquitto, MosquittoOptions, ServerTls
from fogline.common.errors import DataError, FoglineError, SetupError
from fogline.common.state_files import StateDamaged, read_state, write_state
from fogline.control.connection import ControlOptions
from fogline.control.coordinator import ControlClient, OnOutcomes
from fogline.control.envelope import NodePart
from fogline.control.errors import ControlError, NoAnswerError
from fogline.coordinator.api.service import Parts, Service
from fogline.coordinator.config import ControlBrokerConfig, CoordinatorConfig
from fogline.coordinator.pipelines.compiler import DeployCompiler
from fogline.coordinator.pipelines.packages import PackageStore
from fogline.coordinator.reconcile.loop import Loop
from fogline.coordinator.reconcile.planner import Nodes, Planner
from fogline.coordinator.reconcile.secret_handover import TURN_SECONDS, SecretHandover
from fogline.coordinator.replication.loop import ReplicaLoop
from fogline.coordinator.repository.store import Store
from fogline.model.broker_url import BrokerUrl
from fogline.model.nodes import NodeView

_WATCH_SECONDS = 0.5
_SWEEP_SECONDS = 600.0


class ControlLine:
    """The control broker, as the coordinator needs it."""

    def __init__(self, client: ControlClient) -> None:
        self._client = client

    @property
    def connected(self) -> bool:
        return self._client.connected

    @property
    def problem(self) -> str:
        return self._client.problem

    def views(self) -> Mapping[str, NodeView]:
        return self._client.views()

    def send(
        self, node: str, op: str, body: dict[str, Any], timeout: float
    ) -> Future[dict[str, Any]]:
        return self._client.send(node, op, body, timeout)

    def send_each(
        self,
        op: str,
        body: NodePart,
        parts: Mapping[str, NodePart],
        timeout: float,
        on_outcomes: OnOutcomes,
    ) -> None:
        self._client.send_each(op, body, parts, timeout, on_outcomes)

    def is_refusal(self, error: BaseException) -> bool:
        """What cannot be written, or is too large to be sent, counts as refused: several jobs are
        then tried one by one."""
        if isinstance(error, DataError):
            return True
        answered = isinstance(error, ControlError) and not isinstance(error, NoAnswerError)
        return answered and (error.__cause__ is None or isinstance(error.__cause__, DataError))

    def forget(self, name: str) -> None:
        self._client.forget(name)


class Coordinator:
    """Everything but REST: `start`, then `stop`."""

    def __init__(self, config: CoordinatorConfig) -> None:
        self.config = config
        self._stack = contextlib.ExitStack()
        self.control_address = ""
        self.service: Service

    def start(self) -> None:
        """What was begun is ended again when something does not start."""
        try:
            self._start()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        self._stack.close()

    def _start(self) -> None:
        folder = self.config.folder
        _make_private(folder)
        self._stack.enter_context(_only_one(folder))
        store = Store(self.config.store_url)
        self._stack.callback(store.close)
        packages = PackageStore(folder / "packages", store, time.time)
        url = self._broker_url()
        self.control_address = str(BrokerUrl.parse(url))
        client = ControlClient(
            url,
            {"package": packages.read},
            lambda: loop.wake(),
            "coordinator",
            ControlOptions(tls=_client_tls(self.config.control)),
        )
        self._stack.callback(client.close)
        control = ControlLine(client)
        nodes = Nodes(control, store)
        planner = Planner(store, nodes)
        loop = Loop(planner, nodes, control, store, seed=os.getpid())
        config, seed = self.config.replicas, os.getpid()
        replicas = ReplicaLoop(control, nodes, planner, store, config, seed=seed)
        compiler = DeployCompiler()
        secret = SecretHandover(folder, control, nodes.views, seed=seed)
        parts = Parts(store, packages, control, nodes, planner, loop, compiler, replicas, secret)
        self.service = Service(parts)
        client.start()
        loop.start()
        self._stack.callback(loop.stop)
        replicas.start()
        self._stack.callback(replicas.stop)
        self._stack.enter_context(_run_repeatedly("fabric secret", TURN_SECONDS, secret.turn))
        self._stack.enter_context(
            _run_repeatedly("packages", _SWEEP_SECONDS, self.service.remove_packages)
        )

    def _broker_url(self) -> str:
        control = self.config.control
        if control.url is None:
            return self._own_broker().url
        BrokerUrl.parse(control.url)
        return with_login(control.url, control.user, control.password_file)

    def _own_broker(self) -> Mosquitto:
        folder, control = self.config.folder, self.config.control
        kept = folder / "control-port"
        options = MosquittoOptions(
            port=control.port or _kept_port(kept),
            host=control.host,
            user=control.user,
            password=read_password(control.password_file),
            tls=_server_tls(control),
            save_after=0,  # nodes announce themselves again; saving every status costs far more
        )
        broker = self._stack.enter_context(Mosquitto(folder / "broker", options))
        write_state(kept, f"{broker.port}\n")
        keep = partial(_keep_running, broker)
        self._stack.enter_context(_run_repeatedly("control broker", _WATCH_SECONDS, keep))
        return broker


def _keep_running(broker: Mosquitto) -> None:
    """A control broker that died is started again, at the same port."""
    if not broker.running:
        broker.start()


@contextlib.contextmanager
def _run_repeatedly(name: str, seconds: float, action: Callable[[], object]) -> Iterator[None]:
    """Does it again and again, in a thread; what goes wrong is tried again the next time."""
    stop = threading.Event()

    def run() -> None:
        while not stop.wait(seconds):
            with contextlib.suppress(FoglineError):
                action()

    thread = threading.Thread(target=run, daemon=True, name=name)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _client_tls(control: ControlBrokerConfig) -> Tls | None:
    if control.ca is None and control.certificate is None:
        return None
    return Tls(control.ca, control.certificate, control.key)


def _server_tls(control: ControlBrokerConfig) -> ServerTls | None:
    if control.certificate is None or control.key is None:
        return None
    return ServerTls(control.certificate, control.key)


def _kept_port(file: Path) -> int:
    """The port of the last start, so that nodes find the broker again."""
    with contextlib.suppress(OSError, ValueError, StateDamaged):
        return int(read_state(file))
    return 0


def _make_private(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise SetupError(f"{folder} cannot be made: {error.strerror}") from error


@contextlib.contextmanager
def _only_one(folder: Path) -> Any:
    with (folder / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            hint = "stop it first, or choose another folder"
            raise SetupError(f"a coordinator runs in {folder} already", hint) from error
        yield
