"""Which metrics and entities a store holds, and how much of each metric. Cheap to ask again."""

from __future__ import annotations

import math
import threading
import time

import pyarrow as pa

from fogline.storage.files.history import HistoryFiles
from fogline.storage.files.latest import Latest
from fogline.storage.names import Patterns
from fogline.storage.query.queries import Queries
from fogline.storage.values import END_TIME, FIRST_TIME

SIZES_SECONDS = 30.0
_PAIRS = ["metric", "entity"]
PAIRS = pa.schema([("metric", pa.string()), ("entity", pa.string())])


class Listing:
    """For any thread.

    Latest values name everything there is, unless memory did not suffice for all of them; then the
    names in files are looked up too, once for each state of the files.
    """

    def __init__(self, history: HistoryFiles, latest: Latest, queries: Queries) -> None:
        self._history = history
        self._latest = latest
        self._queries = queries
        self._guard = threading.Lock()
        self._names: tuple[frozenset[str], pa.Table] = frozenset(), PAIRS.empty_table()
        self._sizes: tuple[frozenset[str], dict[str, int]] = frozenset(), {}
        self._sized = -math.inf

    def pairs(self, prefix: str) -> pa.Table:
        """Columns `metric` and `entity`, each pair once, of metrics that begin so."""
        patterns = Patterns(prefixes=(prefix,)) if prefix else None
        found = self._latest.find(patterns).select(_PAIRS).cast(PAIRS)
        if not self._latest.incomplete:
            return found
        held = self._in_files()
        if prefix:
            held = held.filter(pa.compute.starts_with(held["metric"], prefix))
        return pa.concat_tables([found, held]).group_by(_PAIRS).aggregate([]).select(_PAIRS)

    def sizes(self) -> dict[str, int]:
        """Bytes on disk by metric: by its fraction of all rows. Half a minute old at most."""
        with self._guard, self._history.view() as view:
            names = frozenset(file.name for file in view.manifest.files)
            now = time.monotonic()
            if names != self._sizes[0] and now - self._sized >= SIZES_SECONDS:
                text = "SELECT metric, count(*) AS n FROM read_parquet(?) GROUP BY metric"
                rows = self._run_query(view.paths(FIRST_TIME, END_TIME), text)
                each = view.manifest.bytes / max(view.manifest.rows, 1)
                pairs = zip(rows["metric"].to_pylist(), rows["n"].to_pylist(), strict=True)
                self._sizes = names, {metric: round(n * each) for metric, n in pairs}
                self._sized = now
            return self._sizes[1]

    def _in_files(self) -> pa.Table:
        with self._guard, self._history.view() as view:
            names = frozenset(file.name for file in view.manifest.files)
            if names != self._names[0]:
                text = "SELECT DISTINCT metric, entity FROM read_parquet(?)"
                held = self._run_query(view.paths(FIRST_TIME, END_TIME), text).cast(PAIRS)
                self._names = names, held
            return self._names[1]

    def _run_query(self, paths: list[str], text: str) -> pa.Table:
        if not paths:
            return pa.table({"metric": [], "entity": [], "n": []})
        return self._queries.run(text, [paths])
