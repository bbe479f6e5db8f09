"""The sites that run on this machine: each leaves a note where the commands of its user look."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil

from fogline.common.errors import START_SITE, SetupError, UsageError

_CLOCK_SECONDS = 2.0
"""So far the start of a process and the time of a file may be apart, by how they are recorded."""


@dataclass(frozen=True, slots=True)
class LocalSite:
    """A site of this machine, its process and its addresses; `store` is empty until it runs."""

    site: str
    folder: Path
    pid: int
    http: str = ""
    store: str = ""
    broker: str = ""

    @property
    def token_file(self) -> Path:
        """The token with all rights; only who may read the site's files can read it."""
        return self.folder / "store" / "token"

    def _as_json(self) -> dict[str, Any]:
        return asdict(self) | {"folder": str(self.folder)}


def notes_folder() -> Path:
    """Where this user's sites leave their notes."""
    own = os.environ.get("XDG_RUNTIME_DIR")
    base = Path(own) if own else Path(tempfile.gettempdir()) / f"fogline-{os.getuid()}"
    return base / "fogline" / "sites" if own else base / "sites"


def leave_note(site: LocalSite) -> Path:
    """Records that the site runs; the file is to be removed at its end."""
    folder = notes_folder()
    path = folder / f"{site.pid}.json"
    fresh = path.with_suffix(".new")
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        fresh.write_text(json.dumps(site._as_json()), encoding="utf-8")
        fresh.replace(path)
    except OSError as error:
        raise SetupError(f"{path} cannot be written: {error.strerror}") from error
    return path


def local_sites() -> list[LocalSite]:
    """All that run now, by name; a note whose process has ended is removed."""
    found = []
    for path in sorted(notes_folder().glob("*.json")):
        site = _read(path)
        if site is not None and _runs(site.pid, path):
            found.append(site)
        elif site is not None:
            with contextlib.suppress(OSError):
                path.unlink()
    return sorted(found, key=lambda site: (site.site, site.pid))


def find_site(name: str | None = None, otherwise: str = "") -> LocalSite:
    """The one that runs here, or the one of that name. Raises `SetupError` when there is none, with
    what can be done besides starting it, `UsageError` when there are several."""
    sites = [site for site in local_sites() if name in (None, site.site)]
    if not sites:
        what = f"no site {name} runs" if name else "no site runs"
        raise SetupError(f"{what} on this machine", START_SITE + otherwise)
    if len(sites) > 1:
        names = ", ".join(f"{site.site} (process {site.pid})" for site in sites)
        raise UsageError(f"several sites run on this machine: {names}", "choose with --site NAME")
    return sites[0]


def _read(path: Path) -> LocalSite | None:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(data, Mapping) or path.stat().st_uid != os.getuid():
            return None
        texts = {key: str(data.get(key, "")) for key in ("site", "http", "store", "broker")}
        return LocalSite(folder=Path(data["folder"]), pid=int(data["pid"]), **texts)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _runs(pid: int, note: Path) -> bool:
    """A process that began after its note was written only has the number of the one that died."""
    try:
        return bool(psutil.Process(pid).create_time() <= note.stat().st_mtime + _CLOCK_SECONDS)
    except (psutil.Error, OSError, OverflowError, ValueError):
        return False
