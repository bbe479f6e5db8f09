"""What a query of a job tells, by the reports of a Spark query that is made up."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fogline.spark.jobs.site_query import SiteQuery

pytestmark = pytest.mark.spark


class Report:
    def __init__(self, second: int, records: int) -> None:
        self.asked = 0
        self._at = f"2026-01-01T00:00:{second:02}.000Z"
        self._records = records

    def timestamp(self) -> str:
        return self._at

    def json(self) -> str:
        self.asked += 1
        source = {"startOffset": {"files": {"log": 7}}, "metrics": {"records": str(self._records)}}
        progress = {"batchId": 3, "timestamp": self._at, "batchDuration": 20, "numInputRows": 1}
        return json.dumps(progress | {"sources": [source], "stateOperators": []})


class Running:
    """As much of Spark's query, and of the one in Java behind it, as is asked for."""

    isActive, runId, status = True, "run", {"message": "Initializing sources"}  # noqa: N815

    def __init__(self) -> None:
        self.report: Report | None = None

    @property
    def _jsq(self) -> Any:
        return self

    def lastProgress(self) -> Report | None:  # noqa: N802
        return self.report


def test_a_report_is_read_once_and_the_next_one_too() -> None:
    spark: Any = Running()
    query = SiteQuery("windows", lambda: spark, 1000)
    query.keep_running()
    assert query.status().state == "starting"
    first, second = Report(1, records=5), Report(2, records=9)
    spark.report = first
    assert [query.status().records for _ in range(3)] == [5, 5, 5]
    assert query.needed_positions() == [7]
    spark.report = second
    assert [query.status().records for _ in range(3)] == [9, 9, 9]
    assert (first.asked, second.asked) == (1, 1)


def test_a_query_that_begins_again_does_not_tell_what_it_told_before() -> None:
    spark: Any = Running()
    query = SiteQuery("windows", lambda: spark, 1000)
    query.keep_running()
    spark.report = Report(1, records=5)
    assert query.status().records == 5
    query._query, spark.report = None, None
    query.keep_running()
    assert (query.status().state, query.needed_positions()) == ("starting", [])
    spark.report = Report(1, records=6)
    assert query.status().records == 6
