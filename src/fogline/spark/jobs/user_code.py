"""The user's own PySpark: functions from packages, each under a name of its own.

A package is a .py file, or a wheel or zip of modules. What it defines goes to Spark's workers by
value, so nothing has to be installed there. Two jobs may bring different files of one name: a .py
file is imported under the hash of its content, and an archive's modules are seen by nobody else.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from types import ModuleType
from typing import Any

from pyspark import cloudpickle
from pyspark.sql import DataFrame

from fogline.common.errors import FoglineError, UsageError
from fogline.spark.jobs.archives import open_archive

UserFunction = Callable[..., DataFrame]


def load_function(package: Path, file: str, sha256: str, entry: str) -> UserFunction:
    """`entry` is module:function; raises UsageError saying why it cannot be used."""
    module_name, _, name = entry.partition(":")
    try:
        if file.endswith(".py"):
            module = _from_file(package, f"fogline_job_{sha256[:16]}")
            function = getattr(module, name, None)
        else:
            function = _from_archive(package, module_name, name)
    except FoglineError:
        raise
    except BaseException as error:
        raise UsageError(f"{file} raises at import: {error!r}") from error
    if not callable(function):
        raise UsageError(f"{file} has no function {name!r}")
    found: UserFunction = function
    return found


def call(function: UserFunction, records: DataFrame, parameters: Mapping[str, Any]) -> DataFrame:
    """`f(records)`, `f(records, parameters)` or `f(records, name=…)`, as it is declared."""
    signature = inspect.signature(function).parameters.values()
    named = any(p.kind in (p.KEYWORD_ONLY, p.VAR_KEYWORD) for p in signature)
    positional = [p for p in signature if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if named:
        result = function(records, **_accepted_parameters(function, parameters))
    elif len(positional) > 1:
        result = function(records, dict(parameters))
    else:
        result = function(records)
    if not isinstance(result, DataFrame):
        raise UsageError(f"the code returned {type(result).__name__}, not a DataFrame")
    return result


def _accepted_parameters(function: UserFunction, parameters: Mapping[str, Any]) -> dict[str, Any]:
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


def _from_archive(path: Path, module: str, name: str) -> UserFunction | None:
    """The function, called with the modules of its own package around it."""
    archive = open_archive(path)
    function = getattr(archive.module(module), name, None)
    if not callable(function):
        return None

    @wraps(function)
    def inside(*arguments: Any, **named: Any) -> DataFrame:
        with archive.active():
            result: DataFrame = function(*arguments, **named)
            return result

    return inside
