"""Settings: read once from the environment, frozen, passed on as arguments."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fogline.common.errors import UsageError

_KINDS: dict[type, str] = {int: "a whole number", float: "a number"}


def _default_functions() -> Path:
    return Path.home() / ".config" / "fogline" / "functions"


def _default_scratch() -> Path:
    """Memory-backed where there is such a place: throw-away checkpoints are faster there."""
    shared = Path("/dev/shm")
    usable = shared.is_dir() and os.access(shared, os.W_OK)
    return shared if usable else Path(tempfile.gettempdir())


@dataclass(frozen=True, slots=True)
class Settings:
    """Every setting has a default; the environment variable is FOGLINE_ and the upper-case name."""

    engine: str = "local[*]"
    """Spark master: local[n], spark://…, k8s://…, yarn."""
    engine_host: str = "127.0.0.1"
    """Address of this machine at which the workers of a Spark cluster reach the driver."""
    memory: str = "1g"
    """Memory of the Spark driver."""
    java: str = ""
    """Further options for Spark's Java."""
    partitions: int = 0
    """Partitions of stateful steps; 0: one per core, at most 4."""
    functions: Path = field(default_factory=_default_functions)
    """Folder with the Python files that FUNCTION statements may name."""
    retention_hours: float = 168.0
    """How long records are kept: no window may reach back further."""
    scratch: Path = field(default_factory=_default_scratch)
    """Where throw-away checkpoints and spools go."""

    @property
    def retention_ms(self) -> int:
        return round(self.retention_hours * 3_600_000)

    @property
    def stateful_partitions(self) -> int:
        return self.partitions or min(os.cpu_count() or 1, 4)


def load(environment: Mapping[str, str] = os.environ) -> Settings:
    """Settings from `FOGLINE_…` variables; a value that cannot be read is a usage error."""
    defaults = Settings()
    values: dict[str, object] = {}
    for name in Settings.__dataclass_fields__:
        text = environment.get(f"FOGLINE_{name.upper()}")
        if text is not None:
            kind = type(getattr(defaults, name))
            try:
                values[name] = kind(text)
            except ValueError as error:
                message = f"FOGLINE_{name.upper()}={text!r} is not {_KINDS.get(kind, kind)}"
                raise UsageError(message) from error
    return Settings(**values)  # type: ignore[arg-type]
