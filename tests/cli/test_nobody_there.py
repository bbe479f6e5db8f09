"""A command that needs a coordinator, a site, a store or a broker, and finds none, says in one line
which command starts one, and exits with 1."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from fogline.cli.main import cli
from fogline.fabric.membership.local_sites import LocalSite, leave_note

COORDINATOR = {
    "deploy": "deploy x.yaml",
    "diff": "diff x.yaml",
    "status": "status",
    "jobs": "jobs x",
    "sites": "sites",
    "replicas": "replicas",
    "replicas add": "replicas add north south",
    "replicas remove": "replicas remove north south",
    "fabric": "fabric",
    "fabric rotate-secret": "fabric rotate-secret",
    "delete": "delete x",
    "update": "update x least=1",
    "start": "start x",
    "stop": "stop x",
    "logs": "logs x",
}
STORE = {
    "query": "query temperature",
    "query latest": "query latest",
    "query range": "query range temperature --from -15m",
    "query aggregate": "query aggregate temperature --bucket 1m",
    "query metrics": "query metrics",
    "query nodes": "query nodes",
    "query sql": "query sql SELECT",
    "query spaces": "query spaces",
    "query space": "query space orders",
    "query put": "query put door 1",
    "run": "run fabric.ins --from -1h",
}
SITE = {
    "tokens add": "tokens add plant --right read:values",
    "tokens list": "tokens list",
    "tokens remove": "tokens remove plant",
    "log damage": "log damage",
    "log acknowledge": "log acknowledge",
}
BROKER = {"simulate": "simulate city --rate 1 --seconds 1 --mqtt mqtt://127.0.0.1:{port}"}
ALONE = {"fsck", "check", "explain", "demo", "agent", "gateway", "coordinator", "tokens"}
"""They need nobody, or go on trying."""

START_COORDINATOR = "fogline coordinator"
START_SITE = "fogline agent --config site.yaml"
FABRIC = 's = STREAM FROM storageFabric(metricID="cpu"); i = COMPUTE cpu;'


def cases(commands: dict[str, str]) -> list[Any]:
    """`run` imports pyspark."""
    marks = {"run": [pytest.mark.spark]}
    return [
        pytest.param(text, id=name, marks=marks.get(name, [])) for name, text in commands.items()
    ]


@pytest.fixture(autouse=True)
def nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with files for the commands, and nobody who runs."""
    for name in ("FOGLINE_COORDINATOR", "FOGLINE_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.yaml").write_text("jobs: []\n", encoding="utf-8")
    (tmp_path / "fabric.ins").write_text(FABRIC, encoding="utf-8")
    return tmp_path


@pytest.fixture
def port() -> Iterator[int]:
    """Where nobody listens, and nobody else can begin to."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


@pytest.fixture
def says(fogline: Callable[..., Any]) -> Callable[[str, str], None]:
    def check(command: str, start: str) -> None:
        told = fogline(*command.split())
        assert (told.code, told.out) == (1, "")
        assert re.fullmatch(rf"fogline: [^\n]*{re.escape(start)}[^\n]*\n", told.err), told.err

    return check


def leaves(command: click.Command, *names: str) -> Iterator[str]:
    """All commands that do something, by their names."""
    group = command if isinstance(command, click.Group) else None
    if names and (group is None or group.invoke_without_command):
        yield " ".join(names)
    context = click.Context(command)
    for name in group.list_commands(context) if group is not None else ():
        found = group.get_command(context, name) if group is not None else None
        assert found is not None
        yield from leaves(found, *names, name)


def test_the_tables_know_every_command() -> None:
    assert set(leaves(cli)) <= {*COORDINATOR, *STORE, *SITE, *BROKER, *ALONE}


@pytest.mark.parametrize("command", COORDINATOR.values(), ids=COORDINATOR)
def test_no_coordinator(command: str, says: Callable[[str, str], None]) -> None:
    says(command, START_COORDINATOR)


@pytest.mark.parametrize("command", COORDINATOR.values(), ids=COORDINATOR)
def test_a_coordinator_that_does_not_answer(
    command: str, says: Callable[[str, str], None], port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOGLINE_COORDINATOR", f"http://127.0.0.1:{port}")
    says(command, "FOGLINE_TOKEN")
    monkeypatch.setenv("FOGLINE_TOKEN", "a token of sixteen")
    says(command, START_COORDINATOR)


@pytest.mark.parametrize("command", cases(STORE | SITE))
def test_no_site(command: str, says: Callable[[str, str], None]) -> None:
    says(command, START_SITE)
    says(f"{command} --site west", START_SITE)


@pytest.mark.parametrize("command", cases(STORE))
def test_a_site_without_a_store(
    command: str, says: Callable[[str, str], None], nobody: Path
) -> None:
    leave_note(LocalSite("north", nobody, os.getpid(), http="http://127.0.0.1:1"))
    says(command, START_SITE)


@pytest.mark.parametrize("command", cases(STORE))
def test_a_store_that_does_not_answer(
    command: str, says: Callable[[str, str], None], nobody: Path, port: int
) -> None:
    (nobody / "store").mkdir()
    (nobody / "store" / "token").write_text("a token of sixteen\n", encoding="utf-8")
    leave_note(LocalSite("north", nobody, os.getpid(), store=f"http://127.0.0.1:{port}"))
    says(command, START_SITE)
    says(f"{command} --url http://127.0.0.1:{port} --token-file store/token", START_SITE)


@pytest.mark.parametrize("command", BROKER.values(), ids=BROKER)
def test_no_broker(command: str, says: Callable[[str, str], None], port: int) -> None:
    says(command.format(port=port), START_SITE)
    says(command.format(port=port), "fogline run FILE.ins --mqtt-port")
