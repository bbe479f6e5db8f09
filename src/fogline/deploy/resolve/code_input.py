"""Whether a site can read what a job's `input` says: its schema, its lateness."""

from __future__ import annotations

from collections.abc import Mapping

from fogline.deploy.manifest.tree import shortened
from fogline.plan.analysis.catalog import duration_ms

_TYPES = frozenset(
    {"double", "number", "long", "bigint", "int", "integer", "string", "text", "boolean"}
)


def wrong_input(given: Mapping[str, str]) -> str:
    """What is wrong with it, or nothing."""
    lateness = given.get("lateness")
    if lateness is not None and duration_ms(lateness) is None:
        return f"lateness {shortened(lateness)!r} is no time: for example 2 s"
    names: list[str] = []
    for part in given["schema"].split(",") if "schema" in given else ():
        name, _, kind = part.strip().partition(" ")
        if not name or (kind.strip().lower() or "string") not in _TYPES:
            return f"{shortened(part.strip())!r} in the schema is no name and type"
        names.append(name)
    twice = next((name for name in names if names.count(name) > 1), "")
    return f"{shortened(twice)} is twice in the schema" if twice else ""
