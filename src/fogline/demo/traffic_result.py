"""What a run of the traffic demo measured, and fog compared with cloud.

SpecK's differential output rate is D = (100 / F) * (F - C), F what the fog variant processed and C
what the cloud variant did in the same time: above 0 the fog is ahead. The last run of each variant
is kept in the user's cache folder, so that two calls can be compared as well.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOG, CLOUD = "fog", "cloud"
LOCAL, GLOBAL = ("local-1", "local-2", "local-3"), ("global",)
_LETTERS = {FOG: "F", CLOUD: "C"}


@dataclass(frozen=True, slots=True)
class Measured:
    """One run. `processed` is what jobs 3 (`local`) and job 4 (`global`) had taken in when
    the detectors stopped; `complete` whether everything came through afterwards."""

    variant: str
    seconds: float
    rate: int
    sent: int
    malformed: int
    erroneous: int
    complete: bool
    jobs: Mapping[str, Mapping[str, Any]]
    processed: Mapping[str, int]

    def as_json(self) -> dict[str, Any]:
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        fields["seconds"] = round(self.seconds, 1)
        fields[_LETTERS[self.variant]] = fields.pop("processed")
        return fields

    def is_like(self, other: Mapping[str, Any]) -> bool:
        """Whether comparing the two means anything: as long, at the same rate."""
        return other.get("rate") == self.rate and abs(other["seconds"] - self.seconds) < 1.0


def count_processed(jobs: Mapping[str, Mapping[str, Any]]) -> dict[str, int]:
    """What jobs 3 at the edge and job 4 have taken in."""
    return {
        kind: sum(jobs[name]["in"] for name in names if name in jobs)
        for kind, names in (("local", LOCAL), ("global", GLOBAL))
    }


def differential(fog: Mapping[str, int], cloud: Mapping[str, int]) -> dict[str, float]:
    """D for each kind of job; nothing where the fog processed nothing."""
    return {
        kind: round(100 / amount * (amount - cloud[kind]), 2)
        for kind, amount in fog.items()
        if amount
    }


def compare_runs(measured: Measured, cache: Path) -> dict[str, Any]:
    """The run as JSON, with F, C and D when the other variant has run in the same way."""
    fields = measured.as_json()
    other = CLOUD if measured.variant == FOG else FOG
    letter = _LETTERS[other]
    kept = _read(cache / f"traffic-{other}.json")
    if letter in kept and measured.is_like(kept):
        fields[letter] = kept[letter]
        fields["D"] = differential(fields["F"], fields["C"])
    return fields


def keep(measured: Measured, cache: Path) -> None:
    cache.mkdir(parents=True, exist_ok=True)
    text = json.dumps(measured.as_json())
    (cache / f"traffic-{measured.variant}.json").write_text(text + "\n", encoding="utf-8")


def cache_folder(environment: Mapping[str, str] = os.environ) -> Path:
    base = environment.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "fogline"


def _read(path: Path) -> dict[str, Any]:
    """What was kept; empty where there is nothing usable."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) and "seconds" in found else {}
