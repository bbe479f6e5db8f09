"""Where records come from, as a plan sees it: one stream and how its records are read."""

from __future__ import annotations

from dataclasses import dataclass, field

from fogline.model.question import ENTITY, METRIC, NODE, PatternTexts, Question, read_pattern

MQTT, FABRIC = "mqtt", "storageFabric"
"""Providers whose records come to a site by themselves and lie in a log of it."""

NUMBER = "number"
STRING = "string"

LATENESS_MS, AHEAD_MS = 1000, 3_600_000
IDLE_MS, SHORTEST_IDLE_MS = 60_000, 1000
NEVER = "never"
RELAYED = "messages/"
"""What the topics begin with on which sites pass messages on for a query."""

INSIGHT = "insight"
"""The format of our own results: keys are fields, the time is the end of the window."""
FORMATS = ("senml", "json", "ndjson", "csv", "xml", "cbor", INSIGHT)


@dataclass(frozen=True, slots=True)
class StreamSource:
    """A declared stream.

    `conditions` are equalities on fields of the record that the declaration asks for (a trailing
    `%` is a prefix). With `metric_field` the record names its metric and `value_field` holds it.
    """

    name: str
    provider: str
    format: str = "json"
    time_field: str | None = None
    entity_field: str | None = None
    metric_field: str | None = None
    value_field: str | None = None
    schema: tuple[tuple[str, str], ...] = ()
    lateness_ms: int = LATENESS_MS
    ahead_ms: int = AHEAD_MS
    """A record whose time is further ahead of its arrival at a site is bad: its clock is wrong."""
    idle_ms: int | None = None
    """In a live site: silent for so long, it no longer holds back event time; None: it always does.
    """
    conditions: tuple[tuple[str, str], ...] = ()
    parameters: tuple[tuple[str, str | float], ...] = field(default=())
    share: float = 1.0
    """Of a stream from the storage fabric: the fraction that all of its readers sample it down to.
    """

    def parameter(self, key: str) -> str | float | None:
        return dict(self.parameters).get(key)

    @property
    def in_log(self) -> bool:
        """Whether its records lie in a log of the site that reads it."""
        return self.provider in (MQTT, FABRIC)

    @property
    def header(self) -> tuple[str, ...] | None:
        """The declared columns of csv; None where the first line of a file names them."""
        names = self.parameter("header")
        return None if names is None else tuple(name.strip() for name in str(names).split(","))

    @property
    def question(self) -> Question:
        """What a stream from the storage fabric asks it for."""
        given = dict(self.conditions)

        def patterns(key: str) -> PatternTexts:
            return (read_pattern(given[key]),) if key in given else None

        return Question(patterns(METRIC), patterns(ENTITY), patterns(NODE), self.share)

    def declared_type(self, name: str) -> str | None:
        """NUMBER or STRING when the schema declares the field, else None."""
        return dict(self.schema).get(name)
