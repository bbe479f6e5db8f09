"""PySpark without the modules of its own tests.

To see whether an argument is one of numpy, PySpark 4.3 imports its testing package, and with that
numpy, pandas, Arrow and whatever can draw plots: most of a second at every start, and eighty
megabytes. A stand-in answers that one question; whoever needs more of the package gets the real
one.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

_NAME = "pyspark.testing.utils"


class _StandIn(ModuleType):
    @property
    def have_numpy(self) -> bool:
        """Where numpy is not imported yet, nothing can be one of its objects."""
        return "numpy" in sys.modules

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if sys.modules.get(_NAME) is self:
            del sys.modules[_NAME]
        return getattr(importlib.import_module(_NAME), name)


def without_tests() -> None:
    """Before the first call into Java; nothing where the package is there already."""
    sys.modules.setdefault(_NAME, _StandIn(_NAME))
