"""Writes a simulated stream to a file or to standard output, as fast as it can be made.

A file has one message a line (csv: after a header line). A reader that ends early, as `head`
does, ends the writing without an error.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import BinaryIO

from fogline.common.errors import FoglineError
from fogline.simulate.encode import header
from fogline.simulate.messages import Wire, messages
from fogline.simulate.streams import Run


def write_file(
    path: str | Path, run: Run, wire: Wire, progress: Callable[[int], None] = lambda count: None
) -> int:
    """Writes all messages to the file (`-`: standard output) and returns how many there were.

    `progress` is called with the number of messages written so far.
    """
    try:
        with _open(path) as out:
            return _write(out, run, wire, progress)
    except OSError as error:
        hint = "choose a path in a folder that exists and that you may write to"
        raise FoglineError(f"cannot write {path}: {error.strerror}", hint) from error


def _open(path: str | Path) -> AbstractContextManager[BinaryIO]:
    if str(path) == "-":
        return nullcontext(sys.stdout.buffer)
    return Path(path).open("wb")


def _write(out: BinaryIO, run: Run, wire: Wire, progress: Callable[[int], None]) -> int:
    written = 0
    first = header(run.stream, wire.format)
    try:
        if first is not None:
            out.write(f"{first}\n".encode())
        for chunk in messages(run, wire):
            lines = "\n".join([message.text for message in chunk])
            out.write(f"{lines}\n".encode("latin-1") if chunk else b"")
            written += len(chunk)
            progress(written)
        out.flush()
    except BrokenPipeError:
        # Python would complain again when it flushes standard output at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())
    return written
