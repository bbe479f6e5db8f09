"""Who still needs what of a site's logs: offsets of readers that have ended hold nothing back.

A reader has ended when no process reads that log any more: its job left the configuration, its
query reads another topic, the store was disabled. One that is only stopped, or that cannot run at
the moment, keeps its offset. The offset of a reader that has ended is remembered: should it come
back before retention has passed it, it goes on from there.
"""

from __future__ import annotations

from collections.abc import Iterable

from fogline.agent.damage.watch import DAMAGE_LOG
from fogline.agent.jobs.job import AgentJob, job_reader, route_reader, sendings
from fogline.links.sender import PUBLISHER
from fogline.log import SiteLog, retire_reader
from fogline.log.files.names import folder_name
from fogline.log.files.positions import readers_of

_STORE = "store"
_MOST_ROUTES = 64


def retire_strays(
    logs: SiteLog, jobs: Iterable[AgentJob], unsure: Iterable[str], stored: bool
) -> list[str]:
    """Retires readers that have ended; returns what was retired, for people.

    `unsure` are names of jobs of which nobody knows what they read, and under which they publish
    their results; `stored`: there is a store, which looks after its own positions.
    """
    needed_by_log = _find_readers(jobs)
    unsure = list(unsure)
    kept = {folder_name(name) for job in unsure for name in _names(job)}
    if stored:
        kept.add(folder_name(_STORE))
    retired = []
    for topic in logs.topics():
        if any(f"/{job}/" in f"{topic}/" for job in unsure):
            continue
        needed = {folder_name(name) for name in needed_by_log.get(topic, ())}
        for reader in readers_of(logs.folder(topic)):
            if reader not in needed and reader not in kept:
                retire_reader(logs.folder(topic), reader)
                retired.append(f"{reader} of {topic}")
    return retired


def _find_readers(jobs: Iterable[AgentJob]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {DAMAGE_LOG: {PUBLISHER}}
    for job in jobs:
        for log in job.logs():
            found.setdefault(log, set()).add(job_reader(job.name))
        for log in job.published_logs():
            found.setdefault(log, set()).add(PUBLISHER)
        for sending in sendings(job):
            found.setdefault(sending.log, set()).add(sending.reader)
    return found


def _names(job: str) -> list[str]:
    return [job_reader(job), *(route_reader(job, index) for index in range(_MOST_ROUTES))]
