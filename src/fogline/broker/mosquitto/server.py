"""Mosquitto as a child process: the broker a site has when none is configured.

It listens on loopback only, keeps everything in one folder (configuration, data, log), ends with
the process that started it, and after a crash starts again on the same port with its data. With a
journal every message is in a site log before it is confirmed (docs/design/journal.md).
"""

from __future__ import annotations

import contextlib
import logging
import os
import pwd
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self
from urllib.parse import quote

import psutil

from fogline.broker.mosquitto.access import SITE
from fogline.broker.mosquitto.passwords import write_passwords
from fogline.common.errors import SetupError, UsageError
from fogline.common.process.free_ports import free_port
from fogline.common.process.log_rotation import keep_bounded
from fogline.common.process.parent_death import end_with_parent
from fogline.common.sealed_files import broken_seal, seal, unseal
from fogline.common.state_files import set_aside

INSTALL = "install it with: apt-get install mosquitto"
PLUGIN = Path(__file__).with_name("fogline_journal.so")
ACCESS = Path(__file__).with_name("fogline_access.so")
BUILD = (
    "run scripts/setup.sh, or native/build.py after: apt-get install gcc libc6-dev mosquitto-dev"
)
PLACES = "/usr/sbin:/usr/local/sbin:/usr/local/bin:/usr/bin:/opt/homebrew/sbin"
LOOPBACK = ("127.0.0.1", "::1", "localhost")
START_SECONDS = 10.0
STOP_SECONDS = 10.0
PORT_ATTEMPTS = 5
# The log's largest payload and topic, and some space for what MQTT puts around them.
LARGEST_PACKET = (16 << 20) + (128 << 10)
# The smallest CONNECT there is; any answer to it shows that a broker is at work.
HELLO = b"\x10\x0c\0\x04MQTT\x04\x02\0\x3c\0\0"
_UNREADABLE = b"Couldn't open database"
_say = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ServerTls:
    """The broker's certificate and key; with `ca`, clients must show a certificate of that CA."""

    certificate: Path
    key: Path
    ca: Path | None = None


@dataclass(frozen=True, slots=True)
class MosquittoOptions:
    """How the broker is run. Without a user everyone on this machine may connect."""

    port: int = 0
    """0: a free one, which stays the same over restarts of the same object."""
    host: str = "127.0.0.1"
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    logins: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Further users and their passwords. `SITE` is that of the processes that belong to it."""
    access: Path | None = None
    """With a journal: the file of who may read and write which topics (`broker.access`)."""
    tls: ServerTls | None = None
    inner: bool = False
    """Whether it listens a second time, on a free port of loopback without TLS: for processes that
    belong to it."""
    save_after: int = 1
    """Changes after which queued messages are saved; 0: never.

    With 1 a crash loses only what was confirmed in the last milliseconds, because Mosquitto
    confirms first and saves then. Each time everything that is queued is written and synced, so it
    is slow: hundreds of messages a second on a disk, thousands in a folder in memory (which
    survives the process only).
    """
    data: Path | None = None
    """Where they are saved; by default `data` in the broker's folder."""
    journal: Path | None = None
    """The folder of the log that takes every message before it is confirmed; then `save_after`
    does not count: subscriptions and retained messages are saved every 30 minutes and at the end.
    """
    journal_sync: bool = False
    """Whether a message is confirmed only when it would survive a power failure, too."""
    journal_free_bytes: int = 64 << 20
    """Space that is left free: when there is less, producers wait."""
    inflight: int = 10_000
    """Messages one subscriber may hold unacknowledged."""
    queued: int = 1_000_000
    """Messages kept for one subscriber that is offline or behind."""
    queued_bytes: int = 0
    """Bytes of them, 0 for no limit; beyond it that subscriber misses messages."""

    def __post_init__(self) -> None:
        if self.user is None and self.host not in LOOPBACK:
            raise UsageError(
                f"a broker at {self.host} needs a user and a password",
                "without them it listens on 127.0.0.1 only",
            )
        if self.user is not None and (not self.user or any(c in self.user for c in ":\r\n\0")):
            raise UsageError("a broker's user has a name without colons and line breaks")


def configuration(options: MosquittoOptions, port: int, folder: Path, inner_port: int = 0) -> str:
    """The text of mosquitto.conf.

    By default Mosquitto saves every 30 minutes and `kill -9` loses what is queued.
    """
    lines = [
        f"listener {port} {options.host}",
        *(_tls_lines(options.tls) if options.tls is not None else ()),
        *([f"listener {inner_port} {LOOPBACK[0]}"] if inner_port else ()),
        f"allow_anonymous {'true' if options.user is None else 'false'}",
        "log_dest stderr",
        "log_type error",
        "log_type warning",
        "log_type notice",
        "log_timestamp_format %Y-%m-%dT%H:%M:%S",
        f"max_inflight_messages {options.inflight}",
        f"max_queued_messages {options.queued}",
        f"max_queued_bytes {options.queued_bytes}",
        "set_tcp_nodelay true",
        *_saving_lines(options, folder),
    ]
    if _logins(options):
        lines.append(f"password_file {folder / 'passwords'}")
    if os.geteuid() == 0:
        # Started by root it would change to a user that cannot read the folder.
        lines.append(f"user {pwd.getpwuid(0).pw_name}")
    return "\n".join(lines) + "\n"


