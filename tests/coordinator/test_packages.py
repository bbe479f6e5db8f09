"""Packages are whole or absent, and code is tried where it can do no harm."""

from __future__ import annotations

import base64
import hashlib
import io
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from fogline.common.errors import DataError, NotFoundError, TooLargeError
from fogline.coordinator.errors import RepositoryError
from fogline.coordinator.pipelines import code_check
from fogline.coordinator.pipelines import packages as packages_module
from fogline.coordinator.pipelines.packages import PackageStore
from fogline.coordinator.repository.store import Alias, Store
from tests.coordinator.kit import CODE, Rig, composition
from tests.waiting import wait_for

pytestmark = pytest.mark.site


@pytest.fixture
def packages(tmp_path: Path) -> Iterator[PackageStore]:
    store = Store(f"sqlite:///{tmp_path / 'store.db'}")
    yield PackageStore(tmp_path / "packages", store, time.time)
    store.close()


def archive(files: dict[str, str]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as file:
        for name, text in files.items():
            file.writestr(name, text)
    return made.getvalue()


def test_a_package_comes_back_in_parts(
    packages: PackageStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packages_module, "CHUNK", 1000)
    content = bytes(range(256)) * 10
    sha256 = packages.add("jobs/data.py", content).sha256
    assert sha256 == hashlib.sha256(content).hexdigest()
    found = b""
    while len(found) < len(content):
        told = packages.read({"sha256": sha256, "offset": len(found)})
        assert told["size"] == len(content)
        found += base64.b64decode(told["data"])
    assert found == content
    assert packages.read({"sha256": sha256, "offset": 10**12})["data"] == ""


@pytest.mark.parametrize(
    "asked",
    [{}, {"sha256": 7}, {"sha256": "../../etc/passwd"}, {"sha256": "0" * 64, "offset": -1}],
)
def test_what_is_asked_wrong(packages: PackageStore, asked: dict[str, object]) -> None:
    with pytest.raises((DataError, NotFoundError)):
        packages.read(asked)


def test_a_damaged_file_is_not_used(packages: PackageStore, tmp_path: Path) -> None:
    sha256 = packages.add("clean.py", CODE.encode()).sha256
    (tmp_path / "packages" / sha256).write_text("something else")
    with pytest.raises(RepositoryError, match="damaged"):
        packages.read({"sha256": sha256})
    packages.add("clean.py", CODE.encode())
    assert packages.read({"sha256": sha256})["size"] == len(CODE)


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".py",
        "..",
        "a/..",
        "clean.exe",
        "clean py.py",
        "-clean.py",
        "1clean.py",
        "cl\0ean.py",
        "a\nb.py",
        "x" * 600 + ".py",
        ".hidden.py",
    ],
)
def test_names_that_are_refused(packages: PackageStore, name: str, tmp_path: Path) -> None:
    with pytest.raises(DataError):
        packages.add(name, CODE.encode())
    assert list((tmp_path / "packages").iterdir()) == []


def test_a_path_is_only_a_name(packages: PackageStore, tmp_path: Path) -> None:
    for name in ("../clean.py", "/etc/clean.py", "a/../../../clean.py"):
        assert packages.add(name, CODE.encode()).file == "clean.py"
    sha256 = hashlib.sha256(CODE.encode()).hexdigest()
    assert [path.name for path in (tmp_path / "packages").iterdir()] == [sha256]


