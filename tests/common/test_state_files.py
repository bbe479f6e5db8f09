"""State files: a damaged one is never taken for a right one, whatever the damage and the kind."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fogline.agent.engine.counters import Amount, InputCounter
from fogline.agent.jobs.assignments import Assignments
from fogline.agent.jobs.draining import Owed, load_endings, store_endings
from fogline.agent.jobs.start_positions import Life, _load, _store
from fogline.broker.mosquitto.journal import register
from fogline.common.errors import FoglineError
from fogline.common.http.server import listen_again
from fogline.common.state_files import (
    SetAside,
    StateDamaged,
    copy_of,
    find_damaged,
    read_state,
    remove_state,
    set_aside,
    write_state,
)
from fogline.fabric.api.tokens_file import add_token, list_tokens
from fogline.fabric.query.space_keys import SpaceKeys
from fogline.fabric.replicas.desired_replicas import DesiredCopies
from fogline.fabric.streams import fabric_log
from fogline.gateway.jobs import checkpoint
from fogline.gateway.jobs.checkpoint import Checkpoint
from fogline.links.identity import number_of
from fogline.log import LogWriter, get_position, set_position
from fogline.log.counting import RecordCounter
from fogline.log.files import sources
from fogline.model.jobs import Assignment, Query
from fogline.spark.jobs import checkpoints
from fogline.storage.files.identity import store_id
from tests.damage import DAMAGES, Damage

JOB = Assignment("job-12", "", Query("s = STREAM FROM memory(name='s');"))


@dataclass(frozen=True)
class Kind:
    """A kind of file: what writes it, what reads it, and what the reader may say when it is bad."""

    file: str
    write: Callable[[Path], Any]
    read: Callable[[Path], Any]
    fallback: Any = "raises"
    twice: bool = False


def _taken(folder: Path) -> None:
    taken = InputCounter(folder / "taken.json")
    taken._before = Amount(1234, 5, 6)
    taken.note()


def _counted(folder: Path) -> None:
    counter = RecordCounter(folder / "log", folder / "0")
    counter._position, counter.records = 1234, 567
    counter.close()


def _notes(folder: Path) -> None:
    (folder / "q" / "commits").mkdir(parents=True)
    (folder / "q" / "commits" / "7").write_text("v1\n{}")
    (folder / "q" / "offsets").mkdir()
    (folder / "q" / "offsets" / "7").write_text('v1\n{}\n{"files":{"log":4711}}')
    checkpoints.note_logs(folder / "q", ["a-12"])


def _port(folder: Path) -> int:
    server = listen_again("127.0.0.1", 0, folder / "port")
    server.stop()
    return server.port > 0


def outcome(kind: Kind, folder: Path) -> Any:
    """What is read, or `raises` for an error that names the file."""
    try:
        return kind.read(folder)
    except FoglineError as error:
        return "raises" if kind.file.rpartition("/")[2] in str(error) else str(error)


KINDS = {
    "assignments": Kind(
        "assignments.json",
        lambda f: Assignments(f).install([JOB]),
        lambda f: list(Assignments(f).all()),
        [],
        twice=True,
    ),
    "endings": Kind(
        "endings.json",
        lambda f: store_endings(f, [Owed(JOB, 12.5, {"log": 77})]),
        lambda f: [(o.since, o.ends) for o in load_endings(f)],
        [],
        twice=True,
    ),
    "lives": Kind(
        "lives.json",
        lambda f: _store(f, [Life(3, "c", {"log": 4711})]),
        lambda f: _load(f)[0].starts,
        twice=True,
    ),
    "taken": Kind("taken.json", _taken, lambda f: InputCounter(f / "taken.json").total, Amount()),
    "counted": Kind("0", _counted, lambda f: RecordCounter(f / "log", f / "0").records, fallback=0),
    "intake": Kind(
        "intake",
        lambda f: register(f, ["a", "b"]),
        lambda f: register(f, ["a", "b"]).source,
        twice=True,
    ),
    "position": Kind(
        "readers/r", lambda f: set_position(f, "r", 4711), lambda f: get_position(f, "r"), 0
    ),
    "sources": Kind(
        "sources",
        lambda f: sources.store(f, 4711, {12: 34}),
        lambda f: (sources.load(f).position, sources.load(f).epochs),
        (0, {}),
    ),
    "number of a log": Kind("id", number_of, number_of, twice=True),
    "id of a store": Kind(
        "id", lambda f: store_id(f, True), lambda f: store_id(f, False), twice=True
    ),
    "copies": Kind(
        "copies.json",
        lambda f: DesiredCopies(f).keep("north-12", ("a", "b1")),
        lambda f: DesiredCopies(f).all(),
        {},
        twice=True,
    ),
    "begins": Kind(
        "begins",
        lambda f: fabric_log._store(f, {12: 34}),
        lambda f: fabric_log._load(f / "begins"),
        {},
        twice=True,
    ),
    "keys of spaces": Kind(
        "space-keys.json",
        lambda f: SpaceKeys(f).set("s", ["k1"]),
        lambda f: SpaceKeys(f).of("s"),
        twice=True,
    ),
    "tokens": Kind("tokens.json", lambda f: add_token(f, "t1", ["read:values"]), list_tokens),
    "gateway checkpoint": Kind(
        "j.json",
        lambda f: checkpoint.store(f / "j.json", Checkpoint("l", 4711, state={"a": [1, 2]})),
        lambda f: checkpoint.load(f / "j.json"),
    ),
    "logs of a query": Kind("q.logs", _notes, checkpoints.committed_positions, {}),
    "port": Kind("port", _port, _port, fallback=True),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_damaged_file_is_never_taken_for_a_right_one(
    kind: Kind, damage: Damage, tmp_path: Path
) -> None:
    kind.write(tmp_path)
    right = kind.read(tmp_path)
    damage(tmp_path / kind.file)
    found = outcome(kind, tmp_path)
    assert found == (right if kind.twice else kind.fallback) or found == right


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
@pytest.mark.parametrize("kind", [k for k in KINDS.values() if k.twice], ids=lambda k: k.file)
def test_with_its_copy_damaged_too(kind: Kind, damage: Damage, tmp_path: Path) -> None:
    kind.write(tmp_path)
    right = kind.read(tmp_path)
    damage(tmp_path / kind.file)
    damage(copy_of(tmp_path / kind.file))
    found = outcome(kind, tmp_path)
    assert found in (kind.fallback, right)
    assert found in ("raises", right) or list(find_damaged([tmp_path]))


@pytest.mark.parametrize(
    "text", ["", "x", "x\n", "line\nanother", '{"a": 1}', "crc32 is no mark\n"]
)
@pytest.mark.parametrize("copy", [False, True])
def test_what_is_written_is_read(tmp_path: Path, text: str, copy: bool) -> None:
    path = tmp_path / "state"
    write_state(path, text, copy=copy)
    assert read_state(path) == (text if text.endswith("\n") else text + "\n")
    assert copy_of(path).exists() == copy
    remove_state(path)
    assert not list(tmp_path.iterdir())


def test_older_files_are_read(tmp_path: Path) -> None:
    for name, text in {"position": "4711\n", "json": '{"a": 1}', "list": "[1]\n"}.items():
        (tmp_path / name).write_text(text)
        assert read_state(tmp_path / name) == text
    (tmp_path / "cut").write_text("47")
    with pytest.raises(StateDamaged, match="its end is missing"):
        read_state(tmp_path / "cut")


def test_a_damaged_file_is_mended_from_its_copy_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "state"
    write_state(path, json.dumps({"a": 1}), copy=True)
    whole = path.read_bytes()
    path.write_bytes(b"rubbish")
    assert json.loads(read_state(path)) == {"a": 1}
    assert path.read_bytes() == whole
    (aside,) = find_damaged([tmp_path])
    assert aside.read_bytes() == b"rubbish"


def test_what_is_set_aside_is_told_once(tmp_path: Path) -> None:
    told: list[str] = []
    found = SetAside(told.append)
    found.look([tmp_path, tmp_path / "missing"])
    assert (found.files, told) == ([], [])
    (tmp_path / "state").write_bytes(b"rubbish")
    aside = set_aside(tmp_path / "state")
    assert aside is not None
    for _ in range(2):
        found.look([tmp_path])
        assert (found.files, told) == ([str(aside)], [f"damaged, and set aside: {aside}"])
    aside.unlink()
    found.look([tmp_path])
    assert found.files == []


def test_a_reader_without_a_place_goes_on_with_the_oldest_that_is_kept(tmp_path: Path) -> None:
    with LogWriter(tmp_path, "t", segment_bytes=100, min_free_bytes=0) as writer:
        for number in range(10):
            writer.append([("t", b"%090d" % number)])
            writer.commit()
    first, second, *_ = sorted(tmp_path.glob("*.seg"))
    first.unlink()
    set_position(tmp_path, "r", 777)
    DAMAGES["flipped bit"](tmp_path / "readers" / "r")
    assert get_position(tmp_path, "r") == int(second.stem)
    assert get_position(tmp_path, "r") == int(second.stem)
    assert len(list(find_damaged([tmp_path / "readers"]))) == 1
