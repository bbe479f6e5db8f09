"""The whole program: configuration, tokens, a real broker, REST on a socket, the client."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from fogline.common.errors import (
    ConflictError,
    DataError,
    NotFoundError,
    PipelineError,
    SetupError,
    UnauthorizedError,
    UnavailableError,
    UsageError,
)
from fogline.common.http.server import Server
from fogline.coordinator.api.rest import make_app
from fogline.coordinator.api.service import Service
from fogline.coordinator.api.tokens import Tokens, load_tokens, own_tokens
from fogline.coordinator.client import CoordinatorClient, find
from fogline.coordinator.config import CoordinatorConfig, parse_config, read_config
from fogline.coordinator.wiring import Coordinator
from tests.coordinator.kit import CODE, FakeControl, Rig, composition
from tests.waiting import wait_for

pytestmark = pytest.mark.site

TOKEN = "a-token-for-these-tests"


@pytest.fixture
def client(tmp_path: Path) -> Iterator[CoordinatorClient]:
    rig = Rig(tmp_path, FakeControl("north", "south")).begin()
    server = Server("127.0.0.1", 0)
    server.start(make_app(rig.service, Tokens([TOKEN])))
    yield CoordinatorClient(server.address, TOKEN)
    server.stop()
    rig.end()


def test_the_client_says_what_rest_says(client: CoordinatorClient, tmp_path: Path) -> None:
    file = tmp_path / "clean.py"
    file.write_text(CODE)
    assert client.put_package("clean.py", file)["size"] == len(CODE)
    assert len(client.packages()) == 1
    assert client.put_pipeline("p", composition(2), "yaml", dry_run=True)["dry_run"]
    assert client.pipelines() == []
    assert client.put_pipeline("p", composition(2), "yaml")["changed"]
    assert client.diff("p", composition(1), "yaml")["diff"]["counts"]["removed"] == 1
    wait_for(lambda: {job["state"] for job in client.jobs()} == {"running"})
    assert client.patch_job("job-0", {"limit": 4}, False)["changed"]
    assert client.logs("job-0", 1)["lines"] == ["job-0 says"]
    assert client.job("job-0")["parameters"] == {"limit": 4}
    assert client.pipeline("p")["revision"] == 2
    assert client.delete_job("job-0")["deleted"]
    assert client.delete_pipeline("p")["deleted"]
    assert [node["name"] for node in client.nodes()] == ["north", "south"]
    assert client.events(5)
    assert client.health()["ok"]


def test_the_client_raises_what_rest_refuses(client: CoordinatorClient, tmp_path: Path) -> None:
    with pytest.raises(PipelineError) as told:
        client.put_pipeline("p", "jobs: [", "yaml")
    assert told.value.problems[0].line in (1, 2)
    with pytest.raises(NotFoundError):
        client.delete_pipeline("p")
    with pytest.raises(ConflictError):
        client.forget_node("north")
    with pytest.raises(PipelineError):
        client.post_job({})
    with pytest.raises(UsageError):
        client.put_pipeline("p", "", "exe")
    with pytest.raises(DataError):
        client.put_package("x.py", tmp_path / "absent.py")
    with pytest.raises(UnauthorizedError) as refused:
        CoordinatorClient(client.url, "wrong-token-altogether").jobs()
    assert "wrong-token" not in str(refused.value)
    with pytest.raises(UnavailableError):
        CoordinatorClient("http://127.0.0.1:1", TOKEN).jobs()
    with pytest.raises(UsageError):
        CoordinatorClient("file:///etc/passwd", TOKEN)
    assert TOKEN not in repr(client)


def test_the_coordinator_is_found(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="address"):
        find(tmp_path, {})
    (tmp_path / "address").write_text("http://127.0.0.1:9\n123\n")
    (tmp_path / "token").write_text("from-the-file\n")
    assert find(tmp_path, {}).url == "http://127.0.0.1:9"
    named = find(tmp_path, {"FOGLINE_COORDINATOR": "http://h:1/", "FOGLINE_TOKEN": "x"})
    assert named.url == "http://h:1"


def test_tokens(tmp_path: Path) -> None:
    tokens = own_tokens(tmp_path)
    file = tmp_path / "token"
    assert file.stat().st_mode & 0o777 == 0o600
    assert tokens.admit(f"Bearer {file.read_text().strip()}".encode())
    assert not tokens.admit(b"Bearer ")
    assert file.read_text().strip() not in repr(tokens)
    text = file.read_text()
    own_tokens(tmp_path)
    assert file.read_text() == text
    file.write_text("# none\n\n")
    with pytest.raises(UsageError):
        own_tokens(tmp_path)
    file.write_text("short\n")
    with pytest.raises(UsageError) as told:
        load_tokens(file)
    assert "short" not in str(told.value)
    with pytest.raises(DataError):
        load_tokens(tmp_path / "absent")


def test_the_configuration(tmp_path: Path) -> None:
    defaults = read_config(None)
    assert (defaults.host, defaults.control.url) == ("127.0.0.1", None)
    file = tmp_path / "c.yaml"
    file.write_text("port: 0\nstore: postgresql://u:pw@h/d\ncontrol: {url: 'mqtt://h:1'}\n")
    config = read_config(file)
    assert (config.folder, config.port) == (tmp_path / "coordinator", 0)
    assert config.control.url == "mqtt://h:1"
    assert config.store_url.startswith("postgresql://")
    assert "pw" not in repr(config)
    assert parse_config(None, tmp_path, "x") == CoordinatorConfig(folder=tmp_path / "coordinator")


@pytest.mark.parametrize(
    "text",
    [
        "- a list",
        "prot: 1",
        "port: many",
        "port: 70000",
        "port: true",
        "host: 7",
        "control: 7",
        "control: {prot: 1}",
        "control: {user: me}",
        "control: {certificate: c.pem}",
        "a: [",
    ],
)
def test_configurations_that_are_wrong(tmp_path: Path, text: str) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(text)
    with pytest.raises(UsageError):
        read_config(file)
    with pytest.raises(DataError):
        read_config(tmp_path / "absent.yaml")


def test_a_taken_port_is_told() -> None:
    taken = Server("127.0.0.1", 0)
    with pytest.raises(SetupError, match="cannot listen"):
        Server("127.0.0.1", taken.port)
    taken.stop()


def test_a_real_broker_that_stays_at_its_port_and_one_coordinator_a_folder(tmp_path: Path) -> None:
    config = CoordinatorConfig(folder=tmp_path / "c")
    addresses = []
    for _ in range(2):
        coordinator = Coordinator(config)
        coordinator.start()
        addresses.append(coordinator.control_address)
        wait_for(partial(is_working, coordinator.service))
        with pytest.raises(SetupError, match="already"):
            Coordinator(config).start()
        coordinator.stop()
    assert addresses[0] == addresses[1]


def test_the_program_runs_and_ends_in_order(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text("port: 0\n")
    code = (
        "import sys; from pathlib import Path; from fogline.coordinator.run import run_coordinator;"
        "run_coordinator(Path(sys.argv[1]))"
    )
    root = Path(__file__).resolve().parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root / "src")}
    folder = tmp_path / "coordinator"
    command = [sys.executable, "-c", code, str(file)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, env=environment) as process:
        wait_for(lambda: (folder / "address").exists() or process.poll() is not None)
        assert process.poll() is None
        client = find(folder, {})
        wait_for(lambda: is_healthy(client))
        assert client.nodes() == []
        process.send_signal(signal.SIGTERM)
        assert process.stderr is not None
        said = process.stderr.read().decode()
        assert process.wait(20) == 0
    assert client.url in said
    assert (folder / "token").read_text().strip() not in said
    assert not (folder / "address").exists()


def is_working(service: Service) -> bool:
    return bool(service.health()["ok"])


def is_healthy(client: CoordinatorClient) -> bool:
    try:
        return bool(client.health()["ok"])
    except UnavailableError:
        return False
