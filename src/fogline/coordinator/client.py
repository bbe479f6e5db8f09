"""A client of the coordinator's REST interface: one method for each address."""

from __future__ import annotations

import http.client
import json
import os
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from fogline.common.errors import (
    START_COORDINATOR,
    DataError,
    FoglineError,
    PipelineError,
    Problem,
    UsageError,
)
from fogline.coordinator.config import default_folder
from fogline.coordinator.errors import (
    ConflictError,
    NotThereError,
    RefusedError,
    TooLargeError,
    UnavailableError,
)

TYPES = {"yaml": "application/yaml", "plan": "application/json", "ins": "text/x-insights"}
SECONDS = 120.0

_ERRORS: dict[int, type[FoglineError]] = {
    400: DataError,
    401: RefusedError,
    404: NotThereError,
    409: ConflictError,
    413: TooLargeError,
    503: UnavailableError,
}


class CoordinatorClient:
    """Raises PipelineError for problems in a text, and other FoglineErrors for the rest."""

    def __init__(self, url: str, token: str) -> None:
        if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
            raise UsageError("a coordinator's address is http://host:port")
        self.url = url.rstrip("/")
        self._token = token

    def __repr__(self) -> str:
        return f"CoordinatorClient({self.url!r})"

    def post_job(self, description: Mapping[str, Any]) -> Any:
        return self._json("POST", "/jobs", dict(description))

    def jobs(self) -> Any:
        return self._ask("GET", "/jobs")

    def job(self, name: str) -> Any:
        return self._ask("GET", f"/jobs/{_part(name)}")

    def patch_job(
        self, name: str, parameters: Mapping[str, Any] | None = None, running: bool | None = None
    ) -> Any:
        body: dict[str, Any] = {"parameters": dict(parameters or {})}
        if running is not None:
            body["running"] = running
        return self._json("PATCH", f"/jobs/{_part(name)}", body)

    def delete_job(self, name: str) -> Any:
        return self._ask("DELETE", f"/jobs/{_part(name)}")

    def logs(self, name: str, lines: int = 100) -> Any:
        return self._ask("GET", f"/jobs/{_part(name)}/logs?" + urlencode({"lines": lines}))

    def put_pipeline(
        self,
        name: str,
        text: str,
        format: str,
        dry_run: bool = False,
        packages: Mapping[str, str] | None = None,
    ) -> Any:
        """`packages`: the hashes of files that the text names."""
        query = _packages(packages) + ([("dry_run", "true")] if dry_run else [])
        path = f"/pipelines/{_part(name)}?{urlencode(query)}"
        return self._text("PUT", path.removesuffix("?"), text, format)

    def diff(
        self, name: str, text: str, format: str, packages: Mapping[str, str] | None = None
    ) -> Any:
        path = f"/pipelines/{_part(name)}/diff?{urlencode(_packages(packages))}"
        return self._text("POST", path.removesuffix("?"), text, format)

    def pipelines(self) -> Any:
        return self._ask("GET", "/pipelines")

    def pipeline(self, name: str) -> Any:
        return self._ask("GET", f"/pipelines/{_part(name)}")

    def delete_pipeline(self, name: str) -> Any:
        return self._ask("DELETE", f"/pipelines/{_part(name)}")

    def put_package(self, name: str, file: Path, dry_run: bool = False) -> Any:
        """Sends a file; `name` is how job descriptions call it. With `dry_run` it is kept by its
        hash only."""
        query = "?dry_run=true" if dry_run else ""
        try:
            with file.open("rb") as body:
                size = os.fstat(body.fileno()).st_size
                return self._ask(
                    "PUT",
                    f"/packages/{_part(name)}{query}",
                    body,
                    {"Content-Type": "application/octet-stream", "Content-Length": str(size)},
                )
        except OSError as error:
            raise DataError(f"{file} cannot be read: {error.strerror}") from error

    def packages(self) -> Any:
        return self._ask("GET", "/packages")

    def progress(self, settle: float = 0.0) -> Any:
        """`settle`: how many seconds to wait until all is as wanted, 60 at most."""
        return self._ask("GET", f"/progress?settle={settle:g}")

    def nodes(self) -> Any:
        return self._ask("GET", "/nodes")

    def forget_node(self, name: str) -> Any:
        return self._ask("DELETE", f"/nodes/{_part(name)}")

    def history(self, name: str) -> Any:
        return self._ask("GET", f"/nodes/{_part(name)}/history")

    def replicas(self) -> Any:
        return self._ask("GET", "/replicas")

    def put_replica(self, origin: str, holder: str, metrics: list[str] | None = None) -> Any:
        """`metrics`: names and prefixes (`cpu_%`); without them all."""
        path = f"/replicas/{_part(origin)}/{_part(holder)}"
        return self._json("PUT", path, {"metrics": metrics})

    def delete_replica(self, origin: str, holder: str) -> Any:
        return self._ask("DELETE", f"/replicas/{_part(origin)}/{_part(holder)}")

    def fabric(self) -> Any:
        return self._ask("GET", "/fabric")

    def rotate_secret(self, accept_old_seconds: float) -> Any:
        query = urlencode({"accept_old_seconds": accept_old_seconds})
        return self._ask("POST", f"/fabric/rotate-secret?{query}")

    def events(self, limit: int = 100, after: int = 0) -> Any:
        return self._ask("GET", "/events?" + urlencode({"limit": limit, "after": after}))

    def health(self) -> Any:
        return self._ask("GET", "/health")

    def _json(self, method: str, path: str, body: Any) -> Any:
        text = json.dumps(body).encode()
        return self._ask(method, path, text, {"Content-Type": "application/json"})

    def _text(self, method: str, path: str, text: str, format: str) -> Any:
        if format not in TYPES:
            raise UsageError(f"no format {format!r}", ", ".join(TYPES))
        return self._ask(method, path, text.encode(), {"Content-Type": TYPES[format]})

    def _ask(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> Any:
        told = {"Authorization": f"Bearer {self._token}", **(headers or {})}
        request = urllib.request.Request(self.url + path, body, told, method=method)
        # Proxies are for other hosts' pages; and a token is sent to nobody but the coordinator.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirect())
        try:
            with opener.open(request, timeout=SECONDS) as reply:
                return json.loads(reply.read())
        except urllib.error.HTTPError as error:
            raise _error(error.code, error.read()) from None
        except (urllib.error.URLError, OSError, http.client.HTTPException, ValueError) as error:
            reason = getattr(error, "reason", None) or error
            text = f"the coordinator at {self.url} does not answer: {reason}"
            hint = f"{START_COORDINATOR}, or set FOGLINE_COORDINATOR to the address of another"
            raise UnavailableError(text, hint) from error


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


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


def _part(name: str) -> str:
    return quote(name, safe="")


def _error(status: int, body: bytes) -> FoglineError:
    try:
        told = json.loads(body)
        message, hint = str(told["error"]), str(told.get("hint", ""))
        problems = tuple(Problem(**problem) for problem in told.get("problems", ()))
    except (ValueError, KeyError, TypeError, AttributeError):
        return UnavailableError(f"the coordinator answers with status {status}")
    if problems:
        return PipelineError(problems)
    return _ERRORS.get(status, FoglineError)(message, hint)
