"""Results of the user's own code into values: numbers are values, texts say of what."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fogline.formats.times import time_of
from fogline.storage.ingest.mapping import CodeResults, Rows, as_labels, scalar

_TIME, _WINDOW = "time", "window"


def add_result(source: CodeResults, record: Mapping[str, Any], arrival: int, rows: Rows) -> None:
    """The values of one record, or one more that was left out."""
    aside = {_TIME, _WINDOW, source.time, source.entity}
    fields = {name: value for name, value in record.items() if name not in aside}
    texts = {name: value for name, value in fields.items() if isinstance(value, str)}
    numbers = {name: value for name, value in fields.items() if isinstance(value, int | float)}
    own = scalar(record.get(source.entity)) if source.entity is not None else None
    values, keys = (numbers, texts) if numbers else (texts, {})
    if not values:
        rows.rejected["no value"] += 1
    entity = own if own is not None else entity_of(keys) if keys else source.job
    time, labels = _time(source, record, arrival), as_labels(keys)
    for name, value in values.items():
        rows.add(f"{source.job}.{name}", entity, time, value, labels)


def entity_of(keys: Mapping[str, Any]) -> str:
    """One key is its value; several are written `a=1,b=2` in their order."""
    texts = {name: scalar(value) or "" for name, value in keys.items()}
    if len(texts) == 1:
        return next(iter(texts.values()))
    return ",".join(f"{name}={text}" for name, text in texts.items())


def _time(source: CodeResults, record: Mapping[str, Any], arrival: int) -> int | None:
    window = record.get(_WINDOW)
    end = window.get("end") if isinstance(window, dict) else None
    times = [record.get(name) for name in (_TIME, source.time) if name is not None]
    found = next((moment for moment in (*times, end) if moment is not None), None)
    return arrival if found is None else time_of(found)
