"""Four real sites and a coordinator, shared by the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fogline.demo.world import SiteSpec, World

EDGE = {"tier": "edge"}


@pytest.fixture(scope="package")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    specs = [
        SiteSpec("a", EDGE),
        SiteSpec("b", EDGE),
        SiteSpec("c"),
        SiteSpec("d", {"tier": "cloud"}),
    ]
    folder: Path = tmp_path_factory.mktemp("world")
    with World(folder, specs) as made:
        yield made
