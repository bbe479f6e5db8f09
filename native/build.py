"""Builds the plugins for Mosquitto with gcc: the journal, and who may read what.

Nothing happens to one that is newer than its source. `python native/build.py [FOLDER]`.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
NAMES = ("journal", "access")
FOLDER = HERE.parent / "src" / "fogline" / "broker" / "mosquitto"
FLAGS = ["-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
INSTALL = "apt-get install gcc libc6-dev mosquitto-dev"


def build(name: str, into: Path) -> None:
    source, plugin = HERE / f"{name}.c", into / f"fogline_{name}.so"
    newest = max(path.stat().st_mtime for path in (source, Path(__file__)))
    if plugin.exists() and plugin.stat().st_mtime > newest:
        return
    gcc = shutil.which("gcc")
    if gcc is None:
        sys.exit(f"native: gcc not found; {INSTALL}")
    if not has_header(gcc):
        sys.exit(f"native: mosquitto_broker.h not found; {INSTALL}")
    into.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".native-", dir=into) as folder:
        made = Path(folder) / plugin.name
        if subprocess.run([gcc, *FLAGS, "-o", str(made), str(source)], check=False).returncode:
            sys.exit(f"native: {source.name} does not compile")
        made.replace(plugin)
    print(f"native: built {plugin.name}")


def has_header(gcc: str) -> bool:
    """Whether the compiler finds Mosquitto's header, and the C library's that it includes."""
    text = "#include <stdio.h>\n#include <mosquitto_broker.h>\n"
    command = [gcc, "-fsyntax-only", "-x", "c", "-"]
    return not subprocess.run(command, input=text.encode(), capture_output=True).returncode


if __name__ == "__main__":
    for plugin in NAMES:
        build(plugin, Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else FOLDER)
