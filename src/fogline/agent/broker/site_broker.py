"""The broker of a site: an own Mosquitto with a journal, or an existing one by its address."""

from __future__ import annotations

import contextlib
import secrets
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from fogline.agent.broker.connections import Connection, broker_options
from fogline.agent.config.site import DEFAULT_PROTOCOL, BrokerConfig
from fogline.broker.login import read_password, with_login
from fogline.broker.mosquitto.access import SITE, AccessFile, Restricted
from fogline.broker.mosquitto.journal import READER, register
from fogline.broker.mosquitto.server import Mosquitto, MosquittoOptions, ServerTls
from fogline.common.errors import SetupError
from fogline.common.state_files import StateDamaged, read_state, set_aside, write_state
from fogline.log import Limits, enforce, get_position
from fogline.log.writer import now_us
from fogline.model.broker_url import BrokerUrl


@dataclass(frozen=True, slots=True)
class BrokerStatus:
    state: str
    address: str
    pid: int | None = None
    """This and the next: only of the site's own broker."""
    restarts: int | None = None


class SiteBroker:
    def __init__(self, config: BrokerConfig, folder: Path, min_free: int) -> None:
        self._config = config
        self._folder = folder
        self._min_free = min_free
        self._restarts = 0
        self._access = AccessFile(folder / "broker" / "access", config.logins)
        self._restricted: dict[str, Restricted] = {}
        self._own = None if config.url else self._mosquitto()
        self._watch: Connection | None = None
        """Shows whether an existing broker can be reached."""

    def _mosquitto(self) -> Mosquitto:
        given = self._config
        folder = self._folder / "broker"
        options = MosquittoOptions(
            host=given.host,
            port=given.port or _remembered_port(folder),
            user=given.user,
            password=read_password(given.password_file),
            logins=self._logins(),
            access=self._access.path,
            tls=_server_tls(given),
            inner=given.certificate is not None,
            queued_bytes=round(given.queued_megabytes * (1 << 20)),
            journal=self.journal,
            journal_sync=given.sync,
            journal_free_bytes=self._min_free,
        )
        return Mosquitto(folder, options)

    def _logins(self) -> dict[str, str]:
        """Those of readers, and one that only the site's own processes know."""
        readers = self._config.readers.items()
        found = {name: read_password(reader.password_file) or "" for name, reader in readers}
        return {SITE: secrets.token_urlsafe(32), **found}

    @property
    def own(self) -> bool:
        return self._own is not None

    @property
    def journal(self) -> Path:
        """The log of everything that the own broker confirms."""
        return self._folder / "journal"

    @property
    def url(self) -> str:
        """For the site's own processes, with user and password: not for printing."""
        if self._own is not None:
            return self._own.inner_url
        given = self._config
        url = with_login(str(given.url), given.user, given.password_file)
        if given.protocol == DEFAULT_PROTOCOL or BrokerUrl.parse(url).protocol is not None:
            return url
        return f"{url}{'&' if '?' in url else '?'}protocol={given.protocol}"

    @property
    def address(self) -> str:
        """Where devices connect, for people."""
        if self._own is not None:
            scheme = "mqtt" if self._own.options.tls is None else "mqtts"
            return f"{scheme}://{self._own.options.host}:{self._own.port}"
        url = BrokerUrl.parse(str(self._config.url))
        return f"{'mqtts' if url.tls else 'mqtt'}://{url}"

    @property
    def tls(self) -> dict[str, str] | None:
        given = self._config
        files = {"ca": given.ca, "certificate": given.certificate, "key": given.key}
        found = {name: str(path) for name, path in files.items() if path is not None}
        return found or None

    def restrict(self, topics: Mapping[str, Restricted | None]) -> None:
        """From now on, before anything more is published; None: the topic is everybody's. One that
        is not named stays as it is: something of it may be under way."""
        known = {**self._restricted, **topics}
        self._restricted = {topic: rule for topic, rule in known.items() if rule is not None}
        if self._own is not None:
            self._access.restrict(self._restricted.values())

    @property
    def unguarded_topics(self) -> list[str]:
        """Restricted topics about which an existing broker decides."""
        return [] if self.own else sorted(self._restricted)

    def start(self, journaled: Iterable[str]) -> None:
        """`journaled` are the logs that get what the own broker confirms. What is restricted is
        set before."""
        if self._own is None:
            self._watch = Connection(self.url, broker_options("", self.tls))
        else:
            register(self.journal, journaled)
            self._access.restrict(self._restricted.values())
            self._own.start()
            _remember_port(self._own.folder, self._own.port)

    def keep_running(self) -> None:
        if self._own is None:
            return
        self._own.keep_log_bounded()
        if not self._own.running:
            self._restarts += 1
            with contextlib.suppress(SetupError, OSError):
                self._own.start()

    def enforce_retention(self) -> None:
        if self._own is not None and self.journal.exists():
            enforce_journal(self.journal)

    def stop(self) -> None:
        if self._watch is not None:
            self._watch.close()
        if self._own is not None:
            self._own.stop()

    def status(self) -> BrokerStatus:
        if self._own is not None:
            return BrokerStatus(self._state(), self.address, self._own.pid, self._restarts)
        state = self._watch.state if self._watch is not None else "starting"
        return BrokerStatus(state, self.address)

    def _state(self) -> str:
        """A broker without space stands still, and its clients wait."""
        assert self._own is not None
        if not self._own.running:
            return "restarting"
        free = shutil.disk_usage(self._folder).free
        if free < self._min_free:
            kept = f"{self._min_free:,} bytes are kept free"
            return f"no space: {free:,} bytes are left, {kept}"
        return "running"


def _server_tls(given: BrokerConfig) -> ServerTls | None:
    if given.certificate is None or given.key is None:
        return None
    return ServerTls(given.certificate, given.key)


def enforce_journal(journal: Path) -> None:
    """Keeps what the intake has not taken over yet, and the last segment."""
    if get_position(journal, READER) is not None:
        enforce(journal, Limits(size=0), now_us())


def _remembered_port(folder: Path) -> int:
    """Devices find the broker where it was before, if that port is still free to us."""
    try:
        return int(read_state(folder / "port"))
    except (ValueError, StateDamaged):
        set_aside(folder / "port")
        return 0
    except OSError:
        return 0


def _remember_port(folder: Path, port: int) -> None:
    write_state(folder / "port", f"{port}\n")