def test_what_is_no_archive_or_too_large(
    packages: PackageStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(DataError, match="not a zip"):
        packages.add("a.whl", b"nothing")
    monkeypatch.setattr(packages_module, "LARGEST", 100)
    with pytest.raises(TooLargeError):
        packages.add("a.py", b"#" * 101)
    assert list((tmp_path / "packages").iterdir()) == []


def test_what_a_crash_left_is_cleared_away(tmp_path: Path) -> None:
    folder = tmp_path / "packages"
    folder.mkdir()
    (folder / "incoming-x").write_text("half")
    store = Store(f"sqlite:///{tmp_path / 'store.db'}")
    PackageStore(folder, store, time.time)
    assert list(folder.iterdir()) == []
    store.close()


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        (CODE, None),
        ("def clean(records, parameters): ...", None),
        ("def clean(records, **parameters): ...", None),
        ("def clean(records, parameters=None): ...", None),
        ("class clean:\n    def __init__(self, records): ...", None),
        ("import pyyaml_is_not_this", "needs a module that is not installed: pyyaml_is_not_this"),
        ("1/0", "cannot be imported: ZeroDivisionError: division by zero"),
        ("def clean(:", "cannot be imported: SyntaxError"),
        ("raise SystemExit(3)", "cannot be imported: SystemExit: 3"),
        ("other = 1", "has no function clean"),
        ("clean = 1", "is no function"),
        ("def clean(): ...", "wrong number of parameters"),
        ("def clean(a, b, c): ...", "wrong number of parameters"),
        ("def clean(a, *, b=1): ...", None),
        ("def clean(a, *, b): ...", "it needs parameter b"),
        ("def clean(a, b, c, *, d): ...", "wrong number of parameters"),
        ("import os\nos._exit(4)", "ends the process that imports it (4)"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)", "ends the process"),
        ("x = bytearray(1 << 40)", "MemoryError"),
        ("import fogline_nothing", "not installed"),
        ("import sys\nassert sys.stdin.read() == ''\ndef clean(r): ...", None),
        ('print(\'{"problem": "made up"}\')\ndef clean(r): ...', None),
        ("import os\nassert 'FOGLINE_TOKEN' not in os.environ\ndef clean(r): ...", None),
    ],
)
def test_code_is_tried(
    packages: PackageStore, code: str, problem: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOGLINE_TOKEN", "secret")
    told = packages.check_code(packages.add("clean.py", code.encode()), "clean:clean")
    if problem is None:
        assert told is None
    else:
        assert told is not None
        assert problem in told


@pytest.mark.parametrize(
    ("signature", "given", "problem"),
    [
        ("(r)", {}, None),
        ("(r)", {"a": 1}, "it has no parameter a: it takes none"),
        ("(r, parameters)", {"a": 1}, None),
        ("(r, **more)", {"a": 1}, None),
        ("(r, *, a)", {"a": 1}, None),
        ("(r, *, a, b)", {}, "it needs parameters a, b"),
        ("(r, *, a=0)", {"aa": 1}, "it has no parameter aa: it takes a"),
        ("(r, b, **more)", {}, "it needs parameter b"),
    ],
)
def test_parameters_are_those_of_the_function(
    packages: PackageStore, signature: str, given: dict[str, int], problem: str | None
) -> None:
    alias = packages.add("clean.py", f"def clean{signature}: ...".encode())
    assert packages.check_code(alias, "clean:clean", given) == problem


def test_slow_code_keeps_only_itself_waiting(packages: PackageStore) -> None:
    slow = packages.add("slow.py", b"import time\ntime.sleep(8)\ndef clean(r): ...")
    quick = packages.add("quick.py", b"def clean(r): ...")
    thread = threading.Thread(target=packages.check_code, args=(slow, "slow:clean"))
    thread.start()
    assert packages.check_code(quick, "quick:clean") is None
    assert thread.is_alive()
    thread.join()


def test_archives_are_put_on_the_path(packages: PackageStore) -> None:
    content = archive({"pack/__init__.py": "", "pack/jobs.py": CODE})
    alias = packages.add("pack-1.0-py3-none-any.whl", content)
    assert packages.check_code(alias, "pack.jobs:clean") is None
    assert "no module pack.other" in str(packages.check_code(alias, "pack.other:clean"))
    assert "another one" in str(packages.check_code(alias, "json:loads"))
    assert "is no entry" in str(packages.check_code(alias, "pack.jobs"))
    assert "is no entry" in str(packages.check_code(alias, "__import__('os'):x"))


def test_the_code_is_run_once(packages: PackageStore, monkeypatch: pytest.MonkeyPatch) -> None:
    alias = packages.add("clean.py", CODE.encode())
    assert packages.check_code(alias, "clean:clean") is None
    monkeypatch.setattr(packages_module, "check", None)
    assert packages.check_code(alias, "clean:clean") is None


FORKS = """
import os, subprocess, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(600)
    os._exit(0)
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)  # {mark}"])
{then}
"""


@pytest.mark.parametrize(
    ("then", "problem"),
    [("def clean(r): ...", None), ("time.sleep(600)", "not imported within 2 s")],
)
def test_what_the_code_starts_ends_with_it(tmp_path: Path, then: str, problem: str | None) -> None:
    file = tmp_path / "clean.py"
    mark = f"mark-{tmp_path.name}"
    file.write_text(FORKS.format(mark=mark, then=then))
    before = time.monotonic()
    verdict = code_check.check(file, "clean.py", "clean:clean", seconds=2)
    assert time.monotonic() - before < 60
    assert verdict.problem == (problem and f"clean.py is {problem}")
    assert verdict.passing is (problem is not None)
    wait_for(lambda: not any(is_ours(process, mark) for process in psutil.process_iter()))


def is_ours(process: psutil.Process, mark: str) -> bool:
    try:
        told = " ".join(process.cmdline())
        return mark in told or (
            "trial.py" in told and '"clean.py"' in told and '"seconds": 2' in told
        )
    except psutil.Error:
        return False


def test_the_same_package_twice_changes_nothing(packages: PackageStore) -> None:
    first = packages.add("clean.py", CODE.encode())
    assert packages.add("clean.py", CODE.encode()) == first
    assert isinstance(first, Alias)


def test_a_package_goes_a_day_after_the_last_job_that_needs_it(
    make_rig: Callable[..., Rig], monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = make_rig()
    used = rig.packages.add("clean.py", CODE.encode())
    other = rig.packages.add("other.py", b"x = 1\n")
    rig.service.put_pipeline("p", composition(1), "yaml")
    assert rig.service.remove_packages() == []
    hours = 0.0
    monkeypatch.setattr(rig.packages, "_clock", lambda: time.time() + hours * 3600)
    hours = 25
    assert rig.service.remove_packages() == [other.sha256]
    assert set(rig.store.aliases()) == {"clean.py"}
    rig.service.delete_pipeline("p")
    hours = 48
    assert rig.service.remove_packages() == []
    hours = 50
    assert rig.service.remove_packages() == [used.sha256]
    assert rig.store.aliases() == {}
    with pytest.raises(NotFoundError):
        rig.packages.path(used.sha256)
    assert rig.service.events()[-1]["removed"] == [used.sha256]
    rig.packages.add("clean.py", CODE.encode())
    rig.service.put_pipeline("p", composition(1), "yaml")
    assert rig.service.remove_packages() == []


def test_what_was_removed_meanwhile_is_not_deployed(make_rig: Callable[..., Rig]) -> None:
    rig = make_rig()
    rig.service.put_pipeline("p", composition(1), "yaml")
    rig.packages.path(rig.packages.add("clean.py", CODE.encode()).sha256).unlink()
    with pytest.raises(NotFoundError):
        rig.service.put_pipeline("p", composition(2), "yaml")
