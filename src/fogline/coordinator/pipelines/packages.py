"""The repository of the users' code: files named by their SHA-256, and names for them.

A file is written under a temporary name, synced and renamed, so that a file under its final name is
always whole; its content is verified when it is first read. What no job has needed for a day is
removed, with its names.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
import re
import tempfile
import threading
import zipfile
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, Protocol

from fogline.common.errors import DataError, NotFoundError, TooLargeError
from fogline.common.unused_files import KEEP_SECONDS, remove_unused
from fogline.coordinator.errors import RepositoryError
from fogline.coordinator.pipelines.code_check import Verdict, check
from fogline.coordinator.repository.store import Alias, Store
from fogline.model.jobs import Scalar

LARGEST = 256 << 20
CHUNK = 512 << 10
MOST_TRIALS = 4
"""So many pieces of code are tried at a time."""
ENDINGS = (".py", ".whl", ".zip", ".ins")
"""Code, and query files that compositions name."""
ARCHIVES = (".whl", ".zip")

_SHA = re.compile(r"[0-9a-f]{64}")
_FILE = re.compile(r"[^\W_][\w.+-]*|_[\w.+-]*")


class PackageLike(Protocol):
    """What is known about a package: its SHA-256 and its file's name."""

    @property
    def sha256(self) -> str: ...
    @property
    def file(self) -> str: ...


class Incoming:
    """A package on its way in: `write` its parts, then `keep` it."""

    def __init__(self, file: BinaryIO, keep: Callable[[str, Incoming, bool], Alias]) -> None:
        self.file = file
        self.size = 0
        self.hash = hashlib.sha256()
        self._keep = keep

    def write(self, part: bytes) -> None:
        self.size += len(part)
        if self.size > LARGEST:
            raise TooLargeError(f"a package has at most {LARGEST >> 20} MiB")
        self.hash.update(part)
        self.file.write(part)

    def keep(self, name: str, named: bool = True) -> Alias:
        """Not `named`: the file is there under its hash, and the name means what it did."""
        return self._keep(name, self, named)


