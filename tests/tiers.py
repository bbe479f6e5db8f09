"""Four tiers of tests, each named by a mark. A file says its tier in one line below its imports,
`pytestmark = pytest.mark.spark`; a test or a parameter of it may be marked on its own. What has no
mark is of tier unit: it imports no pyspark and starts no process, and both are refused."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import pytest

TIERS = {
    "unit": "neither pyspark nor other processes",
    "spark": "with the Spark session that all tests of a worker share",
    "site": "starts processes: brokers, stores, sites, commands",
    "long": "kill matrices, load, many examples: only in `make test-long`",
}
HEAVY = [name for name in TIERS if name != "unit"]
_DECLARED = re.compile(rf"^pytestmark = \[?\s*pytest\.mark\.({'|'.join(HEAVY)})\b", re.MULTILINE)
_STARTS = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system"}


def declared_tier(path: Path) -> str:
    """From its text, because importing a test file may import pyspark."""
    found = _DECLARED.search(path.read_text(encoding="utf-8"))
    return found[1] if found else "unit"


def is_unit(item: pytest.Item) -> bool:
    return not any(item.get_closest_marker(name) for name in HEAVY)


def seeds(few: int, many: int) -> list[Any]:
    """For `parametrize`: the first few in every run, all of them in the long one."""
    rest = [pytest.param(seed, marks=pytest.mark.long) for seed in range(few, many)]
    return [*range(few), *rest]


class NoSpark:
    """Ahead of all other finders: nothing imports pyspark."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: object = None
    ) -> ModuleSpec | None:
        if name == "pyspark":
            raise ImportError("a unit test imports pyspark: mark its file spark or site")
        return None


class NoProcess:
    """Refuses processes while a unit test runs."""

    def __init__(self) -> None:
        self.active = False
        sys.addaudithook(self._audit)

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.active and event in _STARTS:
            raise RuntimeError(f"a unit test starts a process: mark it site ({arguments[:1]})")
