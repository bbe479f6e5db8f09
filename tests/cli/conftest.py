"""Calls the command line in this process: fast, and with the session of the other tests."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from fogline.cli import main


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str


Fogline = Callable[..., Outcome]


@pytest.fixture
def fogline(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Fogline:
    monkeypatch.setenv("FOGLINE_FUNCTIONS", str(tmp_path / "functions"))
    monkeypatch.setenv("FOGLINE_SCRATCH", str(tmp_path))

    def call(*arguments: str | Path) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["fogline", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            main()
        printed = capsys.readouterr()
        return Outcome(int(stop.value.code or 0), printed.out, printed.err)

    return call


@pytest.fixture
def query(tmp_path: Path) -> Callable[[str | bytes], Path]:
    """Writes a query file and gives its path."""

    def write(text: str | bytes) -> Path:
        path = tmp_path / "query.ins"
        path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
        return path

    return write
