"""`fogline fsck` over a site, a gateway and a coordinator as their processes leave them: silent on
what is right, and it finds each kind of damage in each kind of file."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from fogline.agent.engine.suppressed import MutedLogs, muted_file
from fogline.agent.jobs.assignments import Assignments
from fogline.agent.jobs.draining import Owed, store_endings
from fogline.common.fabric_secret import FabricSecret, save_secret
from fogline.common.state_files import write_state
from fogline.coordinator.repository.store import Store
from fogline.fabric.api.tokens_file import add_token
from fogline.fabric.membership.directory import Directory
from fogline.fabric.query.space_keys import SpaceKeys
from fogline.fabric.replicas.desired_replicas import DesiredCopies
from fogline.fabric.streams.fabric_log import _store as store_begins
from fogline.fsck.check import check_folder, owner_of
from fogline.gateway.jobs import checkpoint
from fogline.gateway.jobs.checkpoint import Checkpoint
from fogline.links.identity import number_of
from fogline.log import LogWriter, get_position, set_position
from fogline.model.jobs import Assignment, Query
from fogline.storage.store import SiteStore
from fogline.storage.values import Value, from_values
from tests.agent.kit import AgentProcess
from tests.agent.rooms import QUERY, publish, reading, results
from tests.conftest import Fogline
from tests.damage import DAMAGES
from tests.waiting import wait_for

pytestmark = pytest.mark.site

JOB = Assignment("job-12", "", Query("s = STREAM FROM memory(name='s');"))


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `fogline agent` leaves, beside its configuration."""
    agent = AgentProcess(tmp_path_factory.mktemp("site"), {"q": QUERY})
    agent.start()
    try:
        agent.wait_healthy()
        times = (0, 5000, 12_000, 60_000)
        publish(agent, "rooms/a", *(reading("a", at // 1000, at) for at in times), "rubbish")
        wait_for(lambda: len(results(agent, "level", "a")) >= 2, 60, "windows")
        assert agent.stop() == 0
    finally:
        agent.end()
    return agent.folder


@pytest.fixture(scope="module")
def site(left: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same, with files that it writes under a coordinator."""
    folder = Path(shutil.copytree(left / "test", tmp_path_factory.mktemp("more") / "site"))
    add_what_others_ask_for(folder)
    return folder


def add_what_others_ask_for(folder: Path) -> None:
    Assignments(folder).install([JOB])
    store_endings(folder, [Owed(JOB, 12.5, {"log": 77})])
    save_secret(folder, FabricSecret(1, "s" * 40, 0.0))
    DesiredCopies(folder).keep("south", None)
    Directory("test", folder).configure({"south": "http://127.0.0.1:4711"})
    MutedLogs(muted_file(folder / "jobs" / "q")).set(["insights/q/level"])
    write_state(folder / "jobs" / "q" / "lives.json", json.dumps([{"life": 1}]), copy=True)
    number_of(folder / "log" / "insights%2Fq%2Flevel")
    store_begins(folder / "log" / "insights%2Fq%2Flevel", {12: 34})
    SpaceKeys(folder / "store").set("s", ["k1"])
    add_token(folder / "store", "t1", ["read:values"])
    with SiteStore(folder / "copies" / "south") as copy:
        copy.ingest(from_values([Value("cpu", "e", at, float(at)) for at in range(1, 99)]))
    package = b"package 12"
    (folder / "packages").mkdir()
    (folder / "packages" / hashlib.sha256(package).hexdigest()).write_bytes(package)


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("gateway")
    for inner, name in {"jobs": "jobs", "logs/out": "out", "journal": "journal"}.items():
        with LogWriter(folder / inner, name, min_free_bytes=0) as log:
            log.append([("t", b"payload 12")])
            log.commit()
        set_position(folder / inner, "r", 0)
    checkpoint.store(folder / "state" / "j.json", Checkpoint("l", 4711, state={"a": [1, 2]}))
    return folder


@pytest.fixture(scope="module")
def coordinator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("coordinator")
    Store(f"sqlite:///{folder / 'coordinator.db'}").close()
    write_state(folder / "control-port", "4711\n")
    save_secret(folder, FabricSecret(1, "s" * 40, 0.0))
    return folder


SITE_FILES = (
    "assignments.json",
    "endings.json",
    "fabric-secret",
    "copies.json",
    "fabric.json",
    "store-port",
    "broker/port",
    "broker/data/mosquitto.db",
    "jobs/q/lives.json",
    "jobs/q/muted",
    "jobs/q/counted/0",
    "jobs/q/counted/taken.json",
    "jobs/q/checkpoints/*/windows.logs",
    "jobs/q/checkpoints/*/windows/metadata",
    "jobs/q/checkpoints/*/windows/offsets/1",
    "jobs/q/checkpoints/*/windows/commits/1",
    "jobs/q/checkpoints/*/windows/state/0/0/1.zip",
    "jobs/q/checkpoints/*/windows/state/0/0/2.changelog",
    "journal/intake",
    "journal/.intake.copy",
    "journal/readers/ingest",
    "log/rooms%2F%2B/readers/store",
    "log/rooms%2F%2B/topic",
    "log/insights%2Fq%2Flevel/id",
    "log/insights%2Fq%2Flevel/begins",
    "store/manifest",
    "store/.manifest.copy",
    "store/id",
    "store/tables.db",
    "store/space-keys.json",
    "store/tokens.json",
    "store/data/*.parquet",
    "copies/south/manifest",
    "copies/south/tables.db",
    "copies/south/data/*.parquet",
    "packages/*",
)
GATEWAY_FILES = ("state/j.json", "jobs/readers/r", "logs/out/topic", "journal/readers/r")
COORDINATOR_FILES = ("coordinator.db", "control-port", "fabric-secret")


def problems(folder: Path) -> list[Path]:
    return [finding.path for finding in check_folder(folder, owner_of(folder))]


def found_in(folder: Path, pattern: str) -> None:
    """Every kind of damage to a file is found, in that file alone; then it is as it was."""
    file = next(folder.glob(pattern))
    whole = file.read_bytes()
    try:
        for name, damage in DAMAGES.items():
            file.write_bytes(whole)
            damage(file)
            assert problems(folder) == [file], name
    finally:
        file.write_bytes(whole)


@pytest.mark.parametrize("file", SITE_FILES)
def test_damage_to_a_file_of_a_site_is_found(site: Path, file: str) -> None:
    found_in(site, file)


def test_damage_to_checksums_of_a_checkpoint_is_found(site: Path) -> None:
    file = next(site.glob("jobs/q/checkpoints/*/windows/offsets/1"))
    sums = file.with_name(".1.crc")
    whole = sums.read_bytes()
    try:
        for damage in DAMAGES.values():
            sums.write_bytes(whole)
            damage(sums)
            assert problems(site) in ([sums], [file])
    finally:
        sums.write_bytes(whole)


@pytest.mark.parametrize("file", GATEWAY_FILES)
def test_damage_to_a_file_of_a_gateway_is_found(gateway: Path, file: str) -> None:
    found_in(gateway, file)


@pytest.mark.parametrize("file", COORDINATOR_FILES)
def test_damage_to_a_file_of_a_coordinator_is_found(coordinator: Path, file: str) -> None:
    found_in(coordinator, file)


@pytest.mark.parametrize("file", ["log/rooms%2F%2B/*.seg", "journal/*.seg"])
@pytest.mark.parametrize("damage", ["flipped bit", "zeroed", "half"])
def test_damage_to_a_segment_is_found(site: Path, file: str, damage: str, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(site, tmp_path / "site"))
    segment = next(folder.glob(file))
    DAMAGES[damage](segment)
    assert set(problems(folder)) == {segment}


def test_nothing_is_found_where_nothing_is_wrong_and_nothing_changed(
    site: Path, gateway: Path, coordinator: Path, fogline: Fogline
) -> None:
    for folder, kind in ((site, "site"), (gateway, "gateway"), (coordinator, "coordinator")):
        before = contents(folder)
        outcome = fogline("fsck", folder, "--json")
        assert (outcome.code, outcome.err) == (0, "")
        told = {"folder": str(folder), "kind": kind, "running": False, "problems": 0}
        assert json.loads(outcome.out) == told
        assert contents(folder) == before


def contents(folder: Path) -> dict[str, Any]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


def test_a_problem_says_what_is_lost_and_what_to_do(
    site: Path, tmp_path: Path, fogline: Fogline
) -> None:
    folder = Path(shutil.copytree(site, tmp_path / "site"))
    file = next((folder / "store" / "data").iterdir())
    DAMAGES["flipped bit"](file)
    outcome = fogline("fsck", folder)
    assert outcome.code == 1
    first, lost, hint, last = outcome.out.splitlines()
    assert first == f"{file}: the checksum is wrong"
    assert "values from" in lost
    assert "start the site" in hint
    assert last == f"{folder}: site, 1 problem found"
    problem, _ = map(json.loads, fogline("fsck", folder, "--json").out.splitlines())
    assert sorted(problem) == ["hint", "lost", "path", "problem"]


def test_what_was_set_aside_is_a_problem_until_it_is_removed(gateway: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(gateway, tmp_path / "gateway"))
    DAMAGES["half"](folder / "jobs" / "readers" / "r")
    get_position(folder / "jobs", "r")
    (aside,) = problems(folder)
    aside.unlink()
    assert problems(folder) == []


def test_a_site_that_runs_is_told(site: Path, tmp_path: Path, fogline: Fogline) -> None:
    folder = Path(shutil.copytree(site, tmp_path / "site"))
    with (folder / "agent.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        outcome = fogline("fsck", folder)
    assert outcome.code == 0
    assert "is running" in outcome.err


@pytest.mark.parametrize("kind", ["missing", "empty", "file", "other"])
def test_what_is_no_folder_of_ours_is_refused(tmp_path: Path, kind: str, fogline: Fogline) -> None:
    folder = tmp_path / "folder"
    if kind == "file":
        folder.write_text("text")
    elif kind != "missing":
        folder.mkdir()
    if kind == "other":
        (folder / "log").mkdir()
        (folder / "log" / "messages").write_text("text")
    outcome = fogline("fsck", folder)
    assert (outcome.code, outcome.out) == (2, "")
    assert str(folder) in outcome.err


def test_links_and_other_things_are_not_followed(gateway: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(gateway, tmp_path / "gateway"))
    (folder / "logs" / "loop").symlink_to(folder / "logs")
    (folder / "jobs" / "readers" / "loop").symlink_to("loop")
    (folder / "state" / "link.json").symlink_to("/dev/zero")
    os.mkfifo(folder / "state" / "pipe.json")
    (folder / "state" / "folder.json").mkdir()
    assert problems(folder) == []


def test_a_file_that_cannot_be_read_is_a_problem(
    gateway: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Permissions do not keep a superuser out, so reading is made to fail."""
    file = gateway / "state" / "j.json"
    read = Path.read_bytes

    def fail(path: Path) -> bytes:
        if path == file:
            raise PermissionError(13, "Permission denied", str(path))
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", fail)
    (found,) = check_folder(gateway, owner_of(gateway))
    assert found.path == file
    assert found.problem == "it cannot be read: Permission denied"


def test_a_file_that_is_huge(gateway: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(gateway, tmp_path / "gateway"))
    huge = [
        folder / "state" / "j.json",
        folder / "jobs" / "readers" / "r",
        folder / "jobs" / "topic",
    ]
    for file in huge:
        os.truncate(file, 1 << 40)
    assert problems(folder) == huge[:2]


def test_a_folder_of_many_files(tmp_path: Path) -> None:
    """What is not ours is not even looked at."""
    with LogWriter(tmp_path / "jobs", "jobs", min_free_bytes=0):
        pass
    for number in range(3000):
        (tmp_path / "jobs" / f"other-{number}").write_text("x")
    deep = tmp_path.joinpath(*["deep"] * 200)
    deep.mkdir(parents=True)
    assert problems(tmp_path) == []


def test_a_damaged_site_runs_and_says_so(left: Path, tmp_path: Path) -> None:
    agent = AgentProcess(Path(shutil.copytree(left, tmp_path / "again")), {"q": QUERY})
    folder = agent.folder / "test"
    checkpoint = next(folder.glob("jobs/q/checkpoints/*/windows"))
    value_file = next((folder / "store" / "data").iterdir())
    aside = (
        "jobs/q/counted/taken.json",
        "broker/data/mosquitto.db",
        "log/insights%2Fq%2Flevel/readers/publisher",
        "store-port",
    )
    for file in (*(folder / name for name in aside), checkpoint / "offsets" / "1", value_file):
        DAMAGES["flipped bit"](file)
    DAMAGES["zeroed"](checkpoint / "commits" / "2")
    agent.start()
    try:
        stopped = f"move {checkpoint} away"
        wait_for(lambda: stopped in windows(agent).get("problem", ""), 120, agent.status)
        publish(agent, "rooms/b", reading("b", 7, 70_000))
        wait_for(lambda: results(agent, "now", "b"), 60, "value of a query that is whole")
        wait_for(lambda: len(agent.status().get("damaged", {}).get("files", [])) == 4, 60)
        status = agent.status()
        assert not status["healthy"]
        named = {Path(path).name.split(".damaged-")[0] for path in status["damaged"]["files"]}
        assert named == {".taken.json", ".mosquitto.db", ".publisher", ".store-port"}
        assert status["store"]["state"] == "damaged"
        assert [lost["name"] for lost in status["store"]["store"]["lost"]] == [value_file.name]
        assert [status[part]["restarts"] for part in ("ingest", "engine", "store")] == [0, 0, 0]
        assert agent.stop() == 0
    finally:
        agent.end()


def windows(agent: AgentProcess) -> dict[str, Any]:
    jobs = agent.status().get("engine", {}).get("jobs", [])
    found = [query for job in jobs for query in job["queries"] if query["name"] == "windows"]
    return found[0] if found else {}
