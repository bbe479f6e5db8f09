"""How long it takes to check a file of many insights: inside one process, and as a command."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from workloads import many_insights

from fogline.common.settings import load
from fogline.plan.analysis.query_file import load_query

INSIGHTS = 200


def measure_checking(repeats: int, tell: Callable[[str], None]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="fogline-bench-") as folder:
        path = Path(folder) / "many.ins"
        path.write_text(many_insights(INSIGHTS), encoding="utf-8")
        inside = _median(repeats, lambda: load_query(path, load()))
        tell(f"checking: {INSIGHTS} insights in one process: {inside:.3f} s")
        whole = _median(repeats, lambda: _command(path))
        tell(f"checking: {INSIGHTS} insights, the whole command: {whole:.3f} s")
    return {"insights": INSIGHTS, "inside_seconds": inside, "command_seconds": whole}


def _command(path: Path) -> None:
    command = str(Path(sys.executable).with_name("fogline"))
    subprocess.run([command, "check", str(path)], check=True, stdout=subprocess.DEVNULL)


def _median(repeats: int, work: Callable[[], object]) -> float:
    seconds = []
    for _ in range(max(repeats, 1)):
        started = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - started)
    return median(seconds)
