"""The wheel in a new environment, without the source tree: what a user has who installs it.

What it depends on is taken from this environment: only Fogline itself is under test.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from fogline.common.process.free_ports import free_port
from tests.agent.kit import kill_with_children
from tests.waiting import wait_for

pytestmark = pytest.mark.site

ROOT = Path(__file__).resolve().parents[2]
BUILT_FROM = ("pyproject.toml", "LICENSE", "README.md", "src", "connector", "native", "scripts")
QUERY = """
s = STREAM FROM mqtt(topic="in", format="json", time="t", schema="x double");
double = COMPUTE x * 2;
"""
READING = '{"t": 1735689600000, "x": 21}'


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy: the build writes into the tree that it builds."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    built = shutil.ignore_patterns("*.jar", "*.jsa", "*.so", "*.egg-info", "__pycache__")
    for name in BUILT_FROM:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, ignore=built)
        else:
            shutil.copy(ROOT / name, source)
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--wheel-dir", str(out), str(source)], check=True)
    (made,) = out.iterdir()
    return made


@pytest.fixture(scope="module")
def command(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`fogline`, as installed from the wheel."""
    folder = tmp_path_factory.mktemp("installed") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    python = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    subprocess.run([*pip, "--no-deps", "--no-index", str(wheel)], check=True)
    dependencies = sysconfig.get_paths()["purelib"]
    found = next(folder.glob("lib/python*/site-packages"))
    (found / "dependencies.pth").write_text(dependencies + "\n", encoding="utf-8")
    where = "import fogline; print(fogline.__file__)"
    told = subprocess.run([python, "-c", where], capture_output=True, text=True, check=True)
    assert Path(told.stdout.strip()).is_relative_to(folder)
    return folder / "bin" / "fogline"


def test_it_is_for_this_platform_and_holds_jar_and_plugins(wheel: Path) -> None:
    platform = sysconfig.get_platform().replace("-", "_")
    assert wheel.name.endswith(f"-py3-none-{platform}.whl")
    names = [Path(name).name for name in zipfile.ZipFile(wheel).namelist()]
    for needed in ("fogline-connector.jar", "fogline_journal.so", "fogline_access.so"):
        assert names.count(needed) == 1
    assert not [name for name in names if name.endswith(".jsa") or name.startswith("test_")]


def test_it_checks_and_runs_a_query_over_a_file(command: Path, tmp_path: Path) -> None:
    (tmp_path / "q.ins").write_text(QUERY, encoding="utf-8")
    (tmp_path / "in.json").write_text(READING + "\n", encoding="utf-8")
    assert _call(command, tmp_path, "check", "q.ins").returncode == 0
    run = _call(command, tmp_path, "run", "q.ins", "--input", "in.json", "--json")
    assert run.returncode == 0, run.stderr
    assert [json.loads(line)["value"] for line in run.stdout.splitlines()] == [42.0]


def _call(command: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [command, *arguments], cwd=folder, capture_output=True, text=True, check=False, timeout=300
    )


def test_it_is_a_live_site(command: Path, tmp_path: Path) -> None:
    port, out = free_port(), tmp_path / "out.json"
    (tmp_path / "q.ins").write_text(QUERY, encoding="utf-8")
    send = ["mosquitto_pub", "-p", str(port), "-t", "in", "-q", "1", "-m", READING]
    run = [str(command), "run", "q.ins", "--mqtt-port", str(port), "--json"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with out.open("wb") as file:
        site = subprocess.Popen(run, cwd=tmp_path, stdout=file, env=environment)
    try:
        wait_for(lambda: not subprocess.run(send, capture_output=True).returncode, 60, "broker")
        wait_for(out.read_bytes, 120, "result")
        site.send_signal(signal.SIGINT)
        assert site.wait(60) == 0
    finally:
        kill_with_children(site)
    assert {json.loads(line)["value"] for line in out.read_text().splitlines()} == {42.0}
