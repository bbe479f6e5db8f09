"""One site: its broker, ingest, engine and publishing processes, kept running until told to stop.

Order of start: queries are checked, then the broker, then everything that needs it. Order of stop:
intake first, then jobs, then publishing, then the broker, so nothing is on its way when it ends.
"""

from __future__ import annotations

import contextlib
import fcntl
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fogline import settings
from fogline.agent.children import Child
from fogline.agent.config import SiteConfig
from fogline.agent.journal import READER, register
from fogline.agent.mosquitto import Mosquitto, MosquittoOptions
from fogline.agent.reporting import Reporter
from fogline.broker.topics import split_share
from fogline.errors import DataError, SetupError, UsageError
from fogline.log import Limits, LogError, SiteLog, enforce, get_position
from fogline.model.broker_url import BrokerUrl
from fogline.model.sites import bad_log, command_log, insight_log, late_log, stream_log
from fogline.model.streams import StreamSource
from fogline.plan.operators import Scan, walk_plan
from fogline.plan.query_file import LoadedQuery, load_query

_TICK_SECONDS = 0.2
_RETENTION_SECONDS = 30.0
_STOP_SECONDS = {"ingest": 10.0, "engine": 30.0, "publish": 20.0}
_MEBIBYTE = 1 << 20


class Site:
    """`start`, then `run` or `tick` again and again, then `stop`."""

    def __init__(self, config: SiteConfig) -> None:
        self.config = config
        self.folder = config.folder
        self.logs = SiteLog(self.folder / "log", min_free_bytes=self._min_free)
        self._queries = {job.name: load_query(job.query, settings.load()) for job in config.jobs}
        self._check()
        self._broker = None if config.broker.url else self._own_broker()
        self._children = [
            Child("ingest", "fogline.agent.ingest", self._ingest_config, self._log("ingest")),
            Child("engine", "fogline.agent.engine", self._engine_config, self._log("engine")),
            Child("publish", "fogline.agent.publish", self._publish_config, self._log("publish")),
        ]
        self._reporter = Reporter(self)
        self._retention_due = 0.0
        self._broker_restarts = 0
        self._lock: Any = None

    @property
    def _min_free(self) -> int:
        return round(self.config.min_free_megabytes * _MEBIBYTE)

    def _log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def _check(self) -> None:
        names = [job.name for job in self.config.jobs]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise UsageError(
                f"two jobs are called {', '.join(twice)}", "give one a name of its own"
            )
        for stream in self._streams():
            if stream.provider not in ("mqtt", "file"):
                text = f"stream {stream.name} comes from {stream.provider}"
                raise UsageError(f"{text}, which a site cannot read", "use mqtt(…) or file(…)")

    def _streams(self) -> Iterator[StreamSource]:
        for loaded in self._queries.values():
            yield from streams_of(loaded)

    # ── the broker ─────────────────────────────────────────────────────────────────────────────

    def _own_broker(self) -> Mosquitto:
        given = self.config.broker
        folder = self.folder / "broker"
        options = MosquittoOptions(
            port=given.port or _remembered_port(folder),
            user=given.user,
            password=_password(given.password_file),
            journal=self._journal,
            journal_sync=given.sync,
            journal_free_bytes=self._min_free,
        )
        return Mosquitto(folder, options)

    @property
    def _journal(self) -> Path:
        """The log of everything that the own broker confirms."""
        return self.folder / "journal"

    @property
    def broker_url(self) -> str:
        """With user and password: not for printing."""
        if self._broker is not None:
            return self._broker.url
        given = self.config.broker
        return with_login(str(given.url), given.user, _password(given.password_file))

    @property
    def broker_address(self) -> str:
        """Where devices connect, for people."""
        if self._broker is not None:
            return f"mqtt://{self._broker.options.host}:{self._broker.port}"
        url = BrokerUrl.parse(str(self.config.broker.url))
        return f"{'mqtts' if url.tls else 'mqtt'}://{url}"

    @property
    def http_address(self) -> str:
        return self._reporter.address

    @property
    def tls(self) -> dict[str, str] | None:
        given = self.config.broker
        files = {"ca": given.ca, "certificate": given.certificate, "key": given.key}
        found = {name: str(path) for name, path in files.items() if path is not None}
        return found or None

    # ── running ────────────────────────────────────────────────────────────────────────────────

    def start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lock = _locked(self.folder / "agent.lock")
        if self._broker is not None:
            register(self._journal, self._journaled())
            self._broker.start()
            _remember_port(self._broker.folder, self._broker.port)
        self._reporter.start()
        self.tick()

    def run(self, stop: threading.Event) -> None:
        while not stop.is_set():
            self.tick()
            stop.wait(_TICK_SECONDS)

    def tick(self) -> None:
        """Starts what has died, reports, and removes what is no longer needed."""
        if self._broker is not None and not self._broker.running:
            self._broker_restarts += 1
            with contextlib.suppress(SetupError):
                self._broker.start()
        for child in self._children:
            if child.name != "engine" or self._ingest_has_begun():
                child.keep_running()
        self._reporter.tick()
        if time.monotonic() >= self._retention_due:
            self._retention_due = time.monotonic() + _RETENTION_SECONDS
            self._enforce_retention()

    def _ingest_has_begun(self) -> bool:
        """Jobs need their logs to be there only to begin; later either may die and come back."""
        return "subscriptions" in self._children[0].status or self._children[1].pid > 0

    def _enforce_retention(self) -> None:
        keep = self.config.retention
        limits = Limits(round(keep.hours * 3600e6), round(keep.megabytes * _MEBIBYTE))
        for topic in self.logs.topics():
            with contextlib.suppress(LogError, OSError):
                enforce(self.logs.folder(topic), limits, time.time_ns() // 1000)
        if self._broker is not None and self._journal.exists():
            with contextlib.suppress(LogError, OSError):
                enforce_journal(self._journal)

    def stop(self) -> None:
        for child in self._children:
            child.ask_to_end()
            child.wait(_STOP_SECONDS[child.name])
        self._reporter.stop()
        if self._broker is not None:
            self._broker.stop()
        if self._lock is not None:
            self._lock.close()

    def status(self) -> dict[str, Any]:
        """All there is to know, as the processes told it last."""
        parts = {
            child.name: {
                **child.status,
                "state": child.status.get("state", "waiting"),
                "pid": child.pid,
                "restarts": max(child.restarts, 0),
            }
            for child in self._children
        }
        broker: dict[str, Any] = {"state": "running", "address": self.broker_address}
        if self._broker is not None:
            broker |= {"pid": self._broker.pid, "restarts": self._broker_restarts}
            broker["state"] = self._broker_state()
        parts["broker"] = broker
        healthy = all(part["state"] == "running" for part in parts.values())
        return {"site": self.config.site, "healthy": healthy, **parts}

    def _broker_state(self) -> str:
        """A broker without space stands still, and its clients wait."""
        assert self._broker is not None
        if not self._broker.running:
            return "restarting"
        free = shutil.disk_usage(self.folder).free
        if free < self._min_free:
            kept = f"{self._min_free:,} bytes are kept free"
            return f"no space: {free:,} bytes are left, {kept}"
        return "running"

    # ── what the processes are told ────────────────────────────────────────────────────────────

    def _ingest_config(self) -> dict[str, Any]:
        config = {
            "client": f"fogline-{self.config.site}-ingest",
            "subscriptions": self._subscriptions(),
        }
        if self._broker is not None:
            config["journal"] = str(self._journal)
        return self._common() | config

    def _subscriptions(self) -> list[dict[str, Any]]:
        """One for each log that no job of this site writes itself."""
        written = {t for job, loaded in self._queries.items() for t in insights(job, loaded)}
        found: dict[str, dict[str, Any]] = {}
        for stream in self._streams():
            log = stream_log(stream) if stream.provider == "mqtt" else ""
            if log and log not in written:
                timed = stream.time_field is not None or stream.format == "senml"
                before = found.get(log, {"deduplicate": True})
                found[log] = {
                    "pattern": str(stream.parameter("topic")),
                    "log": log,
                    "broker": self._broker_of(stream),
                    "deduplicate": timed and before["deduplicate"],
                }
        return list(found.values())

    def _broker_of(self, stream: StreamSource) -> str:
        """The address to subscribe at; none where the own broker's journal has the messages."""
        if broker := stream.parameter("broker"):
            return str(broker)
        # What the broker says about itself does not go through the journal.
        about = split_share(str(stream.parameter("topic")))[1].startswith("$SYS/")
        return "" if self._broker is not None and not about else self.broker_url

    def _journaled(self) -> list[str]:
        return [str(item["log"]) for item in self._subscriptions() if not item["broker"]]

    def _engine_config(self) -> dict[str, Any]:
        jobs = [{"name": job.name, "query": str(job.query)} for job in self.config.jobs]
        return self._common() | {
            "site": self.config.site,
            "folder": str(self.folder),
            "engine": self.config.engine,
            "memory": self.config.memory,
            "trigger_ms": self.config.trigger_ms,
            "jobs": jobs,
        }

    def _publish_config(self) -> dict[str, Any]:
        topics = [t for job, loaded in self._queries.items() for t in outgoing(job, loaded)]
        client = f"fogline-{self.config.site}-publish"
        return self._common() | {"client": client, "broker": self.broker_url, "topics": topics}

    def _common(self) -> dict[str, Any]:
        return {"logs": str(self.logs.root), "min_free_bytes": self._min_free, "tls": self.tls}


def streams_of(loaded: LoadedQuery) -> list[StreamSource]:
    scans = [op.stream for op in walk_plan(loaded.plan) if isinstance(op, Scan)]
    return list(dict.fromkeys(scans))


def insights(job: str, loaded: LoadedQuery) -> list[str]:
    """The logs of a job's results, which the job writes itself."""
    return [insight_log(job, emit.name) for emit in loaded.plan.emits if not emit.hidden]


def outgoing(job: str, loaded: LoadedQuery) -> list[str]:
    """The logs whose records are published."""
    shown = [emit for emit in loaded.plan.emits if not emit.hidden]
    results = insights(job, loaded)
    commands = [command_log(job, emit.name) for emit in shown if emit.to is not None]
    rejected = [name(job, s.name) for s in streams_of(loaded) for name in (bad_log, late_log)]
    return [*results, *commands, *rejected]


def enforce_journal(journal: Path) -> None:
    """Keeps what the intake has not taken over yet, and the last segment."""
    if get_position(journal, READER) is not None:
        enforce(journal, Limits(size=0), time.time_ns() // 1000)


def with_login(url: str, user: str | None, password: str | None) -> str:
    """The address with user and password in it, where they are given apart from it."""
    if user is None:
        return url
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{quote(user, safe='')}:{quote(password or '', safe='')}@{rest}"


def _password(file: Path | None) -> str | None:
    if file is None:
        return None
    try:
        return file.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise DataError(f"the password file {file} cannot be read: {error.strerror}") from error


def _remembered_port(folder: Path) -> int:
    """Devices find the broker where it was before, if that port is still free to us."""
    try:
        return int((folder / "port").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return 0


def _remember_port(folder: Path, port: int) -> None:
    (folder / "port").write_text(f"{port}\n", encoding="ascii")


def _locked(path: Path) -> Any:
    """Two agents must not work in one folder."""
    file = path.open("w", encoding="ascii")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.close()
        raise UsageError(f"another agent works in {path.parent}", "stop it first") from error
    return file
