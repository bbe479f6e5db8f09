"""Metadata as it is sent and received: the description's fields, flat, beside whose they are."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from fogline.storage.catalog.metadata import Description, Metadata
from fogline.storage.errors import BadValue

_NUMBERS = ("minimum", "maximum")
_MOST = 1 << 53
DESCRIPTION = tuple(item.name for item in fields(Description))
WHOSE = ("metric", "entity", "version", "origin", "removed")


def metadata_payload(item: Metadata) -> dict[str, Any]:
    whose = {name: getattr(item, name) for name in WHOSE}
    return {**whose, **asdict(item.description)}


def read_metadata(data: Any) -> Metadata:
    """Sent by another node. Raises `BadValue`."""
    if not isinstance(data, Mapping):
        raise BadValue("metadata must be an object")
    version, removed = data.get("version"), data.get("removed", False)
    texts = [data.get(name) for name in ("metric", "entity", "origin")]
    if type(version) is not int or type(removed) is not bool:
        raise BadValue("metadata has a version, a whole number, and may be removed")
    if not all(isinstance(text, str) for text in texts):
        raise BadValue("metadata has a metric, an entity and an origin, all texts")
    description = read_description({name: data[name] for name in data if name not in WHOSE})
    metric, entity, origin = map(str, texts)
    return Metadata(metric, entity, description, version, origin, removed)


def read_description(data: Mapping[str, Any]) -> Description:
    """A description from its fields. Raises `BadValue` for one that is unknown or no such thing."""
    unknown = sorted(set(data) - set(DESCRIPTION))
    if unknown:
        raise BadValue(
            f"unknown metadata field {unknown[0]!r:.80}", f"known: {', '.join(DESCRIPTION)}"
        )
    for name, value in data.items():
        if not _fits(name, value):
            raise BadValue(f"{value!r:.80} is no {name} of a metric")
    return Description(**data)


def _fits(name: str, value: Any) -> bool:
    if name in _NUMBERS:
        number = type(value) is int or (type(value) is float and math.isfinite(value))
        return value is None or (number and abs(value) < 1e300)
    if name == "higher_is_better":
        return value is None or type(value) is bool
    if name == "interval_ms":
        return value is None or (type(value) is int and 0 <= value < _MOST)
    if name == "extra":
        return isinstance(value, dict) and all(isinstance(text, str) for text in value.values())
    return isinstance(value, str)
