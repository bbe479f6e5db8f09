"""Every command explains itself, with an example that the command line accepts."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from typing import Any

import click
import pytest

from fogline import __version__
from fogline.cli.main import cli

CONTEXT = click.Context(cli)
COMMANDS = cli.list_commands(CONTEXT)


def command_named(name: str) -> click.Command:
    found = cli.get_command(CONTEXT, name)
    assert found is not None
    return found


def help_of(name: str) -> str:
    command = command_named(name)
    return command.get_help(click.Context(command, info_name=f"fogline {name}"))


def examples(text: str) -> list[str]:
    joined = text.replace("\\\n", " ")
    found = re.findall(r"^\s+(fogline .*)$", joined.partition("Example")[2], re.MULTILINE)
    return [line.partition(" | ")[0] for line in found]


def test_the_commands() -> None:
    assert {"check", "explain", "run", "simulate", "demo"} <= set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_shows_an_example(name: str) -> None:
    assert examples(help_of(name))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_explained(name: str) -> None:
    parameters = command_named(name).params
    options = [p for p in parameters if isinstance(p, click.Option) and not p.hidden]
    assert all(option.help for option in options)


@pytest.mark.parametrize("name", COMMANDS)
def test_examples_parse(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(click.Path, "convert", lambda self, value, param, ctx: value)
    for example in examples(help_of(name)):
        _, command, *rest = shlex.split(example)
        assert command in COMMANDS
        command_named(command).make_context(command, rest)


def test_the_whole_help_lists_the_commands(fogline: Callable[..., Any]) -> None:
    told = fogline("--help")
    assert told.code == 0
    assert all(name in told.out for name in COMMANDS)
    assert fogline("-h").out == told.out


def test_version(fogline: Callable[..., Any]) -> None:
    assert __version__ in fogline("--version").out


def test_no_command_and_wrong_ones_are_usage_errors(fogline: Callable[..., Any]) -> None:
    assert fogline("chek").code == 2
    assert fogline("check").code == 2
    assert fogline("check", "--nonsense", "x").code == 2
    assert fogline("demo", "mars").code == 2
