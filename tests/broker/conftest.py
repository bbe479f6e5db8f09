"""The brokers that the one suite runs against, and a Mosquitto for the tests of MQTT alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fogline.broker.mosquitto.server import Mosquitto, MosquittoOptions
from tests.broker.worlds import MemoryWorld, MqttWorld, World

_PROTOCOLS = [pytest.param(name, marks=pytest.mark.site) for name in ("mqtt5", "mqtt311")]


@pytest.fixture(params=["memory", *_PROTOCOLS])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    protocols = {"mqtt5": 5, "mqtt311": 4}
    made: World
    if request.param == "memory":
        made = MemoryWorld()
    else:
        made = MqttWorld(tmp_path / "broker", protocols[request.param])
    yield made
    made.close()


@pytest.fixture
def mosquitto(tmp_path: Path) -> Iterator[Mosquitto]:
    with Mosquitto(tmp_path / "broker", MosquittoOptions()) as broker:
        yield broker
