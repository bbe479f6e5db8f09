"""A client of the coordinator's REST interface: one method for each address."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fogline.common.errors import START_COORDINATOR, DataError, UnavailableError, UsageError
from fogline.common.http.client import HttpClient, Parameters, Patience, RemoteService, part
from fogline.coordinator.config import default_folder

TYPES = {"yaml": "application/yaml", "plan": "application/json", "ins": "text/x-insights"}
COORDINATOR = RemoteService(
    "the coordinator",
    f"{START_COORDINATOR}, or set FOGLINE_COORDINATOR to the address of another",
)
_PATIENCE = Patience(connect=30.0, answer=120.0)


class CoordinatorClient(HttpClient):
    """Raises PipelineError for problems in a text, and other FoglineErrors for the rest."""

    def __init__(self, url: str, token: str) -> None:
        super().__init__(url, COORDINATOR, token, _PATIENCE)

    def post_job(self, description: Mapping[str, Any]) -> Any:
        return self.json("POST", "/jobs", body=dict(description))

    def jobs(self) -> Any:
        return self.ask("GET", "/jobs")

    def job(self, name: str) -> Any:
        return self.ask("GET", f"/jobs/{part(name)}")

    def patch_job(
        self, name: str, parameters: Mapping[str, Any] | None = None, running: bool | None = None
    ) -> Any:
        body: dict[str, Any] = {"parameters": dict(parameters or {})}
        if running is not None:
            body["running"] = running
        return self.json("PATCH", f"/jobs/{part(name)}", body=body)

    def delete_job(self, name: str) -> Any:
        return self.ask("DELETE", f"/jobs/{part(name)}")

    def logs(self, name: str, lines: int = 100) -> Any:
        return self.ask("GET", f"/jobs/{part(name)}/logs", [("lines", lines)])

    def put_pipeline(
        self,
        name: str,
        text: str,
        format: str,
        dry_run: bool = False,
        packages: Mapping[str, str] | None = None,
    ) -> Any:
        """`packages`: the hashes of files that the text names."""
        query = [*_packages(packages), *_dry_run(dry_run)]
        return self._text("PUT", f"/pipelines/{part(name)}", text, format, query)

    def diff(
        self, name: str, text: str, format: str, packages: Mapping[str, str] | None = None
    ) -> Any:
        path = f"/pipelines/{part(name)}/diff"
        return self._text("POST", path, text, format, _packages(packages))

    def pipelines(self) -> Any:
        return self.ask("GET", "/pipelines")

    def pipeline(self, name: str) -> Any:
        return self.ask("GET", f"/pipelines/{part(name)}")

    def delete_pipeline(self, name: str) -> Any:
        return self.ask("DELETE", f"/pipelines/{part(name)}")

    def put_package(self, name: str, file: Path, dry_run: bool = False) -> Any:
        """Sends a file; `name` is how job descriptions call it. With `dry_run` it is kept by its
        hash only."""
        path, query = f"/packages/{part(name)}", _dry_run(dry_run)
        try:
            with file.open("rb") as body:
                return self.ask("PUT", path, query, body, "application/octet-stream")
        except OSError as error:
            raise DataError(f"{file} cannot be read: {error.strerror}") from error

    def packages(self) -> Any:
        return self.ask("GET", "/packages")

    def progress(self, settle: float = 0.0) -> Any:
        """`settle`: how many seconds to wait until the desired state is reached, 60 at most."""
        return self.ask("GET", "/progress", [("settle", f"{settle:g}")])

    def nodes(self) -> Any:
        return self.ask("GET", "/nodes")

    def forget_node(self, name: str) -> Any:
        return self.ask("DELETE", f"/nodes/{part(name)}")

    def history(self, name: str) -> Any:
        return self.ask("GET", f"/nodes/{part(name)}/history")

    def replicas(self) -> Any:
        return self.ask("GET", "/replicas")

    def put_replica(self, origin: str, holder: str, metrics: list[str] | None = None) -> Any:
        """`metrics`: names and prefixes (`cpu_%`); without them all."""
        path = f"/replicas/{part(origin)}/{part(holder)}"
        return self.json("PUT", path, body={"metrics": metrics})

    def delete_replica(self, origin: str, holder: str) -> Any:
        return self.ask("DELETE", f"/replicas/{part(origin)}/{part(holder)}")

    def fabric(self) -> Any:
        return self.ask("GET", "/fabric")

    def rotate_secret(self, accept_old_seconds: float) -> Any:
        query = [("accept_old_seconds", accept_old_seconds)]
        return self.ask("POST", "/fabric/rotate-secret", query)

    def events(self, limit: int = 100, after: int = 0) -> Any:
        return self.ask("GET", "/events", [("limit", limit), ("after", after)])

    def health(self) -> Any:
        return self.ask("GET", "/health")

    def _text(self, method: str, path: str, text: str, format: str, parameters: Parameters) -> Any:
        if format not in TYPES:
            raise UsageError(f"no format {format!r}", ", ".join(TYPES))
        return self.ask(method, path, parameters, text.encode(), TYPES[format])


def find(
    folder: Path | None = None, environment: Mapping[str, str] = os.environ
) -> CoordinatorClient:
    """The coordinator that FOGLINE_COORDINATOR and FOGLINE_TOKEN name, else the one that runs here
    with its files in the folder."""
    place = folder or default_folder()
    url = environment.get("FOGLINE_COORDINATOR") or _line(place / "address", "address")
    token = environment.get("FOGLINE_TOKEN") or _line(place / "token", "token")
    return CoordinatorClient(url, token)


def _line(file: Path, what: str) -> str:
    try:
        lines = [line.strip() for line in file.read_text(encoding="utf-8").splitlines()]
        return next(line for line in lines if line and not line.startswith("#"))
    except (OSError, UnicodeDecodeError, StopIteration) as error:
        variable = "FOGLINE_COORDINATOR" if what == "address" else "FOGLINE_TOKEN"
        hint = f"{START_COORDINATOR}, or set {variable}"
        raise UnavailableError(f"no {what} of a coordinator is found", hint) from error


def _packages(hashes: Mapping[str, str] | None) -> list[tuple[str, str]]:
    return [("package", f"{name}={sha256}") for name, sha256 in (hashes or {}).items()]


def _dry_run(dry_run: bool) -> list[tuple[str, str]]:
    return [("dry_run", "true")] if dry_run else []
