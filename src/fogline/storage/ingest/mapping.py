"""How messages become values: what is declared, and what comes out.

Decoding never raises for what a message holds: what cannot be a value is counted with the reason.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from fogline.common.errors import UsageError
from fogline.formats.reading import CSV, FORMATS, JSON, Format
from fogline.formats.values import OTHER, NumberText, as_double
from fogline.storage.errors import BadValue
from fogline.storage.values import BATCH, LABEL_BYTES, NAME_BYTES, TEXT_BYTES, batch, labels_text


@dataclass(frozen=True, slots=True)
class Readings:
    """Readings of devices. Each of `fields` becomes the metric `prefix` + its name; without them
    every number, truth value and text of a record does that is not its time, entity or a label.

    Where a record names its metric itself, `metric` and `value` are the fields with name and value
    instead. Without `entity` the topic is the entity, without `time` the arrival is the time. SenML
    needs none of them: the base name is the entity (or what the pack says under the name `entity`),
    each name a metric; `fields` may pick some. csv needs `header`, the names of its columns.
    """

    format: str = JSON
    fields: tuple[str, ...] = ()
    entity: str | None = None
    time: str | None = None
    metric: str | None = None
    value: str | None = None
    labels: tuple[str, ...] = ()
    prefix: str = ""
    header: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.format not in FORMATS:
            raise UsageError(f"readings are {', '.join(FORMATS)}, not {self.format!r:.80}")
        if self.format == CSV and not self.header:
            raise UsageError("csv readings need a header, the names of their columns")
        if (self.metric is None) != (self.value is None):
            raise UsageError("metric and value are named together or not at all")
        if self.fields and self.metric is not None:
            raise UsageError("readings have fields, or metric and value, not both")

    @property
    def form(self) -> Format:
        """How the messages are read."""
        return Format(self.format, self.time, self.entity, self.header)

    @property
    def names(self) -> tuple[str, ...]:
        """Fields that are names and not values: their texts count as they are written."""
        return self.labels if self.entity is None else (self.entity, *self.labels)

    @property
    def takes_all(self) -> bool:
        """Whether a record's own fields say which metrics there are."""
        return not self.fields and self.metric is None

    @property
    def reserved_fields(self) -> frozenset[str]:
        """Fields that are no metrics where all others are."""
        return frozenset(name for name in (self.time, self.entity, *self.labels) if name)


@dataclass(frozen=True, slots=True)
class Insights:
    """Our own results: the insight is the metric, its keys are entity and labels, the end of its
    window is the time. With `counts` the count of each is a value of `<insight>.count`."""

    counts: bool = False


@dataclass(frozen=True, slots=True)
class CodeResults:
    """Records of the user's own code, of which nobody said what they hold. Each number and truth
    value becomes the metric `<job>.<field>`; texts are labels and say, as keys of an insight do, of
    what it is, unless the record has the field `entity`. A record without numbers has its texts as
    values. The time is the field `time`, that of the code's input, or the end of a `window`; else
    the arrival.
    """

    job: str
    entity: str | None = None
    time: str | None = None


@dataclass(frozen=True, slots=True)
class Decoded:
    """The values of some messages, and how many values were left out for which reason."""

    table: pa.Table
    rejected: Mapping[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Rows:
    """Values one by one, where columns cannot be had."""

    metrics: list[str] = field(default_factory=list)
    entities: list[str] = field(default_factory=list)
    times: list[int] = field(default_factory=list)
    numbers: list[float | None] = field(default_factory=list)
    texts: list[str | None] = field(default_factory=list)
    labels: list[str | None] = field(default_factory=list)
    rejected: Counter[str] = field(default_factory=Counter)

    def add(
        self, metric: object, entity: object, time: int | None, value: object, labels: str | None
    ) -> None:
        """One value, or one more that was left out."""
        try:
            self._add(_name(metric), _name(entity), time, value, labels)
        except BadValue as error:
            self.rejected[error.message] += 1

    def finish(self) -> Decoded:
        if not self.metrics:
            return Decoded(BATCH.empty_table(), dict(self.rejected))
        numbers = pa.array(self.numbers, pa.float64(), from_pandas=False)
        table = batch(self.metrics, self.entities, self.times, numbers, self.texts, self.labels)
        return Decoded(table, dict(self.rejected))

    def _add(
        self, metric: str, entity: str, time: int | None, value: object, labels: str | None
    ) -> None:
        if time is None:
            raise BadValue("no time")
        number, text = split(value)
        if labels is not None and len(labels.encode()) > LABEL_BYTES:
            raise BadValue("labels too long")
        self.metrics.append(metric)
        self.entities.append(entity)
        self.times.append(time)
        self.numbers.append(number)
        self.texts.append(text)
        self.labels.append(labels)


def split(value: object) -> tuple[float | None, str | None]:
    """A value as a number or a text. Raises `BadValue` for anything else."""
    if isinstance(value, str):
        _check_size(value, TEXT_BYTES, "text too long")
        return None, value
    if isinstance(value, int | float):
        try:
            return float(value), None
        except OverflowError:
            # What no double can hold is infinite, in whichever way it is written.
            return math.inf if value > 0 else -math.inf, None
    raise BadValue("not a number or a text")


def as_stored(value: object) -> object:
    """What a query sees of a field: the number that it is, be it as a text, else the text.

    `OTHER` for what is neither; a number that no double can hold is none.
    """
    if type(value) is float:
        return value if math.isfinite(value) else OTHER
    number = as_double(value)
    if number is not None:
        return number
    return value if isinstance(value, str) and not isinstance(value, NumberText) else OTHER


def as_labels(found: Mapping[str, object]) -> str | None:
    """Labels from fields of a record; what is no text, number or truth value is none."""
    texts = {name: scalar(value) for name, value in found.items()}
    return labels_text({name: text for name, text in texts.items() if text is not None})


def scalar(value: object) -> str | None:
    """A name from a scalar; nothing for a list or an object."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else None


def _name(value: object) -> str:
    text = scalar(value)
    if text is None:
        raise BadValue("no metric or entity")
    return _check_size(text, NAME_BYTES, "name too long")


def _check_size(text: str, size: int, reason: str) -> str:
    if len(text) <= size and text.isascii():
        return text
    if not _encodes(text):
        raise BadValue("half a character")
    if len(text) > size or len(text.encode()) > size:
        raise BadValue(reason)
    return text


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
