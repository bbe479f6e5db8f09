"""Wheels and zips of the user's modules, each in a world of its own.

Two packages may have modules of one name: the modules of a package are to be found under their
names only while something of this package is imported or called, and never those of another. What
is defined in them goes to Spark's workers by value, so nothing is looked up by name there.
"""

from __future__ import annotations

import importlib
import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from pyspark import cloudpickle

from fogline.common.errors import UsageError

_NEVER_REPLACED = frozenset(sys.stdlib_module_names) | {"fogline", "pyspark", "py4j"}
_archives: dict[Path, Archive] = {}


def open_archive(path: Path) -> Archive:
    """The package of this file, whose name is the hash of its content; opened once."""
    if path not in _archives:
        _archives[path] = Archive(path)
    return _archives[path]


class Archive:
    """For one thread at a time."""

    def __init__(self, path: Path) -> None:
        self._folder = path.with_name(f"{path.name}.files")
        if not self._folder.exists():
            _extract(path, self._folder)
        self._names = _top_names(self._folder)
        self._modules: dict[str, ModuleType] = {}
        self._active = False

    def module(self, name: str) -> ModuleType:
        with self.active():
            return importlib.import_module(name)

    @contextmanager
    def active(self) -> Iterator[None]:
        """Its modules, and those it has yet to import, are what their names mean."""
        if self._active:
            yield
            return
        others = self._take_out()
        sys.modules.update(self._modules)
        sys.path.insert(0, str(self._folder))
        registered = cloudpickle.list_registry_pickle_by_value()  # type: ignore[no-untyped-call]
        by_value = self._names - registered
        cloudpickle.cloudpickle._PICKLE_BY_VALUE_MODULES.update(by_value)
        importlib.invalidate_caches()
        self._active = True
        try:
            yield
        finally:
            self._active = False
            cloudpickle.cloudpickle._PICKLE_BY_VALUE_MODULES.difference_update(by_value)
            sys.path.remove(str(self._folder))
            self._modules = self._take_out()
            sys.modules.update(others)

    def _take_out(self) -> dict[str, ModuleType]:
        """What the names of this package mean now; afterwards they mean nothing."""
        found = [name for name in sys.modules if name.partition(".")[0] in self._names]
        return {name: sys.modules.pop(name) for name in found}


def _top_names(folder: Path) -> frozenset[str]:
    """The modules and packages in it that one can import."""
    names = {path.name.partition(".")[0] for path in folder.iterdir() if _importable(path)}
    return frozenset(names) - _NEVER_REPLACED


def _importable(path: Path) -> bool:
    name = path.name if path.is_dir() else path.name.partition(".")[0]
    return name.isidentifier() and (path.is_dir() or path.suffix in (".py", ".so"))


def _by_value(module: ModuleType) -> tuple[Any, ...]:
    """How a module goes to a worker: one that is made anew there is filled afterwards, so that
    modules may refer to each other in circles."""
    made: tuple[Any, ...] = cloudpickle.cloudpickle._module_reduce(module)  # type: ignore[no-untyped-call]
    if made[0] is not cloudpickle.cloudpickle.dynamic_subimport:
        return made
    name, content = made[1]
    return ModuleType, (name,), content


cloudpickle.Pickler.dispatch_table[ModuleType] = _by_value


def _extract(path: Path, folder: Path) -> None:
    """All of it or nothing, whenever it is cut off."""
    partial = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                if name.startswith("/") or ".." in Path(name).parts:
                    raise UsageError(f"the package holds a path that leads out of it: {name!r}")
            archive.extractall(partial)
        for file in partial.rglob("*"):
            if file.is_file():
                _sync(file)
        partial.replace(folder)
    except zipfile.BadZipFile as error:
        raise UsageError("the package is neither a .py file nor a wheel") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _sync(file: Path) -> None:
    with file.open("rb") as opened_file:
        os.fsync(opened_file.fileno())
