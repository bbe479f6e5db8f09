"""Functions that FUNCTION statements name: Python files an operator put in one folder.

A query can only name a file of that folder and something callable in it; no text of a query is
ever executed.
"""

from __future__ import annotations

import importlib.util
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from fogline.common.errors import FoglineError

_TARGET = re.compile(r"([A-Za-z][A-Za-z0-9_]*):([A-Za-z][A-Za-z0-9_]*)")


class UserFunctions:
    """Loads `module:callable` from a folder; each file is imported once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._modules: dict[str, ModuleType] = {}

    def check(self, target: str, arguments: int) -> str | None:
        """What is wrong with a declared function, or None."""
        try:
            function = self.load(target)
        except FoglineError as error:
            return error.message
        try:
            inspect.signature(function).bind(*[0.0] * arguments)
        except (TypeError, ValueError):
            return f'"{target}" does not take {arguments} argument(s)'
        return None

    def load(self, target: str) -> Callable[..., Any]:
        match = _TARGET.fullmatch(target)
        if match is None:
            raise FoglineError(f'"{target}" is not "module:callable"')
        found = getattr(self.module(match[1]), match[2], None)
        if not callable(found):
            raise FoglineError(f"{match[1]}.py has no function {match[2]}")
        function: Callable[..., Any] = found
        return function

    def module(self, name: str) -> ModuleType:
        if name not in self._modules:
            path = self._folder / f"{name}.py"
            if not path.is_file():
                raise FoglineError(f"there is no {name}.py in the functions folder {self._folder}")
            self._modules[name] = _import(name, path)
        return self._modules[name]


def _import(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"fogline_functions_{name}", path)
    if spec is None or spec.loader is None:
        raise FoglineError(f"{path} cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise FoglineError(f"{path.name} raises at import: {error}") from error
    return module
