"""What a question is about: metrics, entities, a stretch of event time, a sample fraction; and its
SQL.

Names and times always travel as parameters, never as part of the text.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from fogline.storage.errors import BadQuery
from fogline.storage.names import Patterns, parse_all
from fogline.storage.values import END_TIME, FIRST_TIME

NameFilter = str | Iterable[str] | None
_CONTENT = "hash(CAST(metric AS VARCHAR), CAST(entity AS VARCHAR), time, value, text)"
"""A number of 64 bits made from a value, which decides in which sample fractions it is."""


@dataclass(frozen=True, slots=True)
class Selection:
    """These metrics and entities (nothing: all), from `start` up to, not including, `end`."""

    metrics: Patterns | None
    entities: Patterns | None
    start: int = FIRST_TIME
    end: int = END_TIME
    share: float = 1.0
    """Of less than 1 the others are left out, by their content: the same ones in every store."""
    without: tuple[str, ...] = ()
    """Metrics that are left out, whatever is asked for."""

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise BadQuery(f"`share` must be above 0 and at most 1, not {self.share!r:.80}")

    @classmethod
    def of(
        cls,
        metrics: NameFilter,
        entities: NameFilter,
        start: int | None,
        end: int | None,
        share: float = 1.0,
        without: Iterable[str] = (),
    ) -> Selection:
        """Checked; times beyond what can be stored are cut. Raises `BadQuery`."""
        names = parse_all(metrics), parse_all(entities)
        times = _cut(start, FIRST_TIME), _cut(end, END_TIME)
        return cls(*names, *times, share, tuple(sorted(without)))

    @property
    def is_empty(self) -> bool:
        named = [names for names in (self.metrics, self.entities) if names is not None]
        return self.start >= self.end or not all(named)

    def where(self) -> tuple[str, list[object]]:
        """The condition and its parameters."""
        parts = ["time >= make_timestamp(?)", "time < make_timestamp(?)"]
        values: list[object] = [self.start, self.end]
        for column, patterns in (("metric", self.metrics), ("entity", self.entities)):
            if patterns is not None:
                text, more = _names(column, patterns)
                parts.append(text)
                values += more
        if self.without:
            parts.append(f"metric NOT IN ({', '.join('?' * len(self.without))})")
            values += self.without
        if self.share < 1:
            parts.append(f"{_CONTENT} < CAST(? AS UBIGINT)")
            values.append(int(self.share * 2**64))
        return " AND ".join(parts), values


def _names(column: str, patterns: Patterns) -> tuple[str, list[object]]:
    exact = patterns.exact
    parts, values = [], list[object]()
    if exact:
        marks = ", ".join("?" * len(exact))
        parts.append(f"{column} = ?" if len(exact) == 1 else f"{column} IN ({marks})")
        values += exact
    for prefix in patterns.prefixes:
        # The first half lets row groups be skipped, the second one decides.
        parts.append(f"({column} >= ? AND starts_with({column}, ?))")
        values += [prefix, prefix]
    return "(" + " OR ".join(parts) + ")", values


def _cut(time: int | None, default: int) -> int:
    if time is None:
        return default
    if isinstance(time, bool) or not isinstance(time, int):
        raise BadQuery(f"a time must be a whole number of microseconds, not {time!r}"[:200])
    return min(max(time, FIRST_TIME), END_TIME)
