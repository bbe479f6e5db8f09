"""One message through the three readers: the Spark source, the gateway, the store."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from fogline.formats import BadMessage
from fogline.gateway.operators import ReceivedMessage
from fogline.gateway.operators.decode import Decoder, read_options
from fogline.log import LogWriter
from fogline.storage.ingest.columns import decode_batch
from fogline.storage.ingest.decode import decode
from fogline.storage.ingest.mapping import Readings
from fogline.storage.values import to_values

ARRIVAL = 1_767_225_600_000_000
TYPES = ("double", "long", "string", "boolean")
Row = dict[str, Any]
"""`time`, and for each asked-for field its value as each of `TYPES`."""
Rows = list[Row] | None
"""The records of a message; None: it is bad."""
Stored = tuple[str, str, int, float | str]
"""Metric, entity, time and value."""


@dataclass(frozen=True)
class Stream:
    """How messages are declared, for all three."""

    format: str
    fields: tuple[str, ...]
    time: str | None = None
    entity: str | None = None
    header: tuple[str, ...] = ()
    metric: str | None = None
    value: str | None = None

    @property
    def asked(self) -> tuple[str, ...]:
        return self.fields if self.entity is None else (*self.fields, self.entity)

    def options(self) -> dict[str, str]:
        """Of the Spark source, and of the gateway."""
        columns = [
            {"name": f"{kind}{number}", "type": kind, "from": name, "metric": bool(self.metric)}
            for number, name in enumerate(self.asked)
            for kind in TYPES
        ]
        told = {
            "format": self.format, "time": self.time, "entity": self.entity,
            "metricField": self.metric, "valueField": self.value,
            "header": json.dumps(self.header) if self.header else None,
            "fields": json.dumps(columns),
        }  # fmt: skip
        return {name: value for name, value in told.items() if value is not None}

    def readings(self, fields: tuple[str, ...] = ()) -> Readings:
        return Readings(
            self.format, () if self.metric else fields, self.entity, self.time, self.metric,
            self.value, header=self.header,
        )  # fmt: skip

    def row(self, time: int, columns: dict[str, Any]) -> Row:
        found: Row = {"time": time}
        for number, name in enumerate(self.asked):
            found[name] = tuple(columns[f"{kind}{number}"] for kind in TYPES)
        return found


def by_spark(
    spark: SparkSession, folder: Path, stream: Stream, payloads: Sequence[bytes]
) -> list[Rows]:
    """What a query sees of each message of a log, which is made in a folder of its own."""
    folder = Path(tempfile.mkdtemp(dir=folder))
    with LogWriter(folder, "cases", min_free_bytes=0) as log:
        records = [(str(number), payload) for number, payload in enumerate(payloads)]
        log.append(records, arrival=ARRIVAL)
        log.commit()
    options = stream.options()
    told = [{"name": "_error", "type": "string"}, {"name": "_topic", "type": "string"}]
    options["fields"] = json.dumps(json.loads(options["fields"]) + told)
    frame = spark.read.format("fogline").options(log="true", **options).load(str(folder))
    found: list[Rows] = [[] for _ in payloads]
    for row in frame.selectExpr("* except (_time)", "unix_micros(_time) as _time").collect():
        columns = row.asDict()
        assert "decoder failed" not in (columns["_error"] or ""), payloads[int(columns["_topic"])]
        rows = found[int(columns["_topic"])]
        if columns["_error"] is not None:
            found[int(columns["_topic"])] = None
        elif rows is not None:
            rows.append(stream.row(columns["_time"], columns))
    return found


def by_gateway(stream: Stream, payload: bytes) -> Rows:
    decoder = Decoder(read_options(stream.options()))
    try:
        records = decoder.decode(ReceivedMessage("t", payload, ARRIVAL))
    except BadMessage:
        return None
    return [stream.row(record.time, record.values) for record in records]


def by_store(source: Readings, payload: bytes) -> list[Stored]:
    return _stored(decode(source, [("t", payload, ARRIVAL)]).table)


def by_columns(source: Readings, payloads: Sequence[bytes]) -> list[Stored]:
    """Many messages at once, as the store takes them from a log; by whole columns where it can."""
    return _stored(decode_batch(source, [("t", payload, ARRIVAL) for payload in payloads]).table)


def _stored(table: Any) -> list[Stored]:
    return [(value.metric, value.entity, value.time, value.value) for value in to_values(table)]


def seen(stream: Stream, rows: Rows) -> list[Stored]:
    """The values that a query sees in rows: a field is what it is as a number, else its text."""
    found: list[Stored] = []
    for row in rows or ():
        entity = row[stream.entity][2] if stream.entity is not None else None
        if entity is None and stream.entity is not None and stream.format != "senml":
            continue
        for name in stream.fields:
            number, _, text, _ = row[name]
            value = number if number is not None else text
            if value is not None:
                found.append((name, "t" if entity is None else entity, row["time"], value))
    return found
