"""Waves: readers before writers when jobs are made, the other way round when they end."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given

from fogline.deploy.diff.order import downstream_first
from fogline.deploy.resolve.flow import Flow, find_cycle
from fogline.model.jobs import Code, Job, Place
from fogline.model.topics import matches
from tests.deploy.graphs import code_lists

WORK = Code("m:f", "1", "m.py")


def edges(jobs: list[Job]) -> set[tuple[str, str]]:
    """Writer and reader, found one by one."""
    return {
        (writer.name, reader.name)
        for writer in jobs
        for reader in jobs
        for out in writer.writes
        for into in reader.reads
        if out.node == into.node and matches(into.topic, out.topic)
    }


def reachable(jobs: list[Job]) -> set[tuple[str, str]]:
    known = edges(jobs)
    while more := {(a, d) for a, b in known for c, d in known if b == c} - known:
        known |= more
    return known


@given(code_lists)
def test_readers_come_first(jobs: list[Job]) -> None:
    waves = downstream_first(Flow.of(jobs))
    wave = {name: number for number, names in enumerate(waves) for name in names}
    assert sorted(wave) == sorted(job.name for job in jobs)
    paths = reachable(jobs)
    looped = {name for name, other in paths if name == other}
    held = {writer for writer, reader in paths if reader in looped}
    for writer, reader in edges(jobs):
        if writer not in looped | held:
            assert wave[writer] > wave[reader]


@given(code_lists)
def test_a_circle_is_found_when_there_is_one(jobs: list[Job]) -> None:
    known = edges(jobs)
    loop = find_cycle(Flow.of(jobs))
    assert bool(loop) == any(name == other for name, other in reachable(jobs))
    if loop:
        assert loop[0] == loop[-1]
        assert all(pair in known for pair in pairwise(loop))


@given(code_lists)
def test_readers_of_a_place(jobs: list[Job]) -> None:
    flow = Flow.of(jobs)
    found = {
        (writer, reader)
        for key, writers in flow.writers.items()
        for writer in writers
        for reader in flow.read_by(key)
    }
    assert found == edges(jobs)


def test_a_diamond() -> None:
    def job(name: str, reads: str, *writes: str) -> Job:
        return Job(name, "a", WORK, (Place(reads, "a"),), tuple(Place(w, "a") for w in writes))

    jobs = [job("top", "in", "l", "r"), job("left", "l", "x"), job("right", "r", "x")]
    jobs.append(job("end", "x", "out"))
    assert [set(wave) for wave in downstream_first(Flow.of(jobs))] == [
        {"end"},
        {"left", "right"},
        {"top"},
    ]
