"""Several sites and their coordinator on this machine, for demos, tests and benchmarks.

Everything is real: a process each, a Mosquitto each, a Spark each, in a folder of their own. All of
it ends with this process, however that ends.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import yaml

from fogline.common.errors import FoglineError, SetupError
from fogline.common.http.client import HttpClient, RemoteService
from fogline.common.process.free_ports import free_port
from fogline.common.process.parent_death import die_with_parent
from fogline.coordinator.client import CoordinatorClient, find

_POLL_SECONDS = 0.1
_START_SECONDS = 600.0
_STOP_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class SiteSpec:
    """A site of the world; `more` goes into its configuration as it stands."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    memory: str = "512m"
    more: Mapping[str, Any] = field(default_factory=dict)


class Process:
    """One `fogline` command, which can be killed and started again."""

    def __init__(self, name: str, arguments: Iterable[str], folder: Path) -> None:
        self.name = name
        self._arguments = list(arguments)
        self._log = folder / f"{name}.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        return self._process.pid if self._process is not None else 0

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        command = [
            sys.executable,
            "-c",
            "from fogline.cli.main import main; main()",
            *self._arguments,
        ]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=die_with_parent,
            )

    def kill(self) -> None:
        """As if the power went: no time for anything."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()

    def ask_to_end(self) -> None:
        if self.running and self._process is not None:
            self._process.terminate()

    def wait(self, seconds: float) -> None:
        if self._process is None:
            return
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()

    def log_tail(self) -> str:
        """The end of what it wrote."""
        return self._log.read_text(encoding="utf-8", errors="replace")[-2000:]


class World:
    """A context manager: inside, the sites are there, known to the coordinator, and their engines
    run. `report` is called with what is being waited for."""

    def __init__(
        self,
        folder: Path,
        sites: Iterable[SiteSpec],
        report: Callable[[str], None] = lambda text: None,
        coordinator: Mapping[str, Any] | None = None,
    ) -> None:
        """`coordinator` goes into its configuration as it stands."""
        self.folder = folder
        self._specs = {site.name: site for site in sites}
        self._report = report
        self._more = dict(coordinator or {})
        self.control_port, self._rest_port = free_port(), free_port()
        self.ports = {name: free_port() for name in self._specs}
        self.http_ports = {name: free_port() for name in self._specs}
        self.coordinator = Process(
            "coordinator", ["coordinator", "--config", str(self._coordinator_config())], folder
        )
        self.sites = {
            name: Process(name, ["agent", "--config", str(self._site_config(name))], folder)
            for name in self._specs
        }

    @property
    def client(self) -> CoordinatorClient:
        return find(self.folder / "coordinator", {})

    def broker(self, site: str) -> str:
        return f"mqtt://127.0.0.1:{self.ports[site]}"

    def address(self, site: str) -> str:
        return f"http://127.0.0.1:{self.http_ports[site]}"

    @property
    def environment(self) -> dict[str, str]:
        """For commands that are to find this coordinator."""
        token = (self.folder / "coordinator" / "token").read_text(encoding="utf-8").strip()
        address = f"http://127.0.0.1:{self._rest_port}"
        return os.environ | {"FOGLINE_COORDINATOR": address, "FOGLINE_TOKEN": token}

    def _coordinator_config(self) -> Path:
        config = {
            "folder": str(self.folder / "coordinator"),
            "port": self._rest_port,
            "control": {"port": self.control_port},
            **self._more,
        }
        return self._write_config("coordinator.yaml", config)

    def _site_config(self, name: str) -> Path:
        spec = self._specs[name]
        config = {
            "site": name,
            "memory": spec.memory,
            "labels": dict(spec.labels),
            "control": {"url": f"mqtt://127.0.0.1:{self.control_port}"},
            "broker": {"port": self.ports[name]},
            "http_port": self.http_ports[name],
            "min_free_megabytes": 1,
            **spec.more,
        }
        return self._write_config(f"{name}.yaml", config)

    def _write_config(self, name: str, config: Mapping[str, Any]) -> Path:
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / name
        path.write_text(yaml.safe_dump(dict(config)), encoding="utf-8")
        return path

    # ── its life ───────────────────────────────────────────────────────────────────────────────

    def __enter__(self) -> Self:
        try:
            self.coordinator.start()
            for site in self.sites.values():
                site.start()
            self.wait(self.is_up, _START_SECONDS, "the sites")
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        everything = [*self.sites.values(), self.coordinator]
        for process in everything:
            process.ask_to_end()
        for process in everything:
            process.wait(_STOP_SECONDS)

    def is_up(self) -> bool:
        """All sites are known and their engines have started."""
        for process in (self.coordinator, *self.sites.values()):
            if not process.running:
                raise SetupError(f"{process.name} has ended: {process.log_tail()}")
        nodes = {node["name"]: node for node in self._nodes()}
        return all(
            nodes.get(name, {}).get("state") == "online" and self._engine_runs(name)
            for name in self.sites
        )

    def _nodes(self) -> list[dict[str, Any]]:
        try:
            found: list[dict[str, Any]] = self.client.nodes()
            return found
        except FoglineError:
            return []

    def _engine_runs(self, site: str) -> bool:
        return "revision" in self.status(site).get("engine", {})

    def status(self, site: str) -> dict[str, Any]:
        """What a site reports about itself; empty while nobody answers."""
        try:
            client = HttpClient(self.address(site), RemoteService(f"the site {site}"))
            return client.json("GET", "/status")
        except FoglineError:
            return {}

    def wait(self, condition: Callable[[], Any], seconds: float, what: str) -> Any:
        """The first true answer; raises SetupError when none comes in time."""
        self._report(what)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if answer := condition():
                return answer
            time.sleep(_POLL_SECONDS)
        raise SetupError(f"after {seconds:g} s there is still no sign of {what}")

    def wait_running(self, pipeline: str, seconds: float = 180.0) -> list[dict[str, Any]]:
        """Until all jobs of a pipeline run; their statuses."""

        def running() -> Any:
            try:
                jobs = self.client.pipeline(pipeline)["jobs"]
            except FoglineError:
                return None
            return jobs if all(job["state"] == "running" for job in jobs) else None

        try:
            found: list[dict[str, Any]] = self.wait(running, seconds, f"{pipeline} running")
        except SetupError as error:
            jobs = self.client.pipeline(pipeline)["jobs"]
            states = [f"{j['name']} {j['state']} {j['problem']}" for j in jobs]
            raise SetupError(f"{error}: {'; '.join(states)}") from error
        return found
