"""A gateway's configuration file: YAML, checked when read, every unknown key refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import yaml

from fogline.broker.login import with_login
from fogline.errors import DataError, UsageError
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
    port: int = 0
    sync: bool = False


@dataclass(frozen=True, slots=True)
class SiteBroker:
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
    latitude: float
    longitude: float


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
    site_broker: SiteBroker = field(default_factory=SiteBroker)
    control: Control | None = None
    location: Location | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    buffer: Buffer = field(default_factory=Buffer)
    min_free_megabytes: float = 64.0
    gateways: int = 1
    """More than one: so many in one process, called <gateway>-001 and so on."""
    threads: int = 2
    """Of a process with many gateways."""

    def numbered(self, number: int) -> GatewayConfig:
        """One of many: its own name, its own folder."""
        name = f"{self.gateway}-{number:03}"
        return replace(self, gateway=name, folder=self.folder / name, gateways=1)


_PARTS = {
    "broker": GatewayBroker,
    "site_broker": SiteBroker,
    "control": Control,
    "location": Location,
    "buffer": Buffer,
}


def read_config(path: Path) -> GatewayConfig:
    """Reads a file; paths in it are relative to it. Raises `UsageError`."""
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        line = str(error).replace("\n", " ")
        raise UsageError(f"{path} is not YAML: {line}") from error
    return parse_config(data, path.parent.resolve(), str(path))


def parse_config(data: Any, base: Path, name: str) -> GatewayConfig:
    values = _typed(data, GatewayConfig, base, name)
    gateway = values.get("gateway", "")
    if not is_name(gateway):
        raise UsageError(f"{name}: 'gateway' must be its name", f"for example:\n{EXAMPLE}")
    config = GatewayConfig(**{"folder": base / gateway} | values)
    if config.gateways > 1 and config.broker.url is None:
        raise UsageError(f"{name}: many gateways share one broker: set broker url")
    return config


def _typed(data: Any, kind: type, base: Path, name: str) -> dict[str, Any]:
    if not isinstance(data, dict) or not all(isinstance(key, str) for key in data):
        raise UsageError(f"{name}: expected names and values", f"for example:\n{EXAMPLE}")
    types = {f.name: str(f.type) for f in fields(kind)}
    unknown = [key for key in data if key not in types]
    if unknown:
        raise UsageError(f"{name}: unknown {', '.join(unknown)}", f"known: {', '.join(types)}")
    missing = [f.name for f in fields(kind) if f.name in ("url", "latitude", "longitude")]
    missing = [key for key in missing if kind is not GatewayBroker and key not in data]
    if missing:
        raise UsageError(f"{name}: {', '.join(missing)} is missing")
    return {
        key: _value(value, key, types[key], base, f"{name}: {key}") for key, value in data.items()
    }


def _value(value: Any, key: str, kind: str, base: Path, name: str) -> Any:
    if key in _PARTS and kind.split(" ")[0] in [part.__name__ for part in _PARTS.values()]:
        part = _PARTS[key]
        return part(**_typed(value, part, base, name))
    if key == "labels" and isinstance(value, dict):
        return {str(label): str(text) for label, text in value.items()}
    if "Path" in kind and isinstance(value, str) and value:
        return base / value
    if kind.startswith("str") and isinstance(value, str):
        return value
    if kind == "bool" and isinstance(value, bool):
        return value
    if kind == "int" and type(value) is int and value >= 0:
        return value
    if kind == "float" and type(value) in (int, float) and _fits(key, value):
        return float(value)
    raise UsageError(f"{name} is {value!r:.80}, not {_WANTED.get(kind, 'what is expected here')}")


_WANTED = {"int": "a whole number", "float": "a number that makes sense", "bool": "true or false"}


def _fits(key: str, value: float) -> bool:
    if key in ("latitude", "longitude"):
        return abs(value) <= (90 if key == "latitude" else 180)
    return 0 < value < 1e12
