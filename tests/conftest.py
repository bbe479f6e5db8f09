"""What all tests share: one Spark session, the command line in this process, one option."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest

from fogline.cli.main import main
from fogline.common.settings import Settings
from tests.scheduling import FileScheduling, Producer, start_order
from tests.tiers import TIERS, NoProcess, NoSpark, declared_tier, is_unit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAVA = "-XX:TieredStopAtLevel=1"
"""Tests start Spark often and never run it for long: compiling thoroughly would take longer."""
os.environ.setdefault("FOGLINE_JAVA", JAVA)

hypothesis.settings.register_profile("change", max_examples=50, deadline=None)
hypothesis.settings.register_profile("long", max_examples=1000, deadline=None)
hypothesis.settings.load_profile("change")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--write-cases",
        action="store_true",
        help="write the expected plans and outputs of tests/cases anew, from the reference",
    )


def pytest_configure(config: pytest.Config) -> None:
    for name, what in TIERS.items():
        config.addinivalue_line("markers", f"{name}: {what}")
    if config.option.markexpr == "unit":
        sys.meta_path.insert(0, NoSpark())


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """In a run of unit tests no other file is even imported."""
    heavy = (
        config.option.markexpr == "unit"
        and collection_path.suffix == ".py"
        and declared_tier(collection_path) != "unit"
    )
    return heavy or None


_no_process = NoProcess()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    _no_process.active = is_unit(item)
    try:
        return (yield)
    finally:
        _no_process.active = False


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown() -> None:
    """The last test of a worker ends what earlier ones shared, by processes where needed."""
    _no_process.active = False


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by mark
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes long comes first, so that workers end at the same time."""
    order = {path: start_order(path) for path in {item.path for item in items}}
    items.sort(key=lambda item: order[item.path])
    for item in items:
        if is_unit(item):
            item.add_marker("unit")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> FileScheduling:
    return FileScheduling(config, log)


@pytest.fixture(scope="session")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where Spark and the runs of the tests keep what they throw away."""
    return tmp_path_factory.mktemp("scratch")


@pytest.fixture(scope="session")
def settings(scratch: Path) -> Settings:
    return Settings(engine="local[8]", memory="1g", java=JAVA, partitions=2, scratch=scratch)


@pytest.fixture(scope="session")
def spark(settings: Settings) -> Iterator[SparkSession]:
    from fogline.spark.session.session import JAR, open_session

    build_connector(JAR)
    session = open_session(settings, "fogline-tests")
    session.sparkContext.setLogLevel("OFF")
    session.conf.set("spark.sql.streaming.stopTimeout", "30s")
    yield session
    session.stop()


def build_connector(jar: Path) -> None:
    """The jar from the sources as they are now; nothing to do when it is newer than they are."""
    path = Path(__file__).resolve().parents[1] / "connector" / "build.py"
    spec = importlib.util.spec_from_file_location("connector_build", path)
    assert spec is not None
    assert spec.loader is not None
    builder = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(builder)
    builder.build(jar)


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
