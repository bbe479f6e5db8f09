"""What of a site's jobs only holders of a key may read: their signed insights (`SIGNATURE`).

That is, in the store, the metric of the insight; at the site's broker, its topic. A job that reads
a signed insight has it pass by in three more ways, which are restricted too: batches of it that
come over a link, and what of it was bad or came too late.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from fogline.agent.jobs.job import AgentJob, read_log
from fogline.broker.mosquitto.access import Restricted
from fogline.broker.topics import matches, split_share
from fogline.links.batch import PREFIX
from fogline.model.keys import key_list, key_text
from fogline.model.sites import bad_log, insight_log, late_log
from fogline.model.streams import MQTT

Signatures = dict[str, dict[str, str | None]]
"""By insight and the job under whose name it is published: the keys, None: it needs none."""


def signatures(jobs: Iterable[AgentJob]) -> Signatures:
    """While one job takes an insight over from another, those of both are needed."""
    found: Signatures = {}
    for job in jobs:
        for emit in job.visible_insights():
            outlets = found.setdefault(emit.name, {})
            known = outlets.get(job.assignment.outlet)
            outlets[job.assignment.outlet] = _join_keys(known, emit.options.signature)
    return found


def needed_keys(found: Signatures) -> set[tuple[str, str, str]]:
    """Each with its insight and the job that publishes it."""
    each = ((i, outlet, key_list(keys)) for i in found for outlet, keys in found[i].items())
    return {(insight, outlet, key) for insight, outlet, keys in each for key in keys}


def _join_keys(known: str | None, key: str | None) -> str | None:
    return known if key is None else key_text({*key_list(known), key})


def restricted_topics(jobs: Iterable[AgentJob]) -> dict[str, Restricted | None]:
    """The topics of jobs at the site's broker; None: everybody's."""
    jobs = list(jobs)
    own = {
        insight_log(outlet, insight): key_list(keys)
        for insight, outlets in signatures(jobs).items()
        for outlet, keys in outlets.items()
    }
    found = {topic: _restrict_topic(topic, keys) for topic, keys in own.items()}
    signed = {topic: keys for topic, keys in own.items() if keys}
    for job in jobs:
        found |= dict(_read(job, signed))
    return found


def _read(
    job: AgentJob, own: Mapping[str, frozenset[str]]
) -> Iterator[tuple[str, Restricted | None]]:
    others = {topic: key_list(keys) for topic, keys in job.assignment.signed.items()}
    for topic in others:
        yield PREFIX + topic, Restricted(PREFIX + topic, all_write=True)
    for pattern, logs in _rejects(job):
        keys = [keys for t, keys in {**own, **others}.items() if matches(pattern, t)]
        for log in logs:
            yield log, _restrict_topic(log, frozenset[str]().union(*keys))


def _rejects(job: AgentJob) -> Iterator[tuple[str, list[str]]]:
    """What it reads, and where it publishes what was bad or late there."""
    for stream in (s for s in job.streams() if s.provider == MQTT):
        pattern = split_share(str(stream.parameter("topic")))[1]
        yield pattern, [bad_log(job.name, stream.name), late_log(job.name, stream.name)]
    for place in job.places():
        yield place.topic, [bad_log(job.name, read_log(place))]


def _restrict_topic(topic: str, keys: frozenset[str]) -> Restricted | None:
    return Restricted(topic, keys) if keys else None
