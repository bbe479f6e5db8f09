"""Tries the user's code before it is sent anywhere: in a process of its own, with limits.

The process gets no input, no environment but the path, and a time and a memory limit; whatever it
started ends with it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

SECONDS = 60.0
MEMORY_BYTES = 8 << 30
"""Of addresses, not of memory in use: libraries reserve much more than they need."""

_TRIAL = Path(__file__).with_name("sandbox.py")
_KEPT = ("PATH", "LANG", "LC_ALL", "JAVA_HOME", "TZ")


@dataclass(frozen=True, slots=True)
class Takes:
    """The parameters of a function."""

    anything: bool = True
    names: tuple[str, ...] = ()
    needed: tuple[str, ...] = ()

    def problem(self, given: Mapping[str, object]) -> str | None:
        """Why it cannot be called with these, or nothing."""
        if missing := [name for name in self.needed if name not in given]:
            return f"it needs {_parameters(missing)}"
        unknown = [name for name in given if not self.anything and name not in self.names]
        if unknown:
            takes = f"it takes {', '.join(self.names)}" if self.names else "it takes none"
            return f"it has no {_parameters(unknown)}: {takes}"
        return None


@dataclass(frozen=True, slots=True)
class Verdict:
    problem: str | None
    passing: bool = False
    """It may be different the next time: not to be remembered."""
    takes: Takes = Takes()


def check(path: Path, file: str, entry: str, seconds: float = SECONDS) -> Verdict:
    """Imports `entry` (module:function) from a package's file."""
    module, _, function = entry.partition(":")
    if not all(part.isidentifier() for part in (*module.split("."), *function.split("."))):
        return Verdict(f"{entry!r} is no entry: module:function is expected")
    with tempfile.TemporaryDirectory(prefix="fogline-check-") as folder:
        try:
            shutil.copyfile(path, Path(folder) / file)
            return _verdict(_run(Path(folder), file, entry, seconds), file, seconds)
        except OSError as error:
            return Verdict(f"{file} cannot be tried: {error.strerror}", passing=True)


def _run(folder: Path, file: str, entry: str, seconds: float) -> dict[str, object]:
    environment = {key: os.environ[key] for key in _KEPT if key in os.environ}
    environment |= {"HOME": str(folder), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    task = {"file": file, "entry": entry, "seconds": seconds, "memory": MEMORY_BYTES}
    command = [sys.executable, "-I", "-B", str(_TRIAL), json.dumps(task)]
    with subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        try:
            output, _ = process.communicate(timeout=seconds + 10)
        except subprocess.TimeoutExpired:
            process.kill()
            output = b'{"late": true}'
    try:
        answer = json.loads(output)
    except ValueError:
        answer = {"ended": process.returncode}
    return answer if isinstance(answer, dict) else {}


def _verdict(answer: dict[str, object], file: str, seconds: float) -> Verdict:
    if "late" in answer:
        return Verdict(f"{file} is not imported within {seconds:.0f} s", passing=True)
    if "ended" in answer:
        return Verdict(f"{file} ends the process that imports it ({answer['ended']})", passing=True)
    problem, takes = answer.get("problem"), answer.get("takes")
    if problem is not None or not isinstance(takes, dict):
        return Verdict(None if problem is None else str(problem))
    names, needed = (tuple(map(str, takes[key])) for key in ("names", "needed"))
    return Verdict(None, takes=Takes(bool(takes["any"]), names, needed))


def _parameters(names: list[str]) -> str:
    return f"parameter{'s' if len(names) > 1 else ''} {', '.join(names)}"
