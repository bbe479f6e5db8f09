"""The project installs anywhere: no machine's paths, no registry's hosts, scripts that parse."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

import fogline

pytestmark = pytest.mark.site

ROOT = Path(__file__).resolve().parent.parent
TARGETS = [
    "setup",
    "demo",
    "test",
    "test-unit",
    "test-long",
    "lint",
    "bench",
    "bench-peers",
    "bench-site",
    "bench-sites",
    "bench-replicas",
    "bench-store",
    "clean",
    "help",
]
SKIPPED = {"node_modules", "__pycache__", "build", "dist", "fogline.egg-info"}

# The dots are bracketed so that this file does not hold what it looks for.
REGISTRY = re.compile(
    r"pypi[.]org|pythonhosted[.]org|registry[.]npmjs|npmjs[.]com|yarnpkg[.]com"
    r"|repo1?[.]maven|maven[.]apache[.]org/maven2|deb[.]debian[.]org|crates[.]io"
)
MACHINE_PATH = re.compile(r"(?<![\w.\-/}])/(?:work|home|root|Users)/[\w.]")


def is_made(path: Path) -> bool:
    """Whether the set-up or a test run made the file."""
    hidden = path.parts[0].startswith(".") and path.parts[0] not in (".ci", ".gitignore")
    return hidden or bool(SKIPPED & set(path.parts))


def project_files() -> list[Path]:
    """What git tracks or would track; where git is absent, all outside the skipped folders."""
    if shutil.which("git") and (ROOT / ".git").exists():
        command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True)
        paths = [ROOT / name for name in listed.stdout.split("\0") if name]
    else:
        paths = [path for path in ROOT.rglob("*") if not is_made(path.relative_to(ROOT))]
    return [path for path in paths if path.is_file() and not path.is_symlink()]


def hits(pattern: re.Pattern[str], paths: list[Path]) -> list[str]:
    found = []
    for path in paths:
        content = path.read_bytes()
        if b"\0" in content[:8192]:
            continue
        for number, line in enumerate(content.decode("utf-8", "replace").splitlines(), 1):
            if pattern.search(line):
                found.append(f"{path.name}:{number}: {line.strip()[:120]}")
    return found


def test_no_file_names_a_registry() -> None:
    assert hits(REGISTRY, project_files()) == []


def test_no_file_names_a_path_of_a_machine() -> None:
    assert hits(MACHINE_PATH, project_files()) == []


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        (REGISTRY, "index = https://" + "pypi" + ".org/simple"),
        (REGISTRY, '"resolved": "https://registry' + '.npmjs.org/x.tgz"'),
        (MACHINE_PATH, "cd /" + "home/ada/project"),
        (MACHINE_PATH, 'open("/' + 'root/data.csv")'),
    ],
)
def test_the_checks_can_fail(pattern: re.Pattern[str], line: str, tmp_path: Path) -> None:
    bad = tmp_path / "bad.txt"
    bad.write_text(f"fine\n{line}\n", encoding="utf-8")
    assert hits(pattern, [bad]) == [f"bad.txt:2: {line}"]


def test_scripts_parse_stop_at_errors_and_are_executable() -> None:
    scripts = [*sorted((ROOT / "scripts").glob("*.sh")), ROOT / ".ci" / "run"]
    assert len(scripts) >= 3
    for script in scripts:
        subprocess.run(["bash", "-n", str(script)], check=True)
        assert script.stat().st_mode & 0o111, f"{script.name} is not executable"
        assert "set -euo pipefail" in script.read_text(encoding="utf-8")


def test_make_help_lists_every_target() -> None:
    command = ["make", "--no-print-directory", "help"]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout
    listed = [line.split()[1] for line in shown.splitlines()]
    assert sorted(listed) == sorted(TARGETS)
    phony = re.findall(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    assert sorted(" ".join(phony).split()) == sorted(TARGETS)


def pinned() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pairs = [line.split("==") for line in lines if line and not line.startswith("#")]
    return {name.lower().replace("_", "-"): version for name, version in pairs}


def test_every_dependency_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
    names = {re.split(r"[<>=\[; ]", item)[0] for item in wanted}
    assert names <= set(pinned())
    assert pinned()["pyspark"] == "4.3.0"


def test_the_version_is_told_once() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == fogline.__version__
