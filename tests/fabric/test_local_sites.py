"""Sites of this machine are found by the notes they leave, and only while they run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from fogline.common.errors import SetupError, UsageError
from fogline.fabric.membership.local_sites import (
    LocalSite,
    find_site,
    leave_note,
    local_sites,
    notes_folder,
)


@pytest.fixture(autouse=True)
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path


def site(name: str, pid: int = 0, **addresses: str) -> LocalSite:
    return LocalSite(name, Path("/srv") / name, pid or os.getpid(), **addresses)


def ended_process() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_the_only_site_is_found_without_its_name() -> None:
    note = leave_note(site("north", store="http://127.0.0.1:1"))
    assert find_site() == find_site("north") == site("north", store="http://127.0.0.1:1")
    note.unlink()
    with pytest.raises(SetupError, match="no site runs"):
        find_site()


def test_a_newer_note_takes_the_place_of_the_older_one() -> None:
    assert leave_note(site("north")) == leave_note(site("north", store="http://127.0.0.1:2"))
    assert find_site().store == "http://127.0.0.1:2"


def test_of_several_sites_one_must_be_named() -> None:
    leave_note(site("north"))
    leave_note(site("south", os.getppid()))
    with pytest.raises(UsageError, match=r"north \(process \d+\), south"):
        find_site()
    assert find_site("south").pid == os.getppid()
    with pytest.raises(SetupError, match="no site west"):
        find_site("west")


@pytest.mark.site
def test_what_a_dead_process_left_is_removed() -> None:
    note = leave_note(site("north", ended_process()))
    assert local_sites() == []
    assert not note.exists()


def test_the_number_of_a_dead_process_says_nothing_about_who_has_it_now() -> None:
    note = leave_note(site("north"))
    before = psutil.Process().create_time() - 60
    os.utime(note, (before, before))
    assert local_sites() == []
    assert not note.exists()


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "7", '{"site": "a"}', '{"folder": 3, "pid": 1}', "[" * 100_000, "\ud800"]
    + [json.dumps({"site": "a", "folder": "/a", "pid": pid}) for pid in ("x", None, -1, 10**30)],
)
def test_notes_that_are_none_do_not_count(text: str) -> None:
    leave_note(site("north"))
    (notes_folder() / "1.json").write_bytes(text.encode("utf-8", "surrogatepass"))
    assert [found.site for found in local_sites()] == ["north"]
