"""Damage in the logs of a site: repaired where the broker's journal still has the messages, else
reported until a person acknowledges it.

Readers of any process note what they meet (`fogline.log.files.damage`) and wait until it is settled
here. Each new finding is a line in the agent's log and a message in the log `bad/damage`, which is
published; the status and the metrics are made from all of them.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from fogline.agent.damage.journal_repair import repair_from_journal
from fogline.log import LogBusy, LogError, SiteLog
from fogline.log.files.damage import (
    FOUND,
    LOST,
    REPAIRED,
    Damage,
    Repairing,
    acknowledge,
    change,
    load_all,
)
from fogline.log.site import topic_of

DAMAGE_LOG = "bad/damage"
"""The log, and the topic, of what was found."""
JOURNAL = "$journal"
_STEP_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class DamageStatus:
    unacknowledged: tuple[Mapping[str, Any], ...]
    """Findings as `describe_damage` writes them."""
    lost_records: Mapping[str, int]
    """By log."""


class DamageWatch:
    """Works in a thread of its own from `start` to `stop`."""

    def __init__(
        self,
        site: str,
        logs: SiteLog,
        journal: Path | None,
        say: Callable[[str], None],
        publish: Callable[[], None],
    ) -> None:
        """`publish` is called when there is something new in the log `bad/damage`."""
        self._site = site
        self._logs = logs
        self._journal = journal
        self._say = say
        self._publish = publish
        self._guard = threading.Lock()
        self._repairing: Repairing | None = None
        self._known: list[tuple[str, Damage]] = []
        self._problem = ""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="damage", daemon=True)

    def start(self) -> None:
        self.step()
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        if self._repairing is not None:
            self._repairing.close()

    def _run(self) -> None:
        while not self._stop.wait(_STEP_SECONDS):
            self.step()

    def step(self) -> None:
        """Looks for what was noted since the last time."""
        with self._guard:
            try:
                self._hold()
                self._known = [(log, self._settle(log, d)) for log, d in self._find_noted()]
                self._problem = ""
            except (LogError, OSError) as error:
                self._say_problem(f"damage of logs cannot be looked after: {error}")

    def _hold(self) -> None:
        if self._repairing is None:
            with contextlib.suppress(LogBusy):  # a reader looks whether it is held
                self._repairing = Repairing(self._logs.root)

    def _find_noted(self) -> Iterator[tuple[str, Damage]]:
        for folder, log in self._folders():
            for damage in load_all(folder):
                yield log, damage

    def _folders(self) -> list[tuple[Path, str]]:
        """Of the logs in which something was noted."""
        folders = [path.parent for path in self._logs.root.glob("*/damage")]
        found = [(folder, topic_of(folder)) for folder in folders]
        if self._journal is not None and (self._journal / "damage").exists():
            found.append((self._journal, JOURNAL))
        return sorted(found, key=lambda item: item[1])

    def _folder(self, log: str) -> Path:
        return self._journal if log == JOURNAL and self._journal else self._logs.folder(log)

    def _settle(self, log: str, damage: Damage) -> Damage:
        """What is known of it when it is repaired, if it can be, and reported."""
        if damage.state == FOUND:
            repaired = self._repair(log, damage)
            damage = replace(damage, state=REPAIRED if repaired else LOST)
            change(self._folder(log), damage)
        if not damage.reported:
            self._report(log, damage)
            damage = replace(damage, reported=time.time_ns() // 1_000_000)
            change(self._folder(log), damage)
        return damage

    def _repair(self, log: str, damage: Damage) -> bool:
        if self._journal is None or damage.file:
            return False
        return repair_from_journal(self._folder(log), log, damage, self._journal)

    def _report(self, log: str, damage: Damage) -> None:
        finding = {"site": self._site} | describe_damage(log, damage)
        with self._logs.writer(DAMAGE_LOG) as writer:
            writer.append([(DAMAGE_LOG, json.dumps(finding).encode())])
            writer.commit()
        self._say(sentence(log, damage))
        self._publish()

    def _say_problem(self, problem: str) -> None:
        if problem != self._problem:
            self._say(problem)
        self._problem = problem

    # ── what is known ──────────────────────────────────────────────────────────────────────────

    @property
    def healthy(self) -> bool:
        """Whether everything that was lost is acknowledged."""
        return all(d.acknowledged or d.state == REPAIRED for _, d in self._known)

    def status(self) -> DamageStatus:
        lost: dict[str, int] = {}
        for log, damage in self._known:
            lost[log] = lost.get(log, 0) + max(damage.lost, 0)
        open_ones = [describe_damage(log, d) for log, d in self._known if not d.acknowledged]
        return DamageStatus(tuple(open_ones), lost)

    def acknowledge(self, log: str | None = None) -> int:
        """A person knows of what is found, in one log or in all; returns how much was new."""
        self.step()
        with self._guard:
            logs = [found for _, found in self._folders() if log in (None, found)]
            count = sum(acknowledge(self._folder(found)) for found in logs)
        self.step()
        return count


def describe_damage(log: str, damage: Damage) -> dict[str, Any]:
    """For status and messages; records are null where their number is not known."""
    values = asdict(damage)
    names = ("position", "end", "reason", "state", "found", "file")
    known = damage.records if damage.records >= 0 else None
    return {"log": log, "records": known} | {name: values[name] for name in names}


def sentence(log: str, damage: Damage) -> str:
    """For people."""
    number = "an unknown number of" if damage.records < 0 else str(damage.records)
    outcome = "are repaired" if damage.state == REPAIRED else "are lost"
    where = f"{damage.file} of the log {log}" if damage.file else f"the log {log}"
    what = f"{where} is damaged at position {damage.position}: {damage.reason}"
    return f"{what}; {number} records {outcome}"
