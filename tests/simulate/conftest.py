"""Brokers of their own for the tests that publish."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.simulate.broker import Mosquitto, start_mosquitto, stop


@pytest.fixture
def mosquitto(tmp_path: Path) -> Iterator[Mosquitto]:
    broker = start_mosquitto(tmp_path)
    yield broker
    stop(broker)


@pytest.fixture
def locked_mosquitto(tmp_path: Path) -> Iterator[Mosquitto]:
    broker = start_mosquitto(tmp_path, password="s3cret word")
    yield broker
    stop(broker)
