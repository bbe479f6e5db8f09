"""What a reader of a stream must be given, whoever reads it: the connector's source or a gateway.

The options are those of docs/design/execution.md; they say what to decode and what to leave out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fogline.model.streams import INSIGHT, NUMBER
from fogline.plan.expressions import FRACTION, HASH, Field
from fogline.plan.operators import Scan


def physical_columns(scans: tuple[Scan, ...]) -> dict[Field, str]:
    """The column of every field that some scan is asked for."""
    needed = dict.fromkeys(f for scan in scans for f in scan.columns or ())
    return {f: f.name if f in (HASH, FRACTION) else f"c{i}" for i, f in enumerate(needed)}


def stream_options(
    scan: Scan,
    columns: Mapping[Field, str],
    pushed: dict[str, Any] | None,
    form: str | None = None,
) -> dict[str, str]:
    """The options that follow from the plan alone; `form` replaces the stream's own format."""
    stream = scan.stream
    options = {
        "format": form or stream.format,
        "stream": stream.name,
        "fields": json.dumps([_column_spec(f, columns[f]) for f in scan.columns or ()]),
    }
    if options["format"] == INSIGHT:
        return options | _result_options(scan, columns, pushed)
    named = {
        "time": stream.time_field,
        "entity": stream.entity_field,
        "metricField": stream.metric_field,
        "valueField": stream.value_field,
    }
    options |= {key: value for key, value in named.items() if value}
    if options["format"] == "csv" and stream.header is not None:
        options["header"] = json.dumps(stream.header)
    if pushed:
        options["filter"] = json.dumps(pushed)
    if scan.sampling and scan.sampling.fraction:
        options["sample"] = repr(scan.sampling.fraction)
    return options


def _result_options(
    scan: Scan, columns: Mapping[Field, str], pushed: dict[str, Any] | None
) -> dict[str, str]:
    """Results of an insight as records: they belong to the interval that their window closes."""
    spec = [_column_spec(f, columns[f]) for f in scan.columns or ()]
    paths = [a | {"from": _result_path(a["from"])} if "from" in a else a for a in spec]
    options = {"format": "json", "fields": json.dumps(paths), "time": "window.end"}
    return options | {"timeShift": "-1"} | ({"filter": json.dumps(pushed)} if pushed else {})


def _result_path(name: str) -> str:
    return name if name in ("value", "count") else f"keys.{name}"


def _column_spec(source: Field, column: str) -> dict[str, Any]:
    if source == HASH:
        return {"name": "_hash", "type": "long"}
    if source == FRACTION:
        return {"name": "_fraction", "type": "double"}
    kind = "double" if source.type == NUMBER else "string"
    spec: dict[str, Any] = {"name": column, "type": kind, "from": source.name}
    return spec | ({"metric": True} if source.metric else {})
