"""The coordinator's configuration file: YAML, checked when read; everything has a default."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fogline.common.config_file import Reader, port, read_yaml, within
from fogline.common.errors import UsageError
from fogline.common.http.hosts import Hosts
from fogline.coordinator.replication.config import ReplicaConfig

PORT = 7480
EXAMPLE = "port: 7480\ncontrol: {url: 'mqtt://broker.example:1883'}\n"


def default_folder() -> Path:
    return Path.home() / ".local" / "share" / "fogline" / "coordinator"


@dataclass(frozen=True, slots=True)
class ControlBrokerConfig:
    """The control broker: an existing one with `url`, else an own Mosquitto."""

    url: str | None = None
    user: str | None = None
    password_file: Path | None = None
    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    host: str = "127.0.0.1"
    """Where the own Mosquitto listens; anything but loopback needs a user and a password."""
    port: int = port()
    """Port of the own Mosquitto; 0: a free one, which stays the same afterwards."""


@dataclass(frozen=True, slots=True)
class CoordinatorConfig:
    """All of it."""

    folder: Path = field(default_factory=default_folder)
    host: str = "127.0.0.1"
    port: int = within(0, 65535, PORT)
    """0: a free one."""
    hosts: tuple[str, ...] = ()
    """Other names by which it is reached; requests to foreign ones are refused."""
    store: str | None = field(default=None, repr=False)
    """postgresql://…; without it SQLite in the folder. May hold a password: never shown."""
    tokens_file: Path | None = None
    control: ControlBrokerConfig = field(default_factory=ControlBrokerConfig)
    replicas: ReplicaConfig = field(default_factory=ReplicaConfig)

    def __post_init__(self) -> None:
        Hosts(self.host, self.hosts)

    @property
    def store_url(self) -> str:
        return self.store or f"sqlite:///{self.folder / 'coordinator.db'}"


def read_config(path: Path | None) -> CoordinatorConfig:
    """Reads a file; paths in it are relative to it. Without a file: the defaults."""
    if path is None:
        return CoordinatorConfig()
    return parse_config(read_yaml(path), path.parent.resolve(), str(path))


def parse_config(data: Any, base: Path, name: str) -> CoordinatorConfig:
    reader = Reader(base, EXAMPLE)
    values = reader.mapping({} if data is None else data, name)
    config = reader.make(CoordinatorConfig, {"folder": "coordinator", **values}, name)
    control = config.control
    if (control.user is None) != (control.password_file is None):
        raise UsageError(f"{name}: control: user and password_file belong together")
    if (control.certificate is None) != (control.key is None):
        raise UsageError(f"{name}: control: certificate and key belong together")
    return config
