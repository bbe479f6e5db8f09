"""One Spark session for the whole test run, and the option that writes expected results anew."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from fogline.settings import Settings
from fogline.spark.session import open_session


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--write-cases",
        action="store_true",
        help="write the expected plans and outputs of tests/cases anew, from the reference",
    )


@pytest.fixture(scope="session")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where Spark and the runs of the tests keep what they throw away."""
    return tmp_path_factory.mktemp("scratch")


@pytest.fixture(scope="session")
def settings(scratch: Path) -> Settings:
    return Settings(engine="local[2]", memory="1g", partitions=2, scratch=scratch)


@pytest.fixture(scope="session")
def spark(settings: Settings) -> Iterator[SparkSession]:
    session = open_session(settings, "fogline-tests")
    yield session
    session.stop()
