"""Answers of several nodes as one. No I/O: tables in, tables out.

Whoever asks gets the same order: ranges by time, node and `seq`, all else by node and names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fogline.fabric.query.query_types import ChangeOffset
from fogline.fabric.query.tables import NODE
from fogline.storage.errors import BadQuery
from fogline.storage.values import Integers, as_one_array, micros

Answers = Mapping[str, pa.Table]
"""Each node's table."""


def join_answers(answers: Answers, schema: pa.Schema) -> pa.Table:
    """All rows, with the column `node` before the others; nodes in the order of their names."""
    named = [_add_node(node, answers[node].cast(schema)) for node in sorted(answers)]
    if len(named) == 1:
        return named[0]
    return pa.concat_tables([_empty(schema), *named]).combine_chunks()


def by_names(answers: Answers, schema: pa.Schema) -> pa.Table:
    """Ordered by node, metric and entity."""
    each = {node: table.cast(schema) for node, table in answers.items()}
    ordered = {node: in_order(table, ["metric", "entity"]) for node, table in each.items()}
    return join_answers(ordered, schema)


def buckets(answers: Answers, schema: pa.Schema, descending: bool) -> pa.Table:
    """Aggregates ordered by bucket, then node, metric and entity."""
    table = join_answers(answers, schema)
    keys = [("bucket", _direction(descending))]
    keys += [(name, "ascending") for name in ("node", "metric", "entity")]
    return table.take(pc.sort_indices(table, sort_keys=keys))


def page(
    answers: Answers, schema: pa.Schema, limit: int, descending: bool
) -> tuple[pa.Table, dict[str, ChangeOffset]]:
    """The first `limit` rows by time, node and `seq`, and the last place taken of each node.

    Right as long as every node gave its own first `limit` rows, or all it has.
    """
    tables = [answers[node] for node in sorted(answers)]
    numbers = np.repeat(np.arange(len(tables)), [len(table) for table in tables])
    table = join_answers(answers, schema)
    order = np.lexsort((_numbers(table["seq"]), numbers, micros(table["time"])))
    chosen = (order[::-1] if descending else order)[:limit]
    taken = table.take(pa.array(chosen))
    return taken, _last_places(taken)


def stack_answers(answers: Answers) -> pa.Table:
    """Rows of any columns, node by node. Raises `BadQuery` when they do not fit together."""
    named = []
    for node in sorted(answers):
        if NODE.name in answers[node].column_names:
            hint = "give it another name with AS"
            raise BadQuery("the answer already has a column called node", hint)
        named.append(_add_node(node, answers[node]))
    try:
        return pa.concat_tables(named, promote_options="permissive")
    except pa.ArrowException as error:
        raise BadQuery(f"the nodes' answers do not fit together: {error}") from error


def in_order(table: pa.Table, columns: Sequence[str], descending: bool = False) -> pa.Table:
    direction = _direction(descending)
    return table.take(pc.sort_indices(table, sort_keys=[(name, direction) for name in columns]))


def without_doubles(table: pa.Table, columns: Sequence[str]) -> pa.Table:
    """The rows whose columns differ from those of every row before, in the same order."""
    places = pa.array(np.arange(len(table)))
    counted = table.select(columns).append_column("place", places)
    first = counted.group_by(columns, use_threads=False).aggregate([("place", "min")])
    if len(first) == len(table):
        return table
    return table.take(pa.array(np.sort(first["place_min"].to_numpy())))


def _last_places(taken: pa.Table) -> dict[str, ChangeOffset]:
    """Of each node; the rows are in their order."""
    coded = as_one_array(taken["node"]).dictionary_encode()
    codes = coded.indices.to_numpy(zero_copy_only=False)
    last = np.full(len(coded.dictionary), -1, np.int64)
    np.maximum.at(last, codes, np.arange(len(taken)))
    times, seqs = micros(taken["time"]), _numbers(taken["seq"])
    nodes = coded.dictionary.to_pylist()
    return {node: (int(times[at]), int(seqs[at])) for node, at in zip(nodes, last, strict=True)}


def _add_node(node: str, table: pa.Table) -> pa.Table:
    names = pa.repeat(pa.scalar(node, pa.string()), len(table))
    return table.add_column(0, NODE, names)


def _empty(schema: pa.Schema) -> pa.Table:
    return schema.insert(0, NODE).empty_table()


def _direction(descending: bool) -> str:
    return "descending" if descending else "ascending"


def _numbers(column: Any) -> Integers:
    return np.asarray(as_one_array(column).to_numpy(zero_copy_only=False))
