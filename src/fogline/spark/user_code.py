"""The user's own PySpark: functions from packages, each under a name of its own.

A package is a .py file, or a wheel or zip of modules. What it defines goes to Spark's workers by
value, so nothing has to be installed there. A .py file is imported under the hash of its content:
two jobs may bring different files of one name.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from pyspark import cloudpickle
from pyspark.sql import DataFrame

from fogline.errors import FoglineError, UsageError

Function = Callable[..., DataFrame]


def load_function(package: Path, file: str, sha256: str, entry: str) -> Function:
    """`entry` is module:function; raises UsageError saying why it cannot be used."""
    module_name, _, name = entry.partition(":")
    try:
        if file.endswith(".py"):
            module = _from_file(package, f"fogline_job_{sha256[:16]}")
        else:
            module = _from_archive(package, module_name)
    except FoglineError:
        raise
    except BaseException as error:
        raise UsageError(f"{file} raises at import: {error!r}") from error
    function = getattr(module, name, None)
    if not callable(function):
        raise UsageError(f"{file} has no function {name!r}")
    found: Function = function
    return found


def call(function: Function, records: DataFrame, parameters: Mapping[str, Any]) -> DataFrame:
    """`f(records)`, `f(records, parameters)` or `f(records, name=…)`, as it is declared."""
    signature = inspect.signature(function).parameters.values()
    named = any(p.kind in (p.KEYWORD_ONLY, p.VAR_KEYWORD) for p in signature)
    positional = [p for p in signature if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if named:
        result = function(records, **_accepted(function, parameters))
    elif len(positional) > 1:
        result = function(records, dict(parameters))
    else:
        result = function(records)
    if not isinstance(result, DataFrame):
        raise UsageError(f"the code returned {type(result).__name__}, not a DataFrame")
    return result


def _accepted(function: Function, parameters: Mapping[str, Any]) -> dict[str, Any]:
    signature = inspect.signature(function).parameters
    if any(p.kind is p.VAR_KEYWORD for p in signature.values()):
        return dict(parameters)
    return {name: value for name, value in parameters.items() if name in signature}


def _from_file(path: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        loader = importlib.machinery.SourceFileLoader(name, str(path))
        spec = importlib.util.spec_from_loader(name, loader)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    return module


def _from_archive(path: Path, name: str) -> ModuleType:
    folder = path.with_name(f"{path.name}.d")
    if not folder.exists():
        _extract(path, folder)
    _forget_others(folder, name.partition(".")[0])
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    module = importlib.import_module(name)
    for found in list(sys.modules.values()):
        if str(getattr(found, "__file__", None) or "").startswith(f"{folder}/"):
            cloudpickle.register_pickle_by_value(found)  # type: ignore[no-untyped-call]
    return module


def _extract(path: Path, folder: Path) -> None:
    try:
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                if name.startswith("/") or ".." in Path(name).parts:
                    raise UsageError(f"the package holds a path that leads out of it: {name!r}")
            archive.extractall(folder)
    except zipfile.BadZipFile as error:
        raise UsageError("the package is neither a .py file nor a wheel") from error


def _forget_others(folder: Path, top: str) -> None:
    """Modules of that name from another package, perhaps an older one of the same job."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == top:
            origin = str(getattr(module, "__file__", None) or "")
            if ".d/" in origin and not origin.startswith(f"{folder}/"):
                del sys.modules[name]
