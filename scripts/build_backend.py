"""How `pip wheel .` builds Fogline: setuptools, after the connector jar and the broker's plugins.

The wheel is for this platform and any Python 3: the plugins are native code, but Mosquitto's.
An editable install (`make setup`) builds neither: `scripts/setup.sh` does that itself.
"""

from __future__ import annotations

import importlib.util
import sysconfig
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import (  # the hooks of PEP 517 and 660 that stay as they are
    build_editable,
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

ROOT = Path(__file__).resolve().parents[1]


def get_requires_for_build_wheel(config_settings: dict[str, Any] | None = None) -> list[str]:
    """The connector is compiled against the jars that pyspark brings."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        needed = tomllib.load(file)["project"]["dependencies"]
    spark = [name for name in needed if name.startswith("pyspark")]
    return [*build_meta.get_requires_for_build_wheel(config_settings), *spark]


def build_wheel(
    wheel_directory: str,
    config_settings: dict[str, Any] | None = None,
    metadata_directory: str | None = None,
) -> str:
    connector, native = _builder("connector"), _builder("native")
    connector.build(connector.JAR)
    for plugin in native.NAMES:
        native.build(plugin, native.FOLDER)
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    settings = {**(config_settings or {}), "--build-option": ["--plat-name", platform]}
    return build_meta.build_wheel(wheel_directory, settings, metadata_directory)


def _builder(folder: str) -> ModuleType:
    path = ROOT / folder / "build.py"
    spec = importlib.util.spec_from_file_location(f"{folder}_build", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
