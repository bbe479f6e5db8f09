"""The machine and the versions that numbers belong to; nothing that names a host or a person."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from importlib.metadata import version
from pathlib import Path

from processes import installed_peers


def describe(peers: bool) -> dict[str, str]:
    found = {
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "memory": f"{_memory() / 2**30:.0f} GiB",
        "system": f"{platform.system()} {platform.machine()}",
        "Java": _java(),
        "Python": platform.python_version(),
        "Fogline": version("fogline"),
        "Spark": version("pyspark"),
    }
    others = installed_peers() if peers else {}
    return found | {name.capitalize(): number for name, number in others.items()}


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor() or "unknown"


def _memory() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java") or "java"
    told = subprocess.run([java, "-version"], capture_output=True, text=True, check=True).stderr
    return told.split('"')[1]
