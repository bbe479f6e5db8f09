"""What a gateway is asked to run, looked at before anything is done: all problems at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fogline.broker import TopicError
from fogline.broker.topics import check_filter, check_topic
from fogline.common.errors import DataError, UsageError
from fogline.gateway.jobs.chain import Chain
from fogline.model.broker_url import BrokerUrl
from fogline.model.jobs import LINK, LOG, Assignment, Steps
from fogline.model.nodes import is_name

MOST_JOBS = 1000


def read_assignments(data: Any, jobs: Any = None) -> list[Assignment]:
    """Assignments that have the names of their jobs, or have none and get these. Raises `DataError`
    with every problem of every assignment."""
    if not isinstance(data, list) or len(data) > MOST_JOBS:
        raise DataError(f"`assignments` must be a list of at most {MOST_JOBS}")
    called = [None] * len(data) if jobs is None else names(jobs)
    if len(called) != len(data):
        raise DataError(f"there are {len(data)} assignments and {len(called)} names of jobs")
    found, problems = [], []
    for job, item in zip(called, data, strict=True):
        try:
            assignment = _read(item, job)
        except DataError as error:
            problems.append(str(error))
            continue
        found.append(assignment)
        problems += [f"job {assignment.job!r:.80}: {text}" for text in problems_of(assignment)]
    if problems:
        raise DataError("; ".join(problems), "nothing was installed")
    return found


def _read(item: Any, job: str | None) -> Assignment:
    if not isinstance(item, dict):
        raise DataError("invalid assignment: not a JSON object")
    return Assignment.from_json(item if job is None else {**item, "job": job})


def steps_problem(
    steps: Sequence[Mapping[str, Any]], given: Mapping[str, Any], parameters: Mapping[str, Any]
) -> str:
    """What is wrong with the steps of a job; empty when nothing is."""
    try:
        Chain(steps, given, parameters)
    except DataError as error:
        return error.message
    except (TypeError, ValueError, AttributeError) as error:
        return f"its steps cannot be read: {error}"
    return ""


def problems_of(assignment: Assignment) -> list[str]:
    """Why a gateway would not take it; nothing when it would."""
    found = []
    if not is_name(assignment.job):
        found.append("invalid name: it is part of topics")
    if not isinstance(assignment.work, Steps):
        found.append("a gateway runs steps only")
    elif problem := steps_problem(assignment.work.steps, assignment.input, assignment.parameters):
        found.append(problem)
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
        elif route.mode == LINK and not route.waits:
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
        raise DataError("`jobs` must be a list of names")
    return data
