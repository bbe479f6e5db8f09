"""Every other node ever heard of, and its address: the file `fabric.json`.

Nodes come from the configuration and from announcements. One that stops answering stays; it goes
when its entry is taken out of the configuration, or its announcement is cleared.
"""

from __future__ import annotations

import contextlib
import json
import logging
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from fogline.common.state_files import StateDamaged, read_state, set_aside, write_state
from fogline.model.nodes import is_name

NAME = "fabric.json"
LONGEST_ADDRESS = 500
MOST_NODES = 10_000

_say = logging.getLogger(__name__)


class Directory:
    """For any thread. What cannot be written to disk is known until the process ends."""

    def __init__(self, here: str, folder: Path) -> None:
        self._here = here
        self._path = folder / NAME
        self._guard = threading.Lock()
        self._configured, self._announced = _load(self._path, here)

    def nodes(self) -> dict[str, str]:
        """The address of each other node; the configuration is right where both know it."""
        with self._guard:
            return {**self._announced, **self._configured}

    def configure(self, nodes: Mapping[str, str]) -> list[str]:
        """What the configuration says now; returns the names that cannot be used."""
        usable = {name: address for name, address in nodes.items() if self._fits(name, address)}
        self._change(usable, None)
        return sorted(set(nodes) - set(usable) - {self._here})

    def note_announcement(self, name: str, address: str) -> None:
        """A node announced itself. One that does so without an address has no store any more, but
        what it stored is still asked for."""
        with self._guard:
            known = dict(self._announced)
        room = name in known or len(known) < MOST_NODES
        if room and self._fits(name, address) and known.get(name) != address:
            self._change(None, {**known, name: address})

    def forget(self, name: str) -> None:
        """Its announcement was cleared. The configuration may still know it."""
        with self._guard:
            known = dict(self._announced)
        if known.pop(name, None) is not None:
            self._change(None, known)

    def _fits(self, name: str, address: str) -> bool:
        return name != self._here and is_name(name) and is_address(address)

    def _change(
        self, configured: Mapping[str, str] | None, announced: Mapping[str, str] | None
    ) -> None:
        with self._guard:
            before = self._configured, self._announced
            if configured is not None:
                self._configured = dict(configured)
            if announced is not None:
                self._announced = dict(announced)
            if (self._configured, self._announced) != before:
                _store(self._path, self._configured, self._announced)


def is_address(text: Any) -> bool:
    """Whether a node's store can be asked there: http or https, a host, nothing secret."""
    if not isinstance(text, str) or len(text) > LONGEST_ADDRESS or not text.isprintable():
        return False
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return False
    plain = not (parts.username or parts.password or parts.query or parts.fragment or " " in text)
    return plain and parts.scheme in ("http", "https") and bool(parts.hostname) and port != 0


def _load(path: Path, here: str) -> tuple[dict[str, str], dict[str, str]]:
    """A damaged file is reported and counts as none: announcements and the configuration come
    again."""
    try:
        data = json.loads(_body(read_state(path)))
        return _nodes(data["configured"], here), _nodes(data["born"], here)
    except FileNotFoundError:
        return {}, {}
    except (
        *(OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError),
        StateDamaged,
    ) as error:
        _say.warning("%s cannot be used and is made anew: %s", path, error)
        with contextlib.suppress(OSError):
            set_aside(path)
        return {}, {}


def _body(text: str) -> str:
    """Without the line before it that older versions wrote."""
    return text if text.startswith("{") else text.partition("\n")[2]


def _nodes(data: Any, here: str) -> dict[str, str]:
    return {
        name: address
        for name, address in data.items()
        if name != here and is_name(name) and is_address(address)
    }


def _store(path: Path, configured: Mapping[str, str], announced: Mapping[str, str]) -> None:
    body = json.dumps({"configured": configured, "born": announced}, indent=1)
    try:
        write_state(path, body)
    except OSError as error:
        _say.warning("%s cannot be written: %s", path, error)
