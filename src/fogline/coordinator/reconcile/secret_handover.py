"""Hands the fabric's secret to every site that is online, again whenever either is another.

A site that was offline gets it when it is back. One that has a newer secret than the coordinator
(restored from a backup, or beside another coordinator) makes the coordinator rotate its own, so all
sites end with the same.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from fogline.common.backoff import wait_seconds
from fogline.common.errors import DataError
from fogline.common.fabric_secret import (
    ACCEPT_SECONDS,
    FabricSecret,
    load_secret,
    save_secret,
    version_of,
)
from fogline.control.groups import Outcome
from fogline.coordinator.pipelines.ports import ControlPort
from fogline.model.nodes import SITE, NodeView

OP = "secret"
TURN_SECONDS = 0.5
ANSWER_SECONDS = 10.0
CURRENT, OWN, WAITING, REFUSED, OFFLINE = "current", "own file", "waiting", "refused", "offline"

_say = logging.getLogger(__name__)


@dataclass(slots=True)
class _Site:
    """What one start of a site was handed, and what it said."""

    instance: str
    version: int = 0
    """The last that it said it has."""
    own: bool = False
    asked: bool = False
    """It is being handed one."""
    attempts: int = 0
    due: float = 0.0
    problem: str = ""
    refused: bool = False


class SecretHandover:
    """`turn` again and again by one thread; everything else from any thread."""

    def __init__(
        self,
        folder: Path,
        control: ControlPort,
        views: Callable[[], Mapping[str, NodeView]],
        clock: Callable[[], float] = time.time,
        seed: int = 0,
    ) -> None:
        """Makes the secret where there is none. Raises `SetupError` when it cannot be written."""
        self._folder, self._control, self._views = folder, control, views
        self._clock, self._seed = clock, seed
        self._lock = threading.RLock()
        self._sites: dict[str, _Site] = {}
        self._secret = self._first()

    def rotate(self, accept_seconds: float = ACCEPT_SECONDS) -> None:
        """A new secret, on disk when this returns; the sites get it from the next turn on. Those of
        before are accepted for so many seconds."""
        with self._lock:
            self._replace(self._secret.rotate(self._clock(), accept_seconds))

    def status(self) -> dict[str, Any]:
        """How far it is; never the secret itself."""
        sites = {name: view for name, view in self._views().items() if view.node.kind == SITE}
        with self._lock:
            until = [old.until for old in self._secret.replaced if old.until > self._clock()]
            return {
                "made": self._secret.version / 1e6,
                "old_accepted_until": max(until, default=None),
                "sites": [self._describe_site(name, view) for name, view in sorted(sites.items())],
            }

    def turn(self) -> None:
        """Hands it to those that need it; what was refused or lost is tried again later."""
        now, views = self._clock(), self._views()
        with self._lock:
            sites = {name: view for name, view in views.items() if view.node.kind == SITE}
            due = {name: v.instance for name, v in sites.items() if self._is_due(name, v, now)}
            for name in due:
                self._sites[name].asked = True
            body = self._secret.as_json()
        if due:
            on_outcomes = partial(self._take_outcomes, due)
            self._control.send_each(
                OP, body, {name: {} for name in due}, ANSWER_SECONDS, on_outcomes
            )

    def _is_due(self, name: str, view: NodeView, now: float) -> bool:
        site = self._sites.get(name)
        if site is None or site.instance != view.instance:
            site = self._sites[name] = _Site(view.instance)
        waits = site.asked or now < site.due or not view.online
        return not waits and not site.own and site.version != self._secret.version

    def _take_outcomes(self, instances: Mapping[str, str], outcomes: Mapping[str, Outcome]) -> None:
        for name, outcome in outcomes.items():
            with self._lock:
                site = self._sites.get(name)
                if site is not None and site.instance == instances[name]:
                    self._note(name, site, outcome)

    def _note(self, name: str, site: _Site, outcome: Outcome) -> None:
        site.asked = False
        try:
            if isinstance(outcome, BaseException):
                site.refused = self._control.is_refusal(outcome)
                raise outcome
            site.version, site.own = version_of(outcome), outcome.get("own") is True
            site.attempts, site.due, site.problem, site.refused = 0, 0.0, "", False
            if not site.own and site.version > self._secret.version:
                _say.warning("%s has a newer secret of the fabric: a new one is made", name)
                self._replace(self._secret.rotate(self._clock(), above=site.version))
        except Exception as error:
            site.problem = str(error)
            wait = wait_seconds(f"{self._seed}/{name}", site.attempts)
            site.attempts, site.due = site.attempts + 1, self._clock() + wait

    def _describe_site(self, name: str, view: NodeView) -> dict[str, Any]:
        site = self._sites.get(name)
        if site is None or site.instance != view.instance:
            site = _Site(view.instance)
        if site.own:
            state = OWN
        elif site.version == self._secret.version:
            state = CURRENT
        elif not view.online:
            state = OFFLINE
        else:
            state = REFUSED if site.refused else WAITING
        return {"node": name, "state": state, "problem": site.problem}

    def _first(self) -> FabricSecret:
        try:
            found = load_secret(self._folder)
        except DataError as error:
            _say.error("%s: a new one is made", error.message)
            found = None
        if found is None:
            found = FabricSecret.make(self._clock())
            save_secret(self._folder, found)
        return found

    def _replace(self, secret: FabricSecret) -> None:
        save_secret(self._folder, secret)
        self._secret = secret
        for site in self._sites.values():
            site.due = 0.0
