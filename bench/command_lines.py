"""Results of two commands compared: the same set of JSON lines, in any order.

Values may differ by rounding, because engines add in another order.
"""

from __future__ import annotations

from pathlib import Path

import duckdb

TOLERANCE = 1e-9
"""Of a value, relative."""
_FIELDS = """
CREATE TABLE {table} AS
SELECT insight, "window"."start" AS since, "window"."end" AS until, keys.sensor AS sensor,
  "value" AS result, "count" AS readings
FROM read_json($files, format = 'newline_delimited', columns = {{
  insight: 'VARCHAR', "window": 'STRUCT("start" VARCHAR, "end" VARCHAR)',
  keys: 'STRUCT(sensor VARCHAR)', "value": 'DOUBLE', "count": 'BIGINT'}})"""
_KEY = "insight, since, until, sensor"
_INCOMPLETE = f"""
SELECT {_KEY}, result, readings FROM {{table}}
WHERE insight || since || until || sensor || result || readings IS NULL LIMIT 1"""
_TWICE = f"SELECT {_KEY} FROM {{table}} GROUP BY ALL HAVING count(*) > 1 LIMIT 1"
_DIFFERENCE = f"""
SELECT {_KEY}, a.result, a.readings, e.result, e.readings
FROM actual a FULL JOIN expected e USING ({_KEY})
WHERE a.readings IS DISTINCT FROM e.readings
  OR abs(a.result - e.result) > {TOLERANCE} * greatest(abs(a.result), abs(e.result))
LIMIT 1"""


class ResultError(Exception):
    """A result is not what it should be; the message is for people."""


def check_results(actual: Path, expected: Path) -> int:
    """The number of results; raises ResultError unless both hold the same ones.

    Each is a file of JSON lines or a folder of such files.
    """
    with duckdb.connect() as database:
        _load(database, "expected", expected)
        count = _load(database, "actual", actual)
        found = database.execute(_DIFFERENCE).fetchone()
    if found:
        *key, value, readings, expected_value, expected_readings = found
        raise ResultError(
            f"{' '.join(key)}: {_text(value, readings)}, "
            f"expected {_text(expected_value, expected_readings)}"
        )
    return count


def _load(database: duckdb.DuckDBPyConnection, table: str, path: Path) -> int:
    files = [path] if path.is_file() else [f for f in path.rglob("*") if _is_part(f)]
    try:
        query = _FIELDS.format(table=table)
        database.execute(query, {"files": [str(f) for f in files]})
    except duckdb.Error as error:
        raise ResultError(f"not a result: {str(error).splitlines()[0]}") from error
    if found := database.execute(_INCOMPLETE.format(table=table)).fetchone():
        raise ResultError(f"not a result: {found}")
    if found := database.execute(_TWICE.format(table=table)).fetchone():
        raise ResultError(f"twice: {' '.join(found)}")
    counted = database.execute(f"SELECT count(*) FROM {table}").fetchone()
    return int(counted[0]) if counted else 0


def _is_part(file: Path) -> bool:
    """Not one of the marks and checksums that writers leave beside their results."""
    return file.is_file() and not file.name.endswith(".crc") and file.name != "_SUCCESS"


def _text(value: float | None, readings: int | None) -> str:
    return "nothing" if readings is None else f"{value!r} of {readings}"
