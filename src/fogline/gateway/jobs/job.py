"""A job: reads its input, runs its chain, writes what comes out; exactly once through any crash.

Three facts make it so:

- The chain is deterministic: it depends on the messages, their order and arrival times, which the
  input log keeps, and on nothing else.
- Every commit to a log of the job carries the input's number as its source and, as its epoch, the
  input's position behind what was consumed. So each log itself says up to which frame of the input
  it has everything: outputs of frames up to there are in it, of later ones none.
- The checkpoint holds the chain's state at a position. It is written every now and then, whole or
  not at all, and never ahead of the logs. Before the first one there is the ledger entry:
  where it began, with which parameters.

After a crash the job goes on from there: it feeds the chain with the same frames again and drops
what a log has already, by the end of the frame that gave it. New parameters count from a checkpoint
on that is written before anything is computed with them, so replay uses the old ones for what was
computed with the old ones. A flush has no place in the input; it is announced by a checkpoint that
says where the output ends, so after a crash one sees whether it was written.

A log is made when there is something to write into it: a job that has seen nothing has no files.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import replace
from functools import cached_property
from typing import Any

from fogline.broker.topics import matches, split_share
from fogline.common.errors import FoglineError
from fogline.gateway.jobs.chain import Chain, Counts, Results, make_chain
from fogline.gateway.jobs.checkpoint import Checkpoint
from fogline.gateway.jobs.files import JobFiles
from fogline.gateway.jobs.inputs import InputLog
from fogline.gateway.jobs.ledger import LedgerEntry
from fogline.gateway.jobs.rejects import encode_reject
from fogline.gateway.operators import ReceivedMessage
from fogline.log import Frame, LogFull, LogReader, LogWriter
from fogline.log.files.frames import BadFrame
from fogline.model.jobs import Assignment
from fogline.model.nodes import Observed
from fogline.model.sites import bad_log, late_log, out_log

READ_BYTES = 256 << 10
CHECKPOINT_SECONDS = 5.0
CHECKPOINT_BYTES = 4 << 20
_SAID = 200


class GatewayJob:
    """One job at work, for one thread at a time."""

    def __init__(
        self,
        entry: LedgerEntry,
        patterns: tuple[str, ...],
        source: InputLog,
        files: JobFiles,
    ) -> None:
        """Goes on from its checkpoint; without one it begins where its entry says."""
        self.entry = entry
        self._version = entry.version
        self.patterns = patterns
        self.said: deque[str] = deque(maxlen=_SAID)
        self._source = source
        self._number = source.number()
        self._files = files
        self._writers: dict[str, LogWriter] = {}
        self._pending: tuple[dict[str, list[bytes]], int] | None = None
        self._topics: dict[str, bool] = {}
        self._flush = False
        self.problem = ""
        try:
            self._restore()
        except BaseException:
            self.abandon()
            raise
        self._saved, self._saved_at = self.position, time.monotonic()

    # ── the life of a job ──────────────────────────────────────────────────────────────────────

    def _restore(self) -> None:
        known = self._files.checkpoint(self.entry.job)
        if known is not None and known.life != self.entry.life:
            known = None
        self.position = known.position if known else self.entry.begin
        self._parameters = dict(known.parameters if known else self.entry.parameters)
        if known is not None and known.state is not None:
            self._chain.restore(known.state)
        if self._files.of(self.assignment.job):
            self._open_writers()
        if known is not None and known.flushing:
            self._flush_now(written=self._out_end > known.out)

    def _open_writers(self) -> None:
        job, stream = self.assignment.job, self._chain.stream
        for name in (out_log(job), bad_log(job, stream), late_log(job, stream)):
            if self._files.has(name):
                self._writer(name)

    @cached_property
    def _chain(self) -> Chain:
        """Made when there is something for it: a job may wait long for its first message."""
        chain = make_chain(self.assignment, self._parameters)
        chain.counts = Counts(*self.entry.counts)
        return chain

    @cached_property
    def _reader(self) -> LogReader:
        return self._source.reader()

    @property
    def _counts(self) -> Counts:
        """Asked often, also of a job that has seen nothing yet."""
        return self._chain.counts if "_chain" in vars(self) else Counts(*self.entry.counts)

    @property
    def assignment(self) -> Assignment:
        """The last one."""
        return self.entry.assignment

    def update(self, assignment: Assignment) -> None:
        """The same computation with other parameters, routes or `running`: it goes on."""
        self.entry = self.entry.now(assignment)
        self._version = self.entry.version

    def end(self) -> None:
        """Takes nothing more than what is in its input now."""
        self.entry = replace(self.entry, until=self._source.committed())

    @property
    def ending(self) -> bool:
        return self.entry.until is not None

    @property
    def ended(self) -> bool:
        """Whether it has computed the last of what it had to."""
        done = self.lag == 0 and self._pending is None
        return self.ending and (done or not self.assignment.running)

    def flush(self) -> None:
        """What is held back is written out at the next step."""
        self._flush = True

    @property
    def counts(self) -> tuple[int, ...]:
        return self._counts.as_tuple()

    @property
    def input(self) -> InputLog:
        return self._source

    @property
    def lag(self) -> int:
        return max(0, self._end - self.position)

    @property
    def _end(self) -> int:
        """Of what there is for it in its input."""
        end = self._source.committed()
        return end if self.entry.until is None else min(end, self.entry.until)

    @property
    def has_output(self) -> bool:
        """Whether there is a log with what it gave."""
        return out_log(self.assignment.job) in self._writers

    @property
    def needed_position(self) -> int:
        """From where on the input is needed after a crash."""
        return self._source.committed() if self.ended else self._saved

    def step(self) -> bool:
        """Takes the next messages, if there are any; whether it did. Nothing is half done when it
        raises: the same step is tried again."""
        if not self._write_pending():
            return False
        self.problem = ""
        if self._flush:
            self._settle()
        if not self.assignment.running or self.lag == 0:
            self._save_if_due(idle=True)
            return False
        if self._parameters != dict(self.assignment.parameters):
            self._settle()
        frames, end = self._read()
        self._pending = (self._compute_frames(frames), max(end, self.position))
        self._write_pending()
        self._save_if_due(idle=False)
        return True

    def close(self) -> None:
        """Ends; what was computed is kept, and the next start goes on here."""
        try:
            if self._write_pending() and self.position != self._saved:
                self._save(flushing=False)
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Ends at once: nobody goes on here, or as after a crash."""
        for writer in self._writers.values():
            writer.close()
        if "_reader" in vars(self):
            self._reader.close()

    @property
    def _replay_end(self) -> int:
        """Up to where some log has what the input gave: before that, everything is replay."""
        epochs = (writer.last_epoch(self._number) for writer in self._writers.values())
        return max(epochs, default=-1)

    @property
    def _out_end(self) -> int:
        out = self._writers.get(out_log(self.assignment.job))
        return out.position if out is not None else 0

    def _read(self) -> tuple[list[Frame], int]:
        """The next frames; what is replay and what is new never together."""
        frames, end = self._reader.frames(self.position, READ_BYTES)
        frames = [frame for frame in frames if frame.end <= self._end]
        end = min(end, self._end)
        replay = [frame for frame in frames if frame.end <= self._replay_end]
        return (replay, replay[-1].end) if replay else (frames, end)

    # ── computing ──────────────────────────────────────────────────────────────────────────────

    def _compute_frames(self, frames: list[Frame]) -> dict[str, list[bytes]]:
        """What the frames give, by log, without what the logs have already."""
        found: dict[str, list[bytes]] = {}
        for frame in frames:
            results = Results()
            try:
                for topic, payload in frame.records():
                    if self._accepts(topic):
                        self._chain.feed(ReceivedMessage(topic, payload, frame.arrival), results)
            except BadFrame as error:
                self._say(f"a damaged frame at {frame.position} was left out: {error}")
            for log, payloads in self._sort_results(results, frame.position).items():
                if payloads and frame.end > self._writer(log).last_epoch(self._number):
                    found.setdefault(log, []).extend(payloads)
        return found

    def _sort_results(self, results: Results, position: int) -> dict[str, list[bytes]]:
        job, stream = self.assignment.job, self._chain.stream
        made = {out_log(job): results.out}
        for kind, log, rejects in (
            ("bad", bad_log(job, stream), results.bad),
            ("late", late_log(job, stream), results.late),
        ):
            if rejects:
                self._say(f"{kind}: {rejects[-1].reason}")
                made[log] = [encode_reject(stream, kind, reject, position) for reject in rejects]
        return made

    def _accepts(self, topic: str) -> bool:
        known = self._topics.get(topic)
        if known is None:
            known = any(matches(split_share(p)[1], topic) for p in self.patterns)
            if len(self._topics) > 10_000:
                self._topics.clear()
            self._topics[topic] = known
        return known

    # ── writing ────────────────────────────────────────────────────────────────────────────────

    def _write_pending(self) -> bool:
        """What was computed is in its logs; False where there is no space for it yet."""
        if self._pending is None:
            return True
        found, end = self._pending
        try:
            if found:
                self._source.sync(end)
            for log, payloads in found.items():
                self._append(log, payloads, end)
        except LogFull as error:
            self.problem = f"no space: {error}"
            return False
        self.position, self._pending = end, None
        return True

    def _append(self, log: str, payloads: list[bytes], end: int) -> None:
        writer = self._writer(log)
        if writer.last_epoch(self._number) < end:
            writer.append([(log, payload) for payload in payloads], self._number, end)
            writer.commit()

    def _writer(self, log: str) -> LogWriter:
        if log not in self._writers:
            self._writers[log] = self._files.writer(log)
        return self._writers[log]

    def _settle(self) -> None:
        """Between two messages, and not in replay: flushes, and takes over new parameters."""
        if self._replay_end > self.position:
            return
        if self._flush:
            self._save(flushing=True)
            self._flush_now(written=False)
            self._flush = False
        requested = dict(self.assignment.parameters)
        if requested != self._parameters:
            chain = make_chain(self.assignment)
            chain.restore(self._chain.state())
            self._chain, self._parameters = chain, requested
            self._save(flushing=False)

    def _flush_now(self, written: bool) -> None:
        """Everything leaves the chain; `written`: that is in the log already."""
        before = self._chain.state()
        results = Results()
        self._chain.flush(results)
        try:
            if results.out and not written:
                log = out_log(self.assignment.job)
                out = self._writer(log)
                out.append([(log, payload) for payload in results.out], self._number, self.position)
                out.commit()
        except BaseException:
            self._chain.restore(before)
            raise
        self._save(flushing=False)

    def _save_if_due(self, idle: bool) -> None:
        behind = self.position - self._saved
        late = time.monotonic() - self._saved_at >= CHECKPOINT_SECONDS
        if behind and self._pending is None and (late or (not idle and behind >= CHECKPOINT_BYTES)):
            self._save(flushing=False)

    def _save(self, flushing: bool) -> None:
        self._source.sync(self.position)
        life, state, out = self.entry.life, self._chain.state(), self._out_end
        known = Checkpoint(life, self.position, out, flushing, self._parameters, state)
        self._files.keep(self.entry.job, known)
        self._saved, self._saved_at = self.position, time.monotonic()

    # ── status ─────────────────────────────────────────────────────────────────────────────────

    def say(self, error: FoglineError) -> None:
        self.problem = str(error)
        self._say(self.problem)

    def _say(self, text: str) -> None:
        self.said.append(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {text[:500]}")

    def observed(self, **more: Any) -> Observed:
        """With more that others know of it."""
        counts = self._counts
        running = "running" if self.assignment.running else "stopped"
        return Observed(
            job=self.assignment.job,
            version=self._version,
            state="failed" if self.problem else running,
            problem=self.problem,
            records_in=counts.records,
            records_out=counts.out,
            bad=counts.bad,
            late=counts.late,
            lag_bytes=self.lag,
            more={"repeated": counts.repeated, **more} if counts.repeated else more,
        )
