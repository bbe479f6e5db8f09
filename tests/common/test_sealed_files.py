"""Files of SQLite and Mosquitto: a change while they are closed is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from fogline.broker.mosquitto.server import Mosquitto
from fogline.common.sealed_files import broken_seal, seal, seal_of, unseal
from fogline.common.state_files import find_damaged
from fogline.coordinator.errors import RepositoryError
from fogline.coordinator.repository.store import Entry, Store
from tests.damage import DAMAGES, Damage

damages = pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)


@damages
def test_a_change_breaks_the_seal(tmp_path: Path, damage: Damage) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"0123456789" * 1000)
    seal(file)
    assert broken_seal(file) == ""
    whole = file.read_bytes()
    damage(file)
    assert broken_seal(file) == "its checksum is wrong"
    file.write_bytes(whole)
    damage(seal_of(file))
    assert broken_seal(file) in ("", "its seal .file.seal is damaged")
    unseal(file)
    assert broken_seal(file) == ""
    unseal(file)


def test_a_file_that_is_gone(tmp_path: Path) -> None:
    file = tmp_path / "file"
    seal(file)
    assert not seal_of(file).exists()
    file.write_bytes(b"1")
    seal(file)
    file.unlink()
    assert broken_seal(file) == "it is missing"


@damages
def test_a_damaged_database_of_a_coordinator_is_named(tmp_path: Path, damage: Damage) -> None:
    file = tmp_path / "coordinator.db"
    for _ in range(2):
        store = Store(f"sqlite:///{file}")
        store.log([Entry(12.5, "node", {"node": "north", "state": "online 0123456789"})])
        store.close()
    damage(file)
    for _ in range(2):
        with pytest.raises(RepositoryError, match=r"coordinator\.db is damaged: .*restore"):
            Store(f"sqlite:///{file}")


@pytest.mark.site
@damages
def test_mosquitto_starts_without_what_is_damaged(tmp_path: Path, damage: Damage) -> None:
    """Also after a crash, when there is no seal."""
    saved = tmp_path / "data" / "mosquitto.db"
    with Mosquitto(tmp_path):
        pass
    damage(saved)
    with Mosquitto(tmp_path) as broker:
        assert broker.running
    assert len(list(find_damaged([saved.parent]))) == 1
    damage(saved)
    unseal(saved)
    with Mosquitto(tmp_path) as broker:
        assert broker.running
