"""`fogline run --from … --to …`: where a query reads its streams from when it runs over history.

Streams from the storage fabric are fetched into a folder of their own, streams of a broker are read
where they lie, in the logs of a site of this machine, and files are read as always. Of all of them
only a stretch of event time counts: that of the results, and before it what their windows reach.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fogline.cli.run.fetching import Fetched, Fetcher
from fogline.cli.site.query import QueryRequest
from fogline.common.errors import DataError, UsageError
from fogline.common.settings import Settings
from fogline.fabric.membership.local_sites import LocalSite, find_site
from fogline.fabric.query.records import DESCRIBED
from fogline.fabric.query.times import moment
from fogline.language.ast import EventWindow
from fogline.log import SiteLog
from fogline.model.results import ResultRange
from fogline.model.sites import stream_log
from fogline.model.streams import FABRIC, MQTT, StreamSource
from fogline.plan.lowering.fabric_query import question_of
from fogline.plan.lowering.look_back import look_back_ms
from fogline.plan.lowering.program import Output, Program
from fogline.plan.operators import Scan
from fogline.storage.errors import BadQuery
from fogline.storage.values import END_TIME, FIRST_TIME

if TYPE_CHECKING:
    from fogline.spark.compile.scan import Input


@dataclass(frozen=True, slots=True)
class Stretch:
    """Event time from `start` up to, not including, `end`, in microseconds since 1970."""

    start: int
    end: int

    def results(self, program: Program) -> ResultRange:
        """The results that belong to it."""
        moments = frozenset(output.name for output in program.outputs if _of_a_moment(output))
        return ResultRange(self.start // 1000, -(-self.end // 1000), moments)


def _of_a_moment(output: Output) -> bool:
    """Evaluated at records, so that its end is the time of one."""
    return output.trigger is None or isinstance(output.trigger, EventWindow)


def parse_stretch(since: str, until: str | None) -> Stretch:
    """From strings as in the REST API; the default end is now."""
    now = time.time_ns() // 1000
    stretch = Stretch(_moment(since, now, "--from"), _moment(until or "now", now, "--to"))
    if stretch.start >= stretch.end:
        raise UsageError("--from is not before --to")
    return stretch


def _moment(text: str, now: int, option: str) -> int:
    try:
        return min(max(moment(text, now), FIRST_TIME), END_TIME - 1)
    except BadQuery as error:
        raise UsageError(f"{option}: {error.message}", error.hint) from error


class History:
    """The inputs of a program over a time range; fetched files are removed with `stack`."""

    def __init__(
        self, program: Program, stretch: Stretch, asked: QueryRequest, settings: Settings
    ) -> None:
        self._scans = (*program.scans, *program.record_scans)
        reach = look_back_ms(program) * 1000
        self._since = max(stretch.start - reach, FIRST_TIME)
        self._until = stretch.end
        self._asked = asked
        self._settings = settings
        self._site: LocalSite | None = None
        self._fetcher: Fetcher | None = None

    @property
    def nodes(self) -> list[dict[str, Any]] | None:
        """The state of each node of the fabric; None if it was not queried."""
        return None if self._fetcher is None else self._fetcher.nodes

    def missing(self) -> list[str]:
        """What is missing in the fabric's responses, a line for each node."""
        return [] if self._fetcher is None else self._fetcher.missing(self._until)

    def inputs(self, common: Input, stack: ExitStack) -> dict[str, Input]:
        """Everything that is missing is reported before Spark starts."""
        bounded = replace(common, since=self._since, until=self._until)
        streams = list({scan.stream.name: scan.stream for scan in self._scans}.values())
        order = sorted(streams, key=lambda stream: stream.provider == FABRIC)
        return {stream.name: self._input(stream, bounded, stack) for stream in order}

    def _input(self, stream: StreamSource, common: Input, stack: ExitStack) -> Input:
        if stream.provider == MQTT:
            return replace(common, path=self._log(stream), log=True, rejects=None)
        if stream.provider == FABRIC:
            path, sampled = self._fetch(stream.name, stack).path, stream.share < 1
            return replace(common, path=path, format="ndjson", rejects=None, sampled=sampled)
        if stream.provider == "file":
            path = Path(str(stream.parameter("path")))
            if not path.exists():
                raise DataError(f"stream {stream.name}: there is no {path}")
            return replace(common, path=path.resolve())
        raise UsageError(f"stream {stream.name} comes from {stream.provider}, which has no history")

    def _log(self, stream: StreamSource) -> Path:
        site, name = self._found_site(), stream_log(stream)
        folder = SiteLog(site.folder / "log").folder(name)
        if not folder.is_dir():
            text = f"stream {stream.name}: site {site.site} keeps no log of {name}"
            raise DataError(text, "it keeps the topics of its jobs and of its store: topics:")
        return folder

    def _found_site(self) -> LocalSite:
        if self._site is None:
            self._site = find_site(self._asked.site)
        return self._site

    def _fetch(self, stream: str, stack: ExitStack) -> Fetched:
        if self._fetcher is None:
            self._fetcher = Fetcher(self._asked.client(), self._settings.scratch)
            stack.enter_context(self._fetcher)
        scans = [scan for scan in self._scans if scan.stream.name == stream]
        described = any(_asks(scan, DESCRIBED.values()) for scan in scans)
        return self._fetcher.fetch(question_of(scans), self._since, self._until, described)


def _asks(scan: Scan, names: Collection[str]) -> bool:
    return any(field.name in names for field in scan.columns or ())
