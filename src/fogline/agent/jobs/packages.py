"""Packages of user code at a site: fetched once, by the hash of their content, and removed a day
after the last job that needs them."""

from __future__ import annotations

import base64
import hashlib
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from fogline.common.errors import DataError
from fogline.common.unused_files import note_use, remove_unused
from fogline.model.jobs import Assignment, Code

AskCoordinator = Callable[[str, dict[str, Any], float], dict[str, Any]]
"""Asks the coordinator: operation, body, seconds to wait."""
_ANSWER_SECONDS = 10.0
_LARGEST = 256 << 20


class Packages:
    def __init__(self, folder: Path) -> None:
        self._folder = folder / "packages"

    def path(self, assignment: Assignment) -> Path | None:
        work = assignment.work
        return self._folder / work.package if isinstance(work, Code) else None

    def fetch(self, assignments: Iterable[Assignment], ask: AskCoordinator) -> None:
        """What is not here yet; raises FoglineError when it cannot be had."""
        for assignment in assignments:
            path = self.path(assignment)
            if path is None:
                continue
            try:
                note_use(path, time.time())
            except FileNotFoundError:
                self._fetch(path, ask)

    def remove_unused(self, assignments: Iterable[Assignment], now: float) -> list[str]:
        """`assignments`: of all jobs that the site has."""
        used = {path.name for item in assignments if (path := self.path(item)) is not None}
        return remove_unused(self._folder, used, now)

    def _fetch(self, path: Path, ask: AskCoordinator) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        digest = hashlib.sha256()
        partial = path.with_name(f".{path.name}.partial")
        with partial.open("wb") as file:
            size = 1
            while file.tell() < size:
                body = {"sha256": path.name, "offset": file.tell()}
                size, data = _part(ask("package", body, _ANSWER_SECONDS))
                digest.update(data)
                file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if digest.hexdigest() != path.name:
            raise DataError(f"package {path.name[:12]} did not arrive as it was sent")
        partial.replace(path)


def _part(answer: dict[str, Any]) -> tuple[int, bytes]:
    try:
        size, data = int(answer["size"]), base64.b64decode(answer["data"], validate=True)
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"the coordinator's answer holds no package: {error!r}") from error
    if not 0 < size <= _LARGEST or not data:
        raise DataError("the coordinator's answer holds no package")
    return size, data
