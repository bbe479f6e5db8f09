"""The secrets that nodes of the fabric show each other, which may change while they run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

from fogline.common.errors import UsageError
from fogline.common.fabric_secret import SHORTEST

ALONE = (
    "this site has no secret of the fabric: write one of 16 characters or more into a file, the"
    " same at all sites, and name it in each site.yaml: store: {secret_file: fabric.secret}"
)
MANAGED = (
    "this site has no secret of the fabric yet: its coordinator hands it over when both are"
    " connected to the control broker (is fogline coordinator running?)"
)


class Secrets:
    """For any thread. Each is accepted until a time, or for ever; the newest comes first."""

    def __init__(self, secrets: str | Iterable[Iterable[Any]] = (), managed: bool = False) -> None:
        """One secret, or several with their times (None: for ever). Under a coordinator that hands
        them over, a node is `managed`. Raises `UsageError` for one that could be guessed."""
        self.missing = MANAGED if managed else ALONE
        """What is wrong when there is none."""
        self._known: tuple[tuple[str, float | None], ...] = ()
        self.change([(secrets, None)] if isinstance(secrets, str) and secrets else secrets)

    def __repr__(self) -> str:
        return f"Secrets({len(self._known)})"

    def change(self, secrets: Iterable[Iterable[Any]]) -> None:
        """From now on these."""
        known = tuple((str(text), until) for text, until in secrets)
        if any(len(text) < SHORTEST for text, _ in known):
            raise UsageError(f"the fabric's secret needs {SHORTEST} characters or more")
        self._known = known

    def accepted_secrets(self, clock: Callable[[], float] = time.time) -> tuple[str, ...]:
        """Those that count now."""
        now = clock()
        return tuple(text for text, until in self._known if until is None or now < until)


def as_secrets(secret: str | Secrets) -> Secrets:
    return secret if isinstance(secret, Secrets) else Secrets(secret)
