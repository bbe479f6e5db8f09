"""What a gateway is asked to run, looked at before anything is done: all problems at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fogline.broker import TopicError
from fogline.broker.topics import check_filter, check_topic
from fogline.errors import DataError, UsageError
from fogline.gateway.chain import make_chain
from fogline.model.broker_url import BrokerUrl
from fogline.model.jobs import LOG, Assignment, Steps
from fogline.model.nodes import is_name

MOST_JOBS = 1000


def read_assignments(data: Any) -> list[Assignment]:
    """Raises `DataError` with every problem of every assignment."""
    if not isinstance(data, list) or len(data) > MOST_JOBS:
        raise DataError(f"assignments are a list of at most {MOST_JOBS}")
    found, problems = [], []
    for item in data:
        try:
            assignment = Assignment.from_json(item)
        except DataError as error:
            problems.append(str(error))
            continue
        problems += [f"job {assignment.job!r:.80}: {text}" for text in _problems(assignment)]
        found.append(assignment)
    if problems:
        raise DataError("; ".join(problems), "nothing was installed")
    return found


def _problems(assignment: Assignment) -> list[str]:
    found = []
    if not is_name(assignment.job):
        found.append("it cannot be called that: it is part of topics")
    if not isinstance(assignment.work, Steps):
        found.append("a gateway runs steps only")
    else:
        try:
            make_chain(assignment)
        except DataError as error:
            found.append(error.message)
        except (TypeError, AttributeError) as error:
            found.append(f"its steps cannot be read: {error}")
    return found + _wrong_reads(assignment) + _wrong_routes(assignment)


def _wrong_reads(assignment: Assignment) -> list[str]:
    found = [] if assignment.reads else ["it reads nothing"]
    if len({place.broker for place in assignment.reads}) > 1:
        found.append("a job of a gateway reads from one broker")
    for place in assignment.reads:
        found += _attempt(lambda topic=place.topic: check_filter(topic))
        if place.broker:
            found += _attempt(lambda broker=place.broker: _check_address(broker))
    return found


def _wrong_routes(assignment: Assignment) -> list[str]:
    found = []
    for route in assignment.routes:
        if route.mode == LOG:
            found.append("a gateway has no logs of topics: link or publish")
            continue
        found += _attempt(lambda topic=route.topic: check_topic(topic))
        if route.broker:
            found += _attempt(lambda broker=route.broker: _check_address(broker))
        elif route.mode == "link":
            found.append("a link needs the broker of the other side")
    return found


def _check_address(url: str) -> None:
    if not url.startswith("memory://"):
        BrokerUrl.parse(url)


def _attempt(check: Any) -> list[str]:
    try:
        check()
    except (TopicError, UsageError, AttributeError, TypeError) as error:
        return [str(error)]
    return []


def names(data: Any) -> Sequence[str]:
    if not isinstance(data, list) or not all(isinstance(name, str) for name in data):
        raise DataError("jobs are a list of names")
    return data
