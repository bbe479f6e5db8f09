"""Which worker runs which tests: a file stays with one, and so does a folder that shares its sites.

`--dist loadgroup` is not used: pytest-xdist 3.8 forgets all groups under pytest 9.2, and then every
worker starts every site and engine again.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from tests.tiers import declared_tier

__all__ = ["FileScheduling", "Producer", "start_order"]

SHARED = ("sites", "fabric_sites")
"""Folders under tests/ whose sites all their files use."""
_FIRST = ("site", "long", "spark", "unit")


class FileScheduling(LoadScopeScheduling):
    """Files in the order of `start_order`, each as a whole."""

    def __init__(self, config: pytest.Config, log: Producer) -> None:
        config.option.loadscopereorder = False
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        folder = Path(file).parent
        return str(folder) if folder.name in SHARED else file


def start_order(path: Path) -> int:
    """Sites that are shared come first, then other files by their tier."""
    return -1 if path.parent.name in SHARED else _FIRST.index(declared_tier(path))