def _saving_lines(options: MosquittoOptions, folder: Path) -> list[str]:
    place = f"persistence_location {_data(options, folder)}/"
    if options.journal is not None:
        return ["persistence true", place, *_journal_lines(options, options.journal)]
    if not options.save_after:
        return ["persistence false"]
    often = ["autosave_on_changes true", f"autosave_interval {options.save_after}"]
    return ["persistence true", place, *often]


def _logins(options: MosquittoOptions) -> dict[str, str]:
    main = {} if options.user is None else {options.user: options.password or ""}
    return {**options.logins, **main}


def _access_lines(options: MosquittoOptions) -> list[str]:
    if options.access is None:
        return []
    return [
        f"plugin {ACCESS}",
        f"plugin_opt_file {options.access.absolute()}",
        f"plugin_opt_site {SITE}",
        f"plugin_opt_open {'true' if options.user is None else 'false'}",
    ]


def _journal_lines(options: MosquittoOptions, journal: Path) -> list[str]:
    return [
        *_access_lines(options),
        f"plugin {PLUGIN}",
        f"plugin_opt_folder {journal.absolute()}",
        f"plugin_opt_sync {'true' if options.journal_sync else 'false'}",
        f"plugin_opt_min_free_bytes {options.journal_free_bytes}",
        # Else an older client would get a PUBACK for a message that the log does not take.
        f"max_packet_size {LARGEST_PACKET}",
    ]


def _data(options: MosquittoOptions, folder: Path) -> Path:
    return (options.data or folder / "data").absolute()


def _tls_lines(tls: ServerTls) -> list[str]:
    lines = [f"certfile {tls.certificate.absolute()}", f"keyfile {tls.key.absolute()}"]
    if tls.ca is not None:
        lines += [f"cafile {tls.ca.absolute()}", "require_certificate true"]
    return lines


def find_mosquitto() -> str:
    """The program's path; it is often installed where ordinary users do not look."""
    path = os.environ.get("PATH", "") + os.pathsep + PLACES
    found = shutil.which("mosquitto", path=path)
    if found is None:
        raise SetupError("mosquitto is not installed", INSTALL)
    return found


