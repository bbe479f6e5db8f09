"""The coordinator's configuration file: YAML, checked when read; everything has a default."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import yaml

from fogline.coordinator.replica_config import ReplicaConfig, parse_replicas
from fogline.errors import DataError, UsageError

PORT = 7480
EXAMPLE = "port: 7480\ncontrol: {url: 'mqtt://broker.example:1883'}\n"


def default_folder() -> Path:
    return Path.home() / ".local" / "share" / "fogline" / "coordinator"


@dataclass(frozen=True, slots=True)
class ControlConfig:
    """The control broker: an existing one with `url`, else an own Mosquitto."""

    url: str | None = None
    user: str | None = None
    password_file: Path | None = None
    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    host: str = "127.0.0.1"
    """Where the own Mosquitto listens; anything but loopback needs a user and a password."""
    port: int = 0
    """Port of the own Mosquitto; 0: a free one, which stays the same afterwards."""


@dataclass(frozen=True, slots=True)
class CoordinatorConfig:
    """All of it."""

    folder: Path = field(default_factory=default_folder)
    host: str = "127.0.0.1"
    port: int = PORT
    """0: a free one."""
    store: str | None = field(default=None, repr=False)
    """postgresql://…; without it SQLite in the folder. May hold a password: never shown."""
    tokens_file: Path | None = None
    control: ControlConfig = field(default_factory=ControlConfig)
    replicas: ReplicaConfig = field(default_factory=ReplicaConfig)

    @property
    def store_url(self) -> str:
        return self.store or f"sqlite:///{self.folder / 'coordinator.db'}"


def read_config(path: Path | None) -> CoordinatorConfig:
    """Reads a file; paths in it are relative to it. Without a file: the defaults."""
    if path is None:
        return CoordinatorConfig()
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        line = str(error).replace("\n", " ")
        raise UsageError(f"{path} is not YAML: {line}") from error
    return parse_config(data, path.parent.resolve(), str(path))


def parse_config(data: Any, base: Path, name: str) -> CoordinatorConfig:
    values = _part({} if data is None else data, CoordinatorConfig, base, name)
    control = ControlConfig(
        **_part(values.pop("control", {}), ControlConfig, base, f"{name}: control")
    )
    _check_control(control, name)
    replicas = parse_replicas(values.pop("replicas", {}), f"{name}: replicas")
    folder = {"folder": base / "coordinator"}
    return CoordinatorConfig(**folder | values, control=control, replicas=replicas)


def _check_control(control: ControlConfig, name: str) -> None:
    if (control.user is None) != (control.password_file is None):
        raise UsageError(f"{name}: control: user and password_file belong together")
    if (control.certificate is None) != (control.key is None):
        raise UsageError(f"{name}: control: certificate and key belong together")


def _part(data: Any, kind: type, base: Path, name: str) -> dict[str, Any]:
    if not isinstance(data, dict) or not all(isinstance(key, str) for key in data):
        raise UsageError(f"{name}: expected names and values", f"for example:\n{EXAMPLE}")
    types = {f.name: str(f.type) for f in fields(kind)}
    unknown = [key for key in data if key not in types]
    if unknown:
        raise UsageError(f"{name}: unknown {', '.join(unknown)}", f"known: {', '.join(types)}")
    return {key: _value(value, types[key], f"{name}: {key}", base) for key, value in data.items()}


def _value(value: Any, kind: str, name: str, base: Path) -> Any:
    if kind in ("ControlConfig", "ReplicaConfig"):
        return value
    if "Path" in kind and isinstance(value, str) and value:
        return base / value
    if kind.startswith("str") and isinstance(value, str) and value:
        return value
    number = isinstance(value, int) and not isinstance(value, bool)
    if kind == "int" and number and 0 <= value <= 65535:
        return value
    wanted = "a port, 0 to 65535" if kind == "int" else "a text"
    raise UsageError(f"{name} is not {wanted}")
