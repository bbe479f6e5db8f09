"""Builds the journal, a plugin for Mosquitto, with gcc.

Nothing happens when it is newer than its source. `python native/build.py [FILE]`.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCE = HERE / "journal.c"
PLUGIN = HERE.parent / "src" / "fogline" / "broker" / "fogline_journal.so"
FLAGS = ["-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
INSTALL = "apt-get install gcc libc6-dev mosquitto-dev"


def build(plugin: Path) -> None:
    newest = max(path.stat().st_mtime for path in (SOURCE, Path(__file__)))
    if plugin.exists() and plugin.stat().st_mtime > newest:
        return
    gcc = shutil.which("gcc")
    if gcc is None:
        sys.exit(f"native: gcc not found; {INSTALL}")
    if not has_header(gcc):
        sys.exit(f"native: mosquitto_broker.h not found; {INSTALL}")
    plugin.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".native-", dir=plugin.parent) as folder:
        made = Path(folder) / plugin.name
        if subprocess.run([gcc, *FLAGS, "-o", str(made), str(SOURCE)], check=False).returncode:
            sys.exit("native: journal.c does not compile")
        made.replace(plugin)
    print(f"native: built {plugin.name}")


def has_header(gcc: str) -> bool:
    """Whether the compiler finds Mosquitto's header, and the C library's that it includes."""
    text = "#include <stdio.h>\n#include <mosquitto_broker.h>\n"
    command = [gcc, "-fsyntax-only", "-x", "c", "-"]
    return not subprocess.run(command, input=text.encode(), capture_output=True).returncode


if __name__ == "__main__":
    build(Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else PLUGIN)
