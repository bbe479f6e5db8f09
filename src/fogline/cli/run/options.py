"""The options of `fogline run`, and which of them can be combined."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fogline.common.errors import UsageError
from fogline.model.streams import FORMATS


@dataclass(frozen=True)
class RunOptions:
    source: str | None = None
    form: str | None = None
    speed: str = "max"
    seconds: float | None = None
    batch: bool = False
    rejects: Path | None = None
    max_bytes: int | None = None
    mqtt_port: int = 0
    as_json: bool = False
    since: str | None = None
    until: str | None = None
    site: str | None = None
    url: str | None = None
    token_file: Path | None = None
    require_all: bool = False

    @property
    def pace(self) -> float | None:
        """Times real time, or None for as fast as possible."""
        if self.speed == "max":
            return None
        try:
            pace = float(self.speed.removesuffix("x"))
        except ValueError:
            pace = 0.0
        if not 0 < pace < 1e9:
            raise UsageError(f"--speed {self.speed} is neither a number above 0 nor max")
        return pace


def check_options(options: RunOptions) -> None:
    _check_history_options(options)
    if options.form is not None and options.form not in FORMATS:
        raise UsageError(f"--format {options.form} is not one of {', '.join(FORMATS)}")
    if options.batch and (options.source == "-" or options.pace is not None):
        raise UsageError("--batch reads a whole file at once: it needs a file and no --speed")
    _ = options.pace


def _check_history_options(options: RunOptions) -> None:
    """Options only for a run over history, and options not allowed there."""
    only: dict[str, object] = {"--to": options.until, "--site": options.site, "--url": options.url}
    only |= {"--token-file": options.token_file, "--require-all": options.require_all}
    never: dict[str, object] = {
        "--input": options.source,
        "--format": options.form,
        "--seconds": options.seconds,
    }
    never |= {"--speed": options.speed != "max", "--mqtt-port": options.mqtt_port}
    if options.since is None:
        wrong, hint = only, "add --from, to run over stored data"
    else:
        wrong, hint = never, "a run with --from reads stored data, as a batch"
    given = [name for name, value in wrong.items() if value]
    if given:
        raise UsageError(f"{', '.join(given)} does not fit here", hint)


def check_live_options(options: RunOptions) -> None:
    """Options only for a replay."""
    given = {"--batch": options.batch, "--format": options.form, "--rejects": options.rejects}
    given["--speed"] = options.speed != "max"
    wrong = [name for name, value in given.items() if value]
    if wrong:
        hint = "add --input FILE, or leave it out"
        raise UsageError(f"{', '.join(wrong)} is for replaying a file", hint)
