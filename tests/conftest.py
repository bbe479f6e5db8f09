"""What all tests share: one Spark session, the command line in this process, one option."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from fogline.cli.main import main
from fogline.common.settings import Settings
from fogline.spark.session.session import JAR, open_session

JAVA = "-XX:TieredStopAtLevel=1"
"""Tests start Spark often and never run it for long: compiling thoroughly would take longer."""
os.environ.setdefault("FOGLINE_JAVA", JAVA)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--write-cases",
        action="store_true",
        help="write the expected plans and outputs of tests/cases anew, from the reference",
    )


@pytest.hookimpl(tryfirst=True)  # before xdist, which reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """For workers beside each other: a file stays with one of them, a folder that shares its sites
    too, and what takes long comes first."""
    folders = [Path(__file__).parent / name for name in ("sites", "fabric_sites")]
    early = [*folders, *(Path(__file__).parent / name for name in ("agent", "cli"))]
    items.sort(key=lambda item: not any(folder in item.path.parents for folder in early))
    for item in items:
        shared = next((folder for folder in folders if folder in item.path.parents), item.path)
        item.add_marker(pytest.mark.xdist_group(str(shared)))


@pytest.fixture(scope="session")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where Spark and the runs of the tests keep what they throw away."""
    return tmp_path_factory.mktemp("scratch")


@pytest.fixture(scope="session")
def settings(scratch: Path) -> Settings:
    return Settings(engine="local[8]", memory="1g", java=JAVA, partitions=2, scratch=scratch)


@pytest.fixture(scope="session")
def spark(settings: Settings) -> Iterator[SparkSession]:
    build_connector()
    session = open_session(settings, "fogline-tests")
    session.sparkContext.setLogLevel("OFF")
    session.conf.set("spark.sql.streaming.stopTimeout", "30s")
    yield session
    session.stop()


def build_connector() -> None:
    """The jar from the sources as they are now; nothing to do when it is newer than they are."""
    path = Path(__file__).resolve().parents[1] / "connector" / "build.py"
    spec = importlib.util.spec_from_file_location("connector_build", path)
    assert spec is not None
    assert spec.loader is not None
    builder = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(builder)
    builder.build(JAR)


# ── the command line ─────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str


Fogline = Callable[..., Outcome]


@pytest.fixture
def fogline(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Fogline:
    monkeypatch.setenv("FOGLINE_FUNCTIONS", str(tmp_path / "functions"))
    monkeypatch.setenv("FOGLINE_SCRATCH", str(tmp_path))

    def call(*arguments: str | Path) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["fogline", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            main()
        printed = capsys.readouterr()
        return Outcome(int(stop.value.code or 0), printed.out, printed.err)

    return call


@pytest.fixture
def query(tmp_path: Path) -> Callable[[str | bytes], Path]:
    """Writes a query file and gives its path."""

    def write(text: str | bytes) -> Path:
        path = tmp_path / "query.ins"
        path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
        return path

    return write