class Mosquitto:
    """One broker in one folder: `start`, then `stop`; both may be repeated."""

    def __init__(self, folder: Path, options: MosquittoOptions | None = None) -> None:
        self.folder = folder.absolute()
        self.options = options or MosquittoOptions()
        self.port = self.options.port
        self._inner_port = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._ready = False
        """Whether this process has taken connections."""

    @property
    def log(self) -> Path:
        """What the broker says, over all its starts; what is older is in `mosquitto.log.1`."""
        return self.folder / "mosquitto.log"

    @property
    def url(self) -> str:
        """The address for clients, with user and password: not for printing."""
        return self._url(self.options.user or "", self.options.password or "")

    @property
    def inner_url(self) -> str:
        """The address for processes that belong to it, with their login: not for printing. It is
        the same where there is no second listener and no login of theirs."""
        user = SITE if SITE in self.options.logins else self.options.user or ""
        password = _logins(self.options).get(user, "")
        if self.options.inner:
            return _url("mqtt", f"{LOOPBACK[0]}:{self._inner_port}", user, password)
        return self._url(user, password)

    def _url(self, user: str, password: str) -> str:
        scheme = "mqtt" if self.options.tls is None else "mqtts"
        return _url(scheme, f"{self.options.host}:{self.port}", user, password)

    @property
    def running(self) -> bool:
        """Whether it takes connections; not while it starts."""
        return self._ready and self._alive

    @property
    def _alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """The process id, 0 before the first start."""
        return self._process.pid if self._process else 0

    def start(self) -> Self:
        """Returns when the broker takes connections. Does nothing when it runs already.

        Raises `SetupError` when it is not installed, the port is taken, or it does not come up.
        """
        if self.running:
            return self
        program = find_mosquitto()
        if self.options.journal is not None and not (PLUGIN.exists() and ACCESS.exists()):
            raise SetupError("the journal of the broker is not built", BUILD)
        self.folder.mkdir(parents=True, exist_ok=True)
        _data(self.options, self.folder).mkdir(parents=True, exist_ok=True)
        if logins := _logins(self.options):
            write_passwords(self.folder / "passwords", logins)
        self.keep_log_bounded()
        if self.port:
            self._check_free(self.port)
        self._open_seal()
        chosen = not self.port or (self.options.inner and not self._inner_port)
        for left in reversed(range(PORT_ATTEMPTS if chosen else 1)):
            # Somebody may take a free port before the broker does.
            port = self.port or free_port(self.options.host)
            inner = self._inner_port or (free_port() if self.options.inner else 0)
            if self._launch(program, port, inner, last=not left):
                self.port, self._inner_port = port, inner
                break
        return self

    def keep_log_bounded(self) -> None:
        """To be called now and then while it runs."""
        keep_bounded(self.log)

    def stop(self, timeout: float = STOP_SECONDS) -> None:
        """Ends the broker: it is asked to, saves its data, and is killed when that takes longer."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(timeout)
            seal(self._database_path)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """Ends the broker at once, as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *error: object) -> None:
        self.stop()

    def _launch(self, program: str, port: int, inner_port: int, last: bool) -> bool:
        """Whether the broker came up; when it did not and this was the `last` try, it raises."""
        config = self.folder / "mosquitto.conf"
        text = configuration(self.options, port, self.folder, inner_port)
        config.write_text(text, encoding="utf-8")
        seen = self.log.stat().st_size if self.log.exists() else 0
        self._ready = False
        with self.log.open("ab") as log:
            self._process = _Keeper([program, "-c", str(config)], log.fileno()).process
        self._ready = self._wait_until_ready(port)
        if self._ready:
            return True
        self.kill()
        if self._set_damaged_aside(seen):
            return self._launch(program, port, inner_port, last)
        if last:
            said = self.log.read_bytes()[seen:].decode(errors="replace").strip().splitlines()
            reason = said[-1] if said else "it says nothing"
            raise SetupError(f"mosquitto does not start: {reason}", f"its log is {self.log}")
        return False

    @property
    def _database_path(self) -> Path:
        """Where it keeps retained messages and sessions; what it confirms is in the journal."""
        return _data(self.options, self.folder) / "mosquitto.db"

    def _open_seal(self) -> None:
        if wrong := broken_seal(self._database_path):
            _say.error(
                "%s: %s; retained messages and sessions are lost", self._database_path, wrong
            )
            set_aside(self._database_path)
        unseal(self._database_path)

    def _set_damaged_aside(self, seen: int) -> bool:
        """Whether it did not start because it cannot read what it saved: it begins without."""
        said = self.log.read_bytes()[seen:]
        if _UNREADABLE not in said or not set_aside(self._database_path):
            return False
        _say.error("%s: mosquitto cannot read it; it begins without", self._database_path)
        return True

    def _wait_until_ready(self, port: int) -> bool:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self._alive:
            with contextlib.suppress(OSError):
                if self._answers(port) and self._listens(port):
                    return True
            time.sleep(0.01)
        return False

    def _answers(self, port: int) -> bool:
        """Connecting alone proves little: it listens before it has read its certificates."""
        with socket.create_connection((self.options.host, port), timeout=1) as plain:
            if self.options.tls is None:
                plain.sendall(HELLO)
                return bool(plain.recv(1))
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
            context.wrap_socket(plain).close()
            return True

    def _listens(self, port: int) -> bool:
        """Else another process had the port first and answered."""
        with contextlib.suppress(psutil.NoSuchProcess):
            connections = psutil.Process(self.pid).net_connections("tcp")
            own = {c.laddr.port for c in connections if c.status == psutil.CONN_LISTEN}
            return port in own
        return False

    def _check_free(self, port: int) -> None:
        try:
            _bind(self.options.host, port)
        except OSError as error:
            hint = "is another broker running? choose another port"
            raise SetupError(f"port {port} is taken: {error.strerror}", hint) from error


def _url(scheme: str, place: str, user: str, password: str) -> str:
    login = f"{quote(user, safe='')}:{quote(password, safe='')}@" if user else ""
    return f"{scheme}://{login}{place}"


def _bind(host: str, port: int) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((host, port))


class _Keeper:
    """Starts a process that ends with this one, and waits for it.

    The kernel ends the child when the *thread* that started it ends, so the starting thread has to
    live as long as the child does.
    """

    def __init__(self, command: list[str], output: int) -> None:
        self._command = command
        self._output = output
        self._error: OSError | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._started = threading.Event()
        threading.Thread(target=self._run, name="mosquitto", daemon=True).start()

    @property
    def process(self) -> subprocess.Popen[bytes]:
        self._started.wait()
        if self._process is None:
            text = f"{self._command[0]} does not start: {self._error}"
            raise SetupError(text, INSTALL) from self._error
        return self._process

    def _run(self) -> None:
        try:
            # A session of its own, so that Ctrl-C in a terminal reaches us first.
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=self._output,
                start_new_session=True,
                preexec_fn=end_with_parent,
            )
        except OSError as error:
            self._error = error
        finally:
            self._started.set()
        if self._process is not None:
            self._process.wait()
