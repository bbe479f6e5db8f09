"""The control brokers that the one suite runs against."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.control.worlds import MemoryWorld, MqttWorld, World


@pytest.fixture(params=["memory", pytest.param("mosquitto", marks=pytest.mark.site)])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    made = MemoryWorld() if request.param == "memory" else MqttWorld(tmp_path / "broker")
    yield made
    made.close()


@pytest.fixture
def mqtt(tmp_path: Path) -> Iterator[MqttWorld]:
    made = MqttWorld(tmp_path / "broker")
    yield made
    made.close()
