"""A private PostgreSQL, and coordinators over made-up nodes."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from fogline.common.process.free_ports import free_port
from tests.coordinator.kit import CODE, FakeControl, Rig


def postgres_program(name: str) -> str:
    """Debian keeps these out of the PATH."""
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    path = str(found[-1]) if found else shutil.which(name)
    assert path, "PostgreSQL is not installed: run scripts/setup.sh"
    return path


def as_other(command: list[str]) -> None:
    """PostgreSQL refuses to run as root."""
    if os.geteuid() == 0:
        command = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", *command]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd="/")


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The address of a cluster that lives as long as the tests."""
    folder = Path(tempfile.mkdtemp(prefix="fogline-pg-"))
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres", "postgres")
    data, port = str(folder / "data"), free_port()
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder}"
    control = postgres_program("pg_ctl")
    try:
        as_other([postgres_program("initdb"), "-D", data, "-U", "fogline", "-A", "trust", "-N"])
        log = str(folder / "log")
        as_other([control, "-D", data, "-l", log, "-w", "-o", options, "start"])
        try:
            yield f"postgresql://fogline@127.0.0.1:{port}"
        finally:
            as_other([control, "-D", data, "-m", "immediate", "-w", "stop"])
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def postgres_url(postgres: str) -> str:
    """An empty database of its own."""
    name = f"t{uuid4().hex}"
    with psycopg.connect(f"{postgres}/postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    return f"{postgres}/{name}"


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.site)])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'store.db'}"
    return str(request.getfixturevalue("postgres_url"))


@pytest.fixture
def make_rig(tmp_path: Path) -> Iterator[Callable[..., Rig]]:
    made: list[Rig] = []

    def make(*nodes: str, control: FakeControl | None = None, url: str = "") -> Rig:
        rig = Rig(tmp_path, control or FakeControl(*(nodes or ("north", "south"))), url)
        rig.packages.add("clean.py", CODE.encode())
        made.append(rig)
        return rig

    yield make
    for rig in made:
        rig.end()
