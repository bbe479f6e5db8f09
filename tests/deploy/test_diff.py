"""Differences: equal things have none, and applying one gives the new version."""

from __future__ import annotations

import json
from dataclasses import replace

from hypothesis import given

from fogline.deploy.diff.diff import (
    ADDED,
    CHANGED,
    KINDS,
    MOVED,
    REDIRECTED,
    REMOVED,
    STARTED,
    STOPPED,
    UNCHANGED,
    UPDATED,
    diff,
)
from fogline.deploy.resolve.assign import assignments
from fogline.model.jobs import Assignment, Code, Job, Pipeline, Place
from tests.deploy.graphs import jobs, pipelines
from tests.deploy.kit import SITES

JOB = Job("j", "a", Code("m:f", "1", "m.py"), (Place("t", "a"),), (Place("u", "a"),), {"limit": 1})


def kinds(old: Job, new: Job) -> tuple[str, ...]:
    (change,) = diff(Pipeline("p", (old,)), Pipeline("p", (new,))).changes
    return change.kinds


def test_what_happens_to_one_job() -> None:
    assert kinds(JOB, JOB) == (UNCHANGED,)
    assert kinds(JOB, replace(JOB, work=Code("m:f", "2", "m.py"))) == (CHANGED,)
    assert kinds(JOB, replace(JOB, input={"format": "json"})) == (CHANGED,)
    assert kinds(JOB, replace(JOB, reads=(Place("t", "b"),))) == (CHANGED,)
    assert kinds(JOB, replace(JOB, parameters={"limit": 2})) == (UPDATED,)
    assert kinds(JOB, replace(JOB, parameters={"limit": True})) == (UPDATED,)
    assert kinds(JOB, replace(JOB, writes=(Place("u", "b"),))) == (REDIRECTED,)
    assert kinds(JOB, replace(JOB, publish=True)) == (REDIRECTED,)
    assert kinds(JOB, replace(JOB, running=False)) == (STOPPED,)
    assert kinds(replace(JOB, running=False), JOB) == (STARTED,)
    both = replace(JOB, running=False, parameters={})
    assert kinds(JOB, both) == (UPDATED, STOPPED)


def test_a_job_that_moves() -> None:
    assert kinds(JOB, replace(JOB, node="b")) == (MOVED,)
    along = replace(JOB, node="b", reads=(Place("t", "b"),), writes=(Place("u", "b"),))
    assert kinds(JOB, along) == (MOVED,)
    elsewhere = replace(JOB, node="b", writes=(Place("u", "c"),))
    assert kinds(JOB, elsewhere) == (MOVED, REDIRECTED)
    told = str(diff(Pipeline("p", (JOB,)), Pipeline("p", (along,))))
    assert told == "> j moved from a to b"


def test_whole_pipelines_come_and_go() -> None:
    one = Pipeline("p", (JOB,))
    assert diff(None, one).of(ADDED) == ("j",)
    assert diff(one, None).of(REMOVED) == ("j",)
    assert diff(None, None).changes == ()
    assert diff(one, None).as_json() == {
        "pipeline": "p",
        "counts": {"removed": 1},
        "jobs": [{"job": "j", "changes": ["removed"], "from": "a"}],
    }


@given(pipelines)
def test_nothing_changes_between_equals(pipeline: Pipeline) -> None:
    found = diff(pipeline, pipeline)
    assert found.empty
    assert all(change.kinds == (UNCHANGED,) for change in found.changes)


@given(pipelines, pipelines)
def test_applying_a_difference(old: Pipeline, new: Pipeline) -> None:
    found = diff(old, new)
    assert (found.apply(old) or Pipeline("p", ())) == new
    assert len(found.changes) == len({job.name for job in (*old.jobs, *new.jobs)})
    assert all(kind in KINDS for change in found.changes for kind in change.kinds)
    assert json.loads(json.dumps(found.as_json())) == found.as_json()
    assert len(str(found).splitlines()) == len(found.changes)


@given(pipelines, pipelines)
def test_back_is_the_reverse(old: Pipeline, new: Pipeline) -> None:
    there, back = diff(old, new), diff(new, old)
    assert set(there.of(ADDED)) == set(back.of(REMOVED))
    assert set(there.of(CHANGED)) == set(back.of(CHANGED))
    assert set(there.of(STARTED)) == set(back.of(STOPPED))


@given(pipelines, pipelines)
def test_what_is_not_changed_computes_the_same(old: Pipeline, new: Pipeline) -> None:
    found = diff(old, new)
    before, after = (assignments([version], SITES) for version in (old, new))
    touched = {*found.of(CHANGED), *found.of(MOVED), *found.of(ADDED)}
    for job in {job.name for job in new.jobs} - touched:
        assert before[job][1].computation == after[job][1].computation


@given(jobs)
def test_jobs_survive_json(job: Job) -> None:
    assert Job.from_json(json.loads(json.dumps(job.as_json()))) == job


@given(pipelines)
def test_assignments_survive_json(pipeline: Pipeline) -> None:
    for _, told in assignments([pipeline], SITES).values():
        again = Assignment.from_json(json.loads(json.dumps(told.as_json())))
        assert (again, again.version) == (told, told.version)
