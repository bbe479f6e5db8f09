"""How the runner and a measured engine talk: one JSON object a line, over the worker's pipes.

The worker says `{"ready": true}` once its session is warm. Then it answers `time` with seconds and
`check` with the number of results and the sum of their values, until its input ends. This module
imports nothing but the standard library: peers run in an environment of their own.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True)
class Checked:
    """What a query produced: results of all engines must agree."""

    count: int
    total: float


@dataclass(frozen=True)
class Given:
    """The data of one pass."""

    events: Path
    closing: Path


class Engine(Protocol):
    """A warm engine with one workload. A pass may be repeated; each starts from nothing."""

    def time(self, given: Given) -> float:
        """Seconds from starting the query to its last result."""

    def check(self, given: Given) -> Checked:
        """The same query, its results counted."""


def serve(engine: Engine) -> None:
    """Answers until the input ends. Whatever else is written to standard output goes to stderr."""
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    _say(replies, {"ready": True})
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            reply = _answer(engine, asked)
        except Exception as error:
            traceback.print_exc()
            reply = {"error": f"{type(error).__name__}: {error}".splitlines()[0][:300]}
        _say(replies, reply)


def _answer(engine: Engine, asked: dict[str, str]) -> dict[str, object]:
    given = Given(Path(asked["events"]), Path(asked["closing"]))
    if asked["do"] == "time":
        return {"seconds": engine.time(given)}
    checked = engine.check(given)
    return {"count": checked.count, "total": checked.total}


def _say(replies: object, message: dict[str, object]) -> None:
    print(json.dumps(message), file=replies, flush=True)  # type: ignore[call-overload]
