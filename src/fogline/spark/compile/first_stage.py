"""The first stage: records into panes, as one native tumbling aggregate for all channels.

Guarantees: each record is aggregated once per set of keys, and the rows that leave are exactly
the input the second stage expects.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from fogline.common.errors import PlanError
from fogline.plan.expressions import Expr
from fogline.plan.lowering.layout import Layout, Slot
from fogline.plan.lowering.program import Channel
from fogline.spark.compile.columns import to_column
from fogline.spark.compile.keys import key_json
from fogline.spark.compile.scan import Table, before_end, time_millis

_NAN = float("nan")


def to_panes(
    table: Table, channels: tuple[Channel, ...], layout: Layout, pane_ms: int
) -> DataFrame:
    """Rows of (channel, key, pane, nums, lists, blobs, pass, _time)."""
    rows = _channel_rows(table, channels, layout)
    rows = rows.withColumn("o", F.col("t") - F.pmod(F.col("t"), F.lit(float(pane_ms))))
    keys = [f"k{i}" for i in range(layout.keys)]
    window = F.window("_time", f"{pane_ms} milliseconds").alias("window")
    slots = [_SLOTS[slot.kind](slot) for slot in layout.slots]
    columns = [c.alias(f"a{i}_{j}") for i, cs in enumerate(slots) for j, c in enumerate(cs)]
    grouped = rows.groupBy(window, "channel", *keys)
    panes = grouped.agg(*columns) if columns else grouped.agg(F.count(F.lit(1)).alias("n"))
    return panes.select(
        F.col("channel"),
        key_json(channels, keys),
        F.unix_millis("window.start").alias("pane"),
        *pack_columns(layout, lambda i, j: F.col(f"a{i}_{j}")),
        F.lit(None).cast("string").alias("pass"),
        F.window_time("window").alias("_time"),
    )


def to_records(table: Table, channels: tuple[Channel, ...], layout: Layout) -> DataFrame:
    """The same rows with one record each, as the second stage takes them in real time."""
    rows = _channel_rows(table, channels, layout)
    cells = {"t": F.col("t"), **{f"v{i}": F.col(f"v{i}") for i in range(layout.inputs)}}
    singles = [single_record(slot, cells) for slot in layout.slots]
    return rows.select(
        F.col("channel"),
        key_json(channels, [f"k{i}" for i in range(layout.keys)]),
        F.floor("t").cast("bigint").alias("pane"),
        *pack_columns(layout, lambda i, j: singles[i][j]),
        F.lit(None).cast("string").alias("pass"),
        F.col("_time"),
    )


def pack_columns(layout: Layout, column: Callable[[int, int], Column]) -> list[Column]:
    """The aggregated columns packed into the three arrays of the second stage."""
    nums, lists, blobs = [], [], []
    for index, slot in enumerate(layout.slots):
        cells = [column(index, j) for j in range(slot.width)]
        if slot.kind == "hll":
            blobs += cells
        elif slot.kind in ("values", "events"):
            lists += cells
        else:
            nums += [F.coalesce(c.cast("double"), F.lit(_NAN)) for c in cells]
    empty = F.array().cast
    return [
        (F.array(*nums) if nums else empty("array<double>")).alias("nums"),
        (F.array(*lists) if lists else empty("array<array<double>>")).alias("lists"),
        (F.array(*blobs) if blobs else empty("array<binary>")).alias("blobs"),
    ]


def _channel_rows(table: Table, channels: tuple[Channel, ...], layout: Layout) -> DataFrame:
    """One row per record and channel that has a value for it."""
    if len(channels) == 1:
        cells = _cells(table, channels[0], layout)
        frame = table.frame.select("_time", *[c.alias(name) for name, c in cells])
    else:
        structs = [
            F.struct(*[c.alias(name) for name, c in _cells(table, channel, layout)])
            for channel in channels
        ]
        exploded = table.frame.select("_time", F.explode(F.array(*structs)).alias("row"))
        frame = exploded.select("_time", "row.*")
    inputs = [f"v{i}" for i in range(layout.inputs)] + [f"h{i}" for i in range(layout.hashed)]
    present = [F.col(name).isNotNull() for name in inputs]
    test = present[0]
    for other in present[1:]:
        test = test | other
    return frame.where(before_end(test))


def _cells(table: Table, channel: Channel, layout: Layout) -> list[tuple[str, Column]]:
    def column(expr: Expr) -> Column:
        return to_column(expr, table.leaves)

    places = layout.places(channel)
    cells: list[tuple[str, Column]] = [("channel", F.lit(channel.number))]
    for index in range(layout.keys):
        known = index < len(channel.keys)
        key = column(channel.keys[index].expression) if known else F.lit(None)
        cells.append((f"k{index}", key.cast("string")))
    cells.append(("t", time_millis()))
    for index in range(layout.inputs):
        expr = places.input_at(index)
        value = F.lit(None).cast("double") if expr is None else as_number(expr, column(expr))
        cells.append((f"v{index}", value))
    for index in range(layout.hashed):
        expr = places.hashed_at(index)
        if expr is None:
            value = F.lit(None).cast("long")
        else:
            raw = column(expr)
            value = F.when(raw.isNotNull(), F.xxhash64(raw))
        cells.append((f"h{index}", value))
    return cells


def as_number(expr: Expr, column: Column) -> Column:
    """A number to aggregate; a string counts as 1 where it is present."""
    if expr.type == "string":
        return F.when(column.isNotNull(), F.lit(1.0))
    return column.cast("double")


# ── partials as native aggregates ────────────────────────────────────────────────────────────────


def _v(slot: Slot, which: int = 0) -> Column:
    return F.col(f"v{slot.inputs[which]}")


def _moments(slot: Slot) -> list[Column]:
    v = _v(slot)
    return [F.count(v), F.avg(v), F.var_pop(v) * F.count(v)]


def _comoments(slot: Slot) -> list[Column]:
    a, b = _v(slot), _v(slot, 1)
    x = F.when(b.isNotNull(), a)
    y = F.when(a.isNotNull(), b)
    n = F.count(F.when(a.isNotNull(), b))
    return [n, F.avg(x), F.avg(y), F.var_pop(x) * n, F.var_pop(y) * n, F.covar_pop(a, b) * n]


def _time_comoments(slot: Slot) -> list[Column]:
    """Comoments of time and value; times in seconds from the pane's start `o`, which comes last."""
    v = _v(slot)
    n = F.count(v)
    s = F.when(v.isNotNull(), (F.col("t") - F.col("o")) / 1000.0)
    spread = [F.var_pop(s) * n, F.var_pop(v) * n, F.covar_pop(s, v) * n]
    return [n, F.avg(s), F.avg(v), *spread, F.max("o")]