class PackageStore:
    """Safe for many threads."""

    def __init__(self, folder: Path, store: Store, clock: Callable[[], float]) -> None:
        self._folder = folder
        self._store = store
        self._clock = clock
        self._verified: set[tuple[str, int, int]] = set()
        self._checked: dict[tuple[str, str, str], Verdict] = {}
        self._lock = threading.Lock()
        self._checking: dict[tuple[str, str, str], threading.Lock] = {}
        self._trials = threading.BoundedSemaphore(MOST_TRIALS)
        folder.mkdir(parents=True, exist_ok=True)
        for left in folder.glob("incoming-*"):
            left.unlink(missing_ok=True)

    @contextlib.contextmanager
    def incoming(self) -> Iterator[Incoming]:
        """What is not kept when this ends is forgotten."""
        try:
            with tempfile.NamedTemporaryFile(
                dir=self._folder, prefix="incoming-", delete=False
            ) as file:
                try:
                    yield Incoming(file, self._keep)  # type: ignore[arg-type]
                finally:
                    Path(file.name).unlink(missing_ok=True)
        except OSError as error:
            raise RepositoryError(f"the package cannot be stored: {error.strerror}") from error

    def add(self, name: str, content: bytes) -> Alias:
        with self.incoming() as incoming:
            incoming.write(content)
            return incoming.keep(name)

    def path(self, sha256: str) -> Path:
        """The file, with its content verified. Raises NotFoundError or RepositoryError."""
        if not _SHA.fullmatch(sha256):
            raise NotFoundError("no such package", "a package is known by its SHA-256")
        path = self._folder / sha256
        try:
            found = path.stat()
            key = (sha256, found.st_size, found.st_mtime_ns)
            if key not in self._verified:
                self._verify(path, sha256)
                self._verified.add(key)
        except FileNotFoundError as error:
            raise NotFoundError(f"no package {sha256}") from error
        except OSError as error:
            raise RepositoryError(f"package {sha256} cannot be read: {error.strerror}") from error
        return path

    def remove_unused(self, used: Collection[str]) -> list[str]:
        """`used`: the hashes that jobs refer to. Names go with the files they stand for."""
        now = self._clock()
        aliases = self._store.aliases()
        fresh = {a.sha256 for a in aliases.values() if now - a.at < KEEP_SECONDS}
        removed = remove_unused(self._folder, {*used, *fresh}, now)
        lost = [name for name, alias in aliases.items() if alias.sha256 in removed]
        if lost:
            self._store.drop_aliases(lost)
        return removed

    def read(self, body: dict[str, Any]) -> dict[str, Any]:
        """The operation `package`: a part of a file, for a node."""
        sha256, offset = body.get("sha256"), body.get("offset", 0)
        if not isinstance(sha256, str) or not isinstance(offset, int) or offset < 0:
            raise DataError("a package is asked for with its sha256 and an offset")
        path = self.path(sha256)
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(min(offset, size))
            part = file.read(CHUNK)
        return {"size": size, "data": base64.b64encode(part).decode()}

    def text_of(self, name: str) -> str | None:
        """The text of a query file that was handed in under this name."""
        alias = self._store.aliases().get(name)
        if alias is None or not alias.file.endswith(".ins"):
            return None
        return self.text(alias.sha256)

    def text(self, sha256: str) -> str:
        return self.path(sha256).read_text(encoding="utf-8", errors="replace")

    def check_code(
        self, package: PackageLike, entry: str, parameters: Mapping[str, Scalar] | None = None
    ) -> str | None:
        """Why the function cannot be used with these parameters, or nothing. The code is run once
        for each entry, and slow code keeps nobody waiting but who asks for it."""
        key = (package.sha256, package.file, entry)
        with self._lock:
            checking = self._checking.setdefault(key, threading.Lock())
        with checking:
            verdict = self._checked.get(key)
            if verdict is None:
                with self._trials:
                    verdict = check(self.path(package.sha256), package.file, entry)
            if not verdict.passing:
                self._checked[key] = verdict
        return verdict.problem or verdict.takes.problem(parameters or {})

    def _keep(self, name: str, incoming: Incoming, named: bool) -> Alias:
        file = file_name(name)
        incoming.file.flush()
        os.fsync(incoming.file.fileno())
        temporary = Path(incoming.file.name)
        if file.endswith(ARCHIVES) and not zipfile.is_zipfile(temporary):
            raise DataError(f"{file} is not a {file[-3:]} file: it is not a zip archive")
        sha256 = incoming.hash.hexdigest()
        temporary.replace(self._folder / sha256)
        _sync_folder(self._folder)
        alias = Alias(name, sha256, file, incoming.size, self._clock())
        if not named:
            return alias
        known = self._store.aliases().get(name)
        if known is not None and known.sha256 == sha256:
            return known
        self._store.set_alias(alias)
        return alias

    @staticmethod
    def _verify(path: Path, sha256: str) -> None:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != sha256:
            raise RepositoryError(f"package {sha256} is damaged on disk", "send it again")


class Pinned:
    """Names that stand for files of these hashes, whatever else is known under them."""

    def __init__(self, packages: PackageStore, hashes: Mapping[str, str]) -> None:
        """Raises NotFoundError where a file has not been handed in."""
        self.code = {
            name: Alias(name, sha256, file_name(name), packages.path(sha256).stat().st_size, 0.0)
            for name, sha256 in hashes.items()
        }
        self._packages = packages

    def text_of(self, name: str) -> str | None:
        alias = self.code.get(name)
        if alias is None:
            return self._packages.text_of(name)
        return self._packages.text(alias.sha256) if alias.file.endswith(".ins") else None


def file_name(name: str) -> str:
    """The file a package is called after: the last part of a path as job descriptions write it.

    The path is only a name here: no file is ever opened by it.
    """
    path = PurePosixPath(name)
    usable = name.isprintable() and len(name.encode("utf-8", "replace")) <= 500
    if not usable or not _FILE.fullmatch(path.name):
        raise DataError(f"a package cannot be called {name[:100]!r}", "for example clean.py")
    if not path.name.endswith(ENDINGS) or path.name in ENDINGS or len(path.name) > 200:
        raise DataError(
            f"{path.name[:100]!r} is no package", "a .py file, a .whl, a .zip or an .ins file"
        )
    if path.suffix == ".py" and not path.stem.isidentifier():
        raise DataError(f"{path.name!r} cannot be imported", "a module's name is an identifier")
    return path.name


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
