"""Options and help shared by all commands."""

from __future__ import annotations

from typing import Any

import click


class Examples(click.Command):
    """A command whose help ends with an example, printed verbatim."""

    def __init__(self, *args: Any, example: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.example = example

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if self.example:
            formatter.write(f"\nExample:\n  {self.example}\n")


class ExampleGroup(Examples, click.Group):
    """The same for a command that has commands of its own."""


as_json = click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