def _edge(slot: Slot, pick: Callable[[Column], Column]) -> list[Column]:
    v = _v(slot)
    chosen = pick(F.when(v.isNotNull(), F.struct(F.col("t").alias("t"), v.alias("v"))))
    return [chosen["t"], chosen["v"]]


def _events(slot: Slot) -> list[Column]:
    """Lists of equal length and order: times, then one list per input."""
    present = [F.col(f"v{i}") for i in slot.inputs]
    some = F.coalesce(*present).isNotNull()
    cells = [F.col("t"), *[F.coalesce(v, F.lit(_NAN)) for v in present]]
    return [F.collect_list(F.when(some, cell)) for cell in cells]


_SLOTS: dict[str, Callable[[Slot], list[Column]]] = {
    "count": lambda s: [F.count(_v(s))],
    "sum": lambda s: [F.sum(_v(s))],
    "logsum": lambda s: [F.sum(F.ln(_v(s)))],
    "min": lambda s: [F.min(_v(s))],
    "max": lambda s: [F.max(_v(s))],
    "moments": _moments,
    "comoments": _comoments,
    "timed": _time_comoments,
    "first": lambda s: _edge(s, F.min),
    "last": lambda s: _edge(s, F.max),
    "values": lambda s: [F.collect_list(_v(s))],
    "events": _events,
    "hll": lambda s: [F.hll_sketch_agg(F.col(f"h{s.inputs[0]}"))],
}


def single_record(slot: Slot, cells: dict[str, Column]) -> list[Column]:
    """The same partials for a pane that holds one record: level 1 and above."""
    v = cells.get(f"v{slot.inputs[0]}", F.lit(None))
    one = F.when(v.isNotNull(), F.lit(1.0)).otherwise(F.lit(0.0))
    t = cells["t"]
    match slot.kind:
        case "count":
            return [one]
        case "sum" | "min" | "max":
            return [v]
        case "logsum":
            return [F.ln(v)]
        case "moments":
            return [one, v, F.lit(0.0)]
        case "first" | "last":
            return [F.when(v.isNotNull(), t), v]
        case "values":
            return [F.when(v.isNotNull(), F.array(v)).otherwise(F.array().cast("array<double>"))]
        case "comoments":
            w = cells[f"v{slot.inputs[1]}"]
            both = F.when(v.isNotNull() & w.isNotNull(), F.lit(1.0)).otherwise(F.lit(0.0))
            zero = F.lit(0.0)
            return [both, v, w, zero, zero, zero]
        case "timed":
            zero = F.lit(0.0)
            return [one, zero, v, zero, zero, zero, t]
        case "events":
            present = [cells[f"v{i}"] for i in slot.inputs]
            lists = [F.array(F.coalesce(c, F.lit(_NAN))) for c in present]
            any_value = F.coalesce(*present).isNotNull()
            none = F.array().cast("array<double>")
            return [F.when(any_value, c).otherwise(none) for c in (F.array(t), *lists)]
    raise PlanError(f"{slot.kind} cannot be kept for results of insights")
