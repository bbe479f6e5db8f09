"""`fogline simulate` as a person calls it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner

from fogline.cli.simulate import simulate, start_ms
from fogline.common.errors import UsageError
from fogline.simulate import STREAMS


def test_help_has_every_option_and_an_example() -> None:
    shown = CliRunner().invoke(simulate, ["--help"])
    assert shown.exit_code == 0
    for word in ("--rate", "--seconds", "--pattern", "--seed", "--format", "--start", "--shuffle"):
        assert word in shown.output
    for word in ("--bad", "--mqtt", "--out", "fogline simulate city --rate"):
        assert word in shown.output


@pytest.mark.parametrize("name", STREAMS)
def test_writes_a_file(name: str, tmp_path: Path) -> None:
    path = tmp_path / "out"
    arguments = [name, "--rate", "50", "--seconds", "4", "--out", str(path)]
    done = CliRunner().invoke(simulate, arguments)
    assert done.exit_code == 0, done.output
    assert "wrote 200 messages" in done.stderr
    assert len(path.read_bytes().splitlines()) == 200


@pytest.mark.site
def test_quiet_says_nothing_even_on_a_terminal(tmp_path: Path) -> None:
    """`fogline demo` starts it beside its own table."""
    ours, terminal = os.openpty()
    command = [
        sys.executable,
        "-c",
        "from fogline.cli.main import main; main()",
        "simulate",
        "city",
    ]
    arguments = ["--rate", "50", "--seconds", "4", "--out", str(tmp_path / "out")]
    with os.fdopen(ours, "rb", buffering=0) as shown:
        subprocess.run([*command, *arguments, "--quiet"], stderr=terminal, check=True)
        os.write(terminal, b"end\n")
        assert shown.read(1000) == b"end\r\n"
        subprocess.run([*command, *arguments], stderr=terminal, check=True)
        assert b"wrote 200 messages" in shown.read(10_000)
    os.close(terminal)


def test_writes_to_standard_output_and_starts_when_told() -> None:
    arguments = ["grid", "--rate", "2", "--seconds", "2", "--start", "2030-05-06T07:08:09", "--out"]
    done = CliRunner().invoke(simulate, [*arguments, "-"])
    assert done.stderr == ""
    first = json.loads(done.stdout.splitlines()[0])
    assert first["time"] // 1000 == datetime(2030, 5, 6, 7, 8, 9, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    "arguments",
    [
        ["city"],
        ["city", "--out", "-", "--mqtt", "mqtt://127.0.0.1/x"],
        ["city", "--out", "-", "--rate", "0"],
        ["city", "--out", "-", "--bad", "2"],
        ["city", "--out", "-", "--start", "soon"],
        ["city", "--mqtt", "http://127.0.0.1/x"],
        ["city", "--mqtt", "mqtt://127.0.0.1:port/x"],
        ["city", "--mqtt", "mqtt://127.0.0.1/a/#"],
    ],
)
def test_wrong_calls_are_usage_errors(arguments: list[str]) -> None:
    done = CliRunner().invoke(simulate, arguments)
    assert isinstance(done.exception, UsageError)
    assert "\n" not in str(done.exception)


def test_unknown_streams_are_refused_by_the_parser() -> None:
    done = CliRunner().invoke(simulate, ["sea", "--out", "-"])
    assert done.exit_code == 2


def test_now_is_now() -> None:
    assert abs(start_ms("now") / 1000 - datetime.now(UTC).timestamp()) < 5
