"""The tiers: what a unit run refuses, what it does not even import, and who runs what."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.scheduling import FileScheduling, start_order
from tests.tiers import declared_tier, seeds

ROOT = Path(__file__).resolve().parent.parent
REFUSED = """
import subprocess, sys
import pytest

@pytest.fixture(scope="module")
def child():
    return subprocess.run([sys.executable, "-c", ""])

def test_neither():
    assert "pyspark" not in sys.modules

def test_spark():
    import pyspark.sql

def test_process():
    subprocess.run([sys.executable, "-c", ""])

def test_process_of_a_fixture(child):
    pass

@pytest.mark.site
def test_site():
    subprocess.run([sys.executable, "-c", ""], check=True)
"""


def run_pytest(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.site
def test_a_unit_run_imports_no_pyspark() -> None:
    done = run_pytest("-m", "unit", "--collect-only", "-qq")
    assert done.returncode == 0, done.stdout


@pytest.mark.site
@pytest.mark.parametrize(("tier", "passed", "failed"), [("unit", 1, 2), ("not long", 3, 1)])
def test_a_unit_test_may_have_neither_pyspark_nor_processes(
    tmp_path: Path, tier: str, passed: int, failed: int
) -> None:
    """Processes are refused in every run; pyspark in one where nobody else needs it."""
    (tmp_path / "test_refused.py").write_text(REFUSED, encoding="utf-8")
    done = run_pytest("-p", "tests.conftest", "-m", tier, tmp_path)
    result = done.stdout.splitlines()[-1]
    assert f" {failed} failed, {passed} passed" in result
    assert " 1 error " in result
    assert "a unit test starts a process: mark it site" in done.stdout
    assert ("a unit test imports pyspark" in done.stdout) == (tier == "unit")


@pytest.mark.parametrize(
    ("text", "tier"),
    [
        ("pytestmark = pytest.mark.spark\n", "spark"),
        ("import pytest\n\npytestmark = [\n    pytest.mark.site,\n    pytest.mark.x,\n]\n", "site"),
        ("pytestmark = pytest.mark.skipif(True, reason='')\n", "unit"),
        ("@pytest.mark.site\ndef test_x() -> None: ...\n", "unit"),
        ("", "unit"),
    ],
)
def test_a_file_says_its_tier(tmp_path: Path, text: str, tier: str) -> None:
    (tmp_path / "test_x.py").write_text(text, encoding="utf-8")
    assert declared_tier(tmp_path / "test_x.py") == tier


def test_a_file_stays_with_one_worker_and_so_does_a_folder_of_sites() -> None:
    scheduling = FileScheduling.__new__(FileScheduling)
    scope = scheduling._split_scope
    assert scope("tests/log/test_x.py::test_a[1::2]") == scope("tests/log/test_x.py::test_b")
    assert scope("tests/log/test_x.py::test_a") != scope("tests/log/test_y.py::test_a")
    assert scope("tests/sites/test_x.py::test_a") == scope("tests/sites/test_y.py::test_a")


def test_what_takes_long_comes_first() -> None:
    here = ROOT / "tests"
    files = ("sites/test_kills.py", "agent/test_idle.py", "test_cases.py", "test_tiers.py")
    order = [start_order(here / name) for name in files]
    assert order == sorted(set(order))


def test_few_seeds_in_every_run_and_the_others_in_the_long_one() -> None:
    first, *rest = seeds(1, 4)
    assert first == 0
    assert [seed.values for seed in rest] == [(1,), (2,), (3,)]
    assert all(seed.marks == (pytest.mark.long,) for seed in rest)
