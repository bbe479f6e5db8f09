"""A store process as the agent starts it, and a caller with one connection that is kept."""

from __future__ import annotations

import http.client
import json
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import psutil
import pyarrow as pa
from sites_watch import until
from store_data import seconds, spread

from fogline.agent.config.store import StoreConfig
from fogline.common.errors import SetupError
from fogline.common.process.children import Child
from fogline.fabric.api.tokens_file import own_token
from fogline.fabric.contract import StoreProcessConfig, StoreStatus
from fogline.fabric.http.arrow import ARROW_TYPE, from_arrow, to_arrow

JSON_TYPE = "application/json"
SECRET = "what the nodes of this run share"
WAIT_SECONDS = 300.0
_PUT_ROWS = 100_000


class NodeProcess:
    """One node with the settings a site has if nothing else is said. `close` ends the process."""

    def __init__(self, site: str, folder: Path) -> None:
        self.site = site
        self.folder = folder / site
        self.folder.mkdir(parents=True, exist_ok=True)
        usual = StoreConfig()
        self._config = StoreProcessConfig(
            revision=1,
            site=site,
            folder=str(self.folder),
            secrets=((SECRET, None),),
            host=usual.host,
            hosts=(),
            port=usual.port,
            limits={
                "hours": usual.hours,
                "megabytes": usual.megabytes,
                "memory_megabytes": usual.memory_megabytes,
            },
            nodes={},
            control=None,
            signed={},
            feeds=(),
            fabric_logs=(),
        )
        self.start()

    def start(self) -> None:
        """Also after `kill`; it comes back at the same address."""
        module = "fogline.fabric.process"
        self._child = Child("store", module, lambda: self._config, StoreStatus, self.folder)
        self._child.keep_running()
        self._in_force()
        self.caller = Caller(self.address, own_token(self.folder / "store"))

    @property
    def address(self) -> str:
        status = self._child.status
        return (status.address or "") if status is not None else ""

    def change(self, **more: Any) -> None:
        self._config = replace(self._config, **more, revision=self._config.revision + 1)
        self._child.update()

    def kill(self) -> None:
        """It gets no chance to say or write anything."""
        os.kill(self._child.pid, signal.SIGKILL)

    def bury(self) -> None:
        self.caller.close()
        self._child.wait(WAIT_SECONDS)

    def close(self) -> None:
        self._child.ask_to_end()
        self.bury()

    def memory(self) -> int:
        """Resident bytes of the process."""
        return int(psutil.Process(self._child.pid).memory_info().rss)

    def _in_force(self) -> None:
        def is_running() -> bool:
            if not self._child.running:
                raise SetupError(f"the store process of {self.site} ended by itself")
            same = self._child.revision == self._config.revision
            return same and self._child.state == "running"

        until(is_running, WAIT_SECONDS, f"the store process of {self.site}")


class Caller:
    """Asks one node over one connection. Any status but 200 raises `SetupError`."""

    def __init__(self, address: str, token: str) -> None:
        parts = urlsplit(address)
        self._connection = http.client.HTTPConnection(
            str(parts.hostname), parts.port, timeout=WAIT_SECONDS
        )
        self._headers = {"Authorization": f"Bearer {token}"}

    def close(self) -> None:
        self._connection.close()

    def json(self, method: str, target: str, body: Any = None) -> dict[str, Any]:
        data = None if body is None else json.dumps(body).encode()
        return dict(json.loads(self.bytes(method, target, data)))

    def put(self, table: pa.Table) -> None:
        """Values as Arrow, in several requests; each is answered when they are on disk."""
        for first in range(0, len(table), _PUT_ROWS):
            body = to_arrow(table.slice(first, _PUT_ROWS))
            self.bytes("POST", "/v1/values", body, kind=ARROW_TYPE)

    def bytes(
        self,
        method: str,
        target: str,
        body: bytes | None = None,
        accept: str = JSON_TYPE,
        kind: str = JSON_TYPE,
    ) -> bytes:
        """The whole answer, not looked at."""
        headers = self._headers | {"Accept": accept, "Content-Type": kind}
        self._connection.request(method, target, body, headers)
        reply = self._connection.getresponse()
        found = reply.read()
        if reply.status != http.client.OK:
            raise SetupError(f"{method} {target:.200} is answered with {found[:500]!r}")
        return found


class Question:
    """One question to a node, as often as wanted."""

    def __init__(
        self,
        target: str,
        parameters: list[tuple[str, object]],
        body: Any = None,
        arrow: bool = True,
    ) -> None:
        self._method = "GET" if body is None else "POST"
        self._target = f"{target}?{urlencode(parameters)}"
        self._body = None if body is None else json.dumps(body).encode()
        self._arrow = arrow

    def ask(self, caller: Caller) -> bytes:
        accept = ARROW_TYPE if self._arrow else JSON_TYPE
        return caller.bytes(self._method, self._target, self._body, accept)

    def rows(self, caller: Caller) -> int:
        answer = self.ask(caller)
        if self._arrow:
            return len(from_arrow(answer)[0])
        told = json.loads(answer)
        return len(told["values"] if "values" in told else told["rows"])

    def time(self, caller: Caller, runs: int, rows: int | None = None) -> dict[str, float]:
        """From the request to the last byte of the answer, which has so many rows."""
        found = self.rows(caller)
        if rows is not None and found != rows:
            raise SetupError(f"{self._target:.200} has {found:,} rows instead of {rows:,}")
        for _ in range(max(runs // 10, 1)):
            self.ask(caller)
        times = [seconds(lambda: self.ask(caller)) for _ in range(runs)]
        return {"rows": found, **spread(times)}
