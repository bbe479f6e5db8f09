"""What a gateway is asked to run, looked at before anything is done: all problems at once."""

from __future__ import annotations

import json
import marshal
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from fogline.broker import TopicError
from fogline.broker.topics import check_filter, check_topic
from fogline.common.errors import DataError, UsageError
from fogline.gateway.jobs.chain import Chain
from fogline.model.broker_url import BrokerUrl
from fogline.model.jobs import LINK, LOG, Assignment, Steps, Work, work_from_json
from fogline.model.nodes import is_name

MOST_JOBS = 1000
_PLAIN = 2
"""The format of `marshal` in which equal values of equal types are written alike. It is quick, and
what is written does not leave the process."""


Nameless = tuple[Assignment, list[str]]
"""An assignment without the name of its job, and what is wrong with it."""


def read_assignments(data: Any, jobs: Any = None) -> list[Assignment]:
    """Assignments that have the names of their jobs, or have none and get these. Raises `DataError`
    with every problem of every assignment."""
    if not isinstance(data, list) or len(data) > MOST_JOBS:
        raise DataError(f"assignments are a list of at most {MOST_JOBS}")
    called = [_own_name(item) for item in data] if jobs is None else names(jobs)
    if len(called) != len(data):
        raise DataError(f"there are {len(data)} assignments and {len(called)} names of jobs")
    found, problems = [], []
    for job, known in zip(called, _last_read.all(data), strict=True):
        if job is None or isinstance(known, DataError):
            problems.append(str(known) if job is not None else "this is no assignment: no job")
            continue
        assignment = known[0].named(job)
        found.append(assignment)
        wrong = _wrong_name(assignment) + known[1]
        problems += [f"job {job!r:.80}: {text}" for text in wrong]
    if problems:
        raise DataError("; ".join(problems), "nothing was installed")
    return found


def _own_name(item: Any) -> str | None:
    return str(item["job"]) if isinstance(item, dict) and "job" in item else None


class _LastRead:
    """What several gateways of a process are told with one request is the very same object for each
    of them: the first one reads it. For any number of threads."""

    def __init__(self) -> None:
        self._last: tuple[list[Any], list[Nameless | DataError]] = ([], [])

    def all(self, data: list[Any]) -> list[Nameless | DataError]:
        last = self._last
        if last[0] is not data:
            self._last = last = (data, [_read(item) for item in data])
        return last[1]


_last_read = _LastRead()


def _read(item: Any) -> Nameless | DataError:
    if not isinstance(item, dict):
        return DataError("this is no assignment")
    try:
        shared = marshal.dumps({key: item[key] for key in item if key != "job"}, _PLAIN)
        return _read_shared(shared)
    except ValueError as error:
        return DataError(f"this is no assignment: {error!r}")
    except DataError as error:
        return error


@lru_cache(maxsize=256)
def _read_shared(written: bytes) -> tuple[Assignment, list[str]]:
    """What many gateways are told alike is read and looked at once; they share what is in it."""
    data = marshal.loads(written)
    read = Assignment.from_json({**data, "job": ""})
    work, given = _read_computation(json.dumps([data["work"], data.get("input", {})]))
    nameless = replace(read, work=work, input=given)
    return nameless, _wrong_besides(nameless)


@lru_cache(maxsize=256)
def _read_computation(text: str) -> tuple[Work, dict[str, str]]:
    """With other parameters or routes it is still the very same: that is quick to see."""
    work, given = json.loads(text)
    return work_from_json(work), dict(given)


def steps_problem(
    steps: Sequence[Mapping[str, Any]], given: Mapping[str, Any], parameters: Mapping[str, Any]
) -> str:
    """What is wrong with the steps of a job; empty when nothing is. Many jobs have the same steps:
    they are looked at once."""
    try:
        return _known_problem(json.dumps([steps, given, parameters], default=dict))
    except (TypeError, ValueError, AttributeError) as error:
        return f"its steps cannot be read: {error}"


@lru_cache(maxsize=1024)
def _known_problem(text: str) -> str:
    try:
        Chain(*json.loads(text))
    except DataError as error:
        return error.message
    return ""


def problems_of(assignment: Assignment) -> list[str]:
    """Why a gateway would not take it; nothing when it would."""
    return _wrong_name(assignment) + _wrong_besides(assignment)


def _wrong_name(assignment: Assignment) -> list[str]:
    if is_name(assignment.job):
        return []
    return ["it cannot be called that: it is part of topics"]


def _wrong_besides(assignment: Assignment) -> list[str]:
    found = []
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


@lru_cache(maxsize=256)
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
