"""Random pipelines for property tests."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from fogline.model.jobs import Code, Job, Pipeline, Place, Query, Steps

nodes = st.sampled_from(["a", "b", "c", "d"])
names = st.sampled_from([f"j{number}" for number in range(8)])
topics = st.sampled_from(["t/1", "t/2", "u", "v"])
filters = st.one_of(topics, st.sampled_from(["t/+", "t/#", "#"]))
scalars = st.one_of(st.integers(-9, 9), st.booleans(), st.sampled_from(["x", "y"]), st.just(0.5))
works = st.one_of(
    st.builds(Code, st.just("m:f"), st.sampled_from(["p1", "p2"]), st.just("m.py")),
    st.builds(Query, st.sampled_from(["x = COMPUTE a;", "y = COMPUTE b;"])),
    st.just(Steps(({"op": "sample", "fraction": 0.5},))),
)
jobs = st.builds(
    Job,
    name=names,
    node=nodes,
    work=works,
    reads=st.lists(st.builds(Place, filters, nodes), max_size=2, unique=True).map(tuple),
    writes=st.lists(st.builds(Place, topics, nodes), max_size=2, unique=True).map(tuple),
    parameters=st.dictionaries(st.sampled_from(["p", "q"]), scalars, max_size=2),
    input=st.sampled_from([{}, {"format": "json"}]),
    publish=st.booleans(),
    running=st.booleans(),
)
job_lists = st.lists(jobs, max_size=8, unique_by=lambda job: job.name)
pipelines = st.builds(lambda items: Pipeline("p", tuple(items)), job_lists)
code_lists = job_lists.map(
    lambda items: [replace(job, work=Code("m:f", "p1", "m.py")) for job in items]
)
"""Jobs that write nothing but what they are told to."""
