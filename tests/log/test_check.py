"""`check_log` says what is wrong with a log, where, and what it cost; it changes nothing."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from fogline.log.check import check_log
from fogline.log.files.damage import load_all
from tests.log.kit import flip, segments
from tests.log.test_damage_matrix import COMMITTED, FRAME_RECORDS, MATRIX, harmed, make_log

HARMLESS = {"nothing", "twice, behind", "longer"}
STATE_FILES = {"sources", "sources zeros", "removed note", "heard", "a position"}
"""`fogline fsck` checks them."""


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_every_harm_is_found_and_nothing_is_changed(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    total = len(make_log(whole))
    harms = [harm for harm, _ in MATRIX.values()] + list(COMMITTED.values())
    names = [*MATRIX, *COMMITTED]
    mosts = [most for _, most in MATRIX.values()] + [0] * len(COMMITTED)
    logs = harmed(tmp_path, whole, harms)
    for name, most, log in zip(names, mosts, logs, strict=True):
        before = contents(log)
        found = check_log(log)
        assert bool(found) == (name not in HARMLESS | STATE_FILES), name
        assert 0 <= sum(finding.records for finding in found) <= min(most, total), name
        assert contents(log) == before
        assert load_all(log) == []


def test_a_finding_names_file_and_offset(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    make_log(folder)
    bad = segments(folder)[1]
    flip(bad, 60)
    (finding,) = check_log(folder)
    assert (finding.path, finding.offset, finding.records) == (bad, 16, FRAME_RECORDS)


@pytest.mark.parametrize("committed", [b"", struct.pack("<Q", 66)])
def test_a_log_of_format_1_is_named(tmp_path: Path, committed: bytes) -> None:
    (tmp_path / f"{0:020}.seg").write_bytes(struct.pack("<6sHQ", b"FOGLOG", 1, 0) + bytes(50))
    (tmp_path / "committed").write_bytes(committed)
    (finding,) = check_log(tmp_path)
    assert "format 1" in finding.text
