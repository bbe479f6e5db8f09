"""What all jobs are together: whether they go in a circle, and who writes what is read.

Jobs with something wrong in them count as far as they are known. What they might write besides is
not said to be written by nobody: that may be a consequence of what has been reported already.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from fogline.deploy.manifest.manifest import UNKNOWN, Composition, WrittenJob, WrittenPlace
from fogline.deploy.resolve.flow import Flow, FlowKey, find_cycle
from fogline.deploy.resolve.unfed_topics import UnfedTopic, find_unfed
from fogline.deploy.resolve.workloads import Computed
from fogline.model.jobs import Job, Place, Steps
from fogline.model.topics import TopicTree, wrong_job_topic

_NOTHING = Steps(())
"""What a job computes stands in for where that is not known: its topics are what counts."""


class Together:
    """`add` every job, then look at `cycle` and call `find_unfed`."""

    def __init__(self, composition: Composition) -> None:
        self._jobs: list[Job] = []
        self._anything = composition.unread
        """Nobody knows what else is written."""
        self._doubtful: TopicTree[bool] = TopicTree()
        """Topics that are written, or put in, at a place that is not known."""

    def add(self, job: Job, written: WrittenJob) -> None:
        self._jobs.append(job)
        self._note_doubts(written)

    def add_unfinished(
        self,
        written: WrittenJob,
        computed: Computed | None,
        reads: tuple[Place, ...] | None,
        writes: tuple[Place, ...] | None,
        node: str,
    ) -> None:
        """A job with something wrong; None is what is not known of it."""
        work = computed.work if computed is not None else _NOTHING
        self._jobs.append(Job(written.name.text, node, work, reads or (), writes or ()))
        self._note_doubts(written)
        self._anything |= computed is None and (written.query or written.query_file) is not None
        for place in written.writes if writes is None else ():
            self.note_doubtful(place)

    def note_doubtful(self, place: WrittenPlace) -> None:
        """Something comes on this topic, somewhere."""
        topic = place.topic.text
        if wrong_job_topic(topic, reading=True) is None:
            self._doubtful.add(topic, True)
        else:
            self._anything = True

    def _note_doubts(self, written: WrittenJob) -> None:
        """An unknown field may be meant to name what the job writes, if nothing else does."""
        unnamed = UNKNOWN in written.unread and not written.writes
        self._anything |= "sink" in written.unread or unnamed

    @cached_property
    def _flow(self) -> Flow:
        """To be asked for when all jobs are there."""
        return Flow.of(self._jobs)

    def cycle(self) -> tuple[str, ...]:
        return find_cycle(self._flow)

    def find_unfed(
        self, nodes: Mapping[str, object], inputs: list[FlowKey] | None
    ) -> Iterator[UnfedTopic]:
        """What is read but written by nobody, for certain."""
        if self._anything:
            return
        for finding in find_unfed(self._flow, nodes, inputs):
            if not self._doubtful or not any(self._doubtful.find_overlapping(finding.topic)):
                yield finding
