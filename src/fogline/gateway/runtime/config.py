"""A gateway's configuration file: YAML, checked when read, every unknown key refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fogline.broker.login import with_login
from fogline.broker.mosquitto.server import LOOPBACK, ServerTls
from fogline.common.config_file import Reader, port, read_yaml, within
from fogline.common.errors import UsageError
from fogline.model.nodes import is_name

EXAMPLE = """\
gateway: gate-7
site: north
control: {url: "mqtt://control.example:1883"}
"""


@dataclass(frozen=True, slots=True)
class GatewayBroker:
    """The broker of the devices: an own Mosquitto, or with `url` an existing broker."""

    url: str | None = None
    user: str | None = None
    password_file: Path | None = None
    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    """Of the own Mosquitto: then devices connect with TLS."""
    host: str = LOOPBACK[0]
    """Where the own Mosquitto listens; anything but loopback needs a user and a password."""
    port: int = port()
    sync: bool = False

    def __post_init__(self) -> None:
        if (self.certificate is None) != (self.key is None):
            text = "broker: TLS needs both 'certificate' and 'key'"
            raise UsageError(text, "the own broker's, PEM files")
        login = self.user is not None and self.password_file is not None
        if self.url is None and self.host not in LOOPBACK and not login:
            text = f"broker: at {self.host} it needs 'user' and 'password_file'"
            raise UsageError(text, "without them it listens on 127.0.0.1 only")

    @property
    def server_tls(self) -> ServerTls | None:
        if self.certificate is None or self.key is None:
            return None
        return ServerTls(self.certificate, self.key)


@dataclass(frozen=True, slots=True)
class SiteLogin:
    """How to log in at the broker of the site."""

    user: str | None = None
    password_file: Path | None = None

    def login(self, url: str) -> str:
        """The site's address with user and password, unless it has them."""
        return with_login(url, self.user, self.password_file)


@dataclass(frozen=True, slots=True)
class Control:
    url: str
    user: str | None = None
    password_file: Path | None = None
    ca: Path | None = None


@dataclass(frozen=True, slots=True)
class Location:
    latitude: float = within(-90, 90)
    longitude: float = within(-180, 180)


@dataclass(frozen=True, slots=True)
class Buffer:
    megabytes: float = 1024.0
    """What may wait to be computed or forwarded; when it is reached, intake stops."""
    hours: float = 24.0
    """How long what was forwarded, and what was bad or late, is kept to be looked at."""


@dataclass(frozen=True, slots=True)
class GatewayConfig:
    gateway: str
    folder: Path
    site: str = ""
    broker: GatewayBroker = field(default_factory=GatewayBroker)
    announce: str = ""
    """The own broker's address as others reach it; else where it listens."""
    site_broker: SiteLogin = field(default_factory=SiteLogin)
    control: Control | None = None
    location: Location | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    buffer: Buffer = field(default_factory=Buffer)
    min_free_megabytes: float = 64.0
    gateways: int = 1
    """More than one: so many in one process, called <gateway>-001 and so on."""
    threads: int = 2
    """Of a process with many gateways."""

    def with_number(self, number: int) -> GatewayConfig:
        """One of many: its own name, its own folder."""
        name = f"{self.gateway}-{number:03}"
        return replace(self, gateway=name, folder=self.folder / name, gateways=1)


def read_config(path: Path) -> GatewayConfig:
    """Reads a file; paths in it are relative to it. Raises `UsageError`."""
    return parse_config(read_yaml(path), path.parent.resolve(), str(path))


def parse_config(data: Any, base: Path, name: str) -> GatewayConfig:
    reader = Reader(base, EXAMPLE)
    values = reader.mapping(data, name)
    if not isinstance(values.get("gateway"), str) or not is_name(values["gateway"]):
        raise UsageError(f"{name}: 'gateway' must be its name", f"for example:\n{EXAMPLE}")
    values = {"folder": values["gateway"], **values}
    if "labels" in values:
        values["labels"] = reader.labels(values["labels"], f"{name}: labels")
    config = reader.make(GatewayConfig, values, name)
    if config.gateways > 1 and config.broker.url is None:
        raise UsageError(f"{name}: many gateways share one broker: set broker url")
    return config
