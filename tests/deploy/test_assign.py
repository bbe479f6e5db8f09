"""Routes: to the log, to another site, to a broker."""

from __future__ import annotations

from dataclasses import replace

from fogline.deploy.resolve.assign import assignments
from fogline.model.jobs import Assignment, Code, Job, Pipeline, Place, Query, Route, Steps
from tests.deploy.kit import SITES, gateway, site, topology

WORK = Code("m:f", "1", "m.py")


def routes(*pipelines: Pipeline) -> dict[str, tuple[Route, ...]]:
    return {name: told.routes for name, (_, told) in assignments(pipelines, SITES).items()}


def job(name: str, node: str, reads: Place, *writes: Place, publish: bool = False) -> Job:
    return Job(name, node, WORK, (reads,), writes, publish=publish)


WRITER = job("w", "a", Place("in", "a"), Place("t", "a"))
FAR_WRITER = job("f", "a", Place("in", "a"), Place("t", "b"))


def test_nobody_reads() -> None:
    assert routes(Pipeline("p", (WRITER,))) == {"w": (Route("publish", "t"),)}
    far = routes(Pipeline("p", (FAR_WRITER,)))
    assert far == {"f": (Route("publish", "t", "mqtt://10.0.0.2:1883"),)}


def test_a_reader_at_the_same_site() -> None:
    reader = job("r", "a", Place("t", "a"))
    assert routes(Pipeline("p", (WRITER, reader)))["w"] == (Route("log", "t"),)


def test_a_reader_of_another_pipeline_counts() -> None:
    reader = job("r", "a", Place("t", "a"))
    assert routes(Pipeline("p", (WRITER,)), Pipeline("q", (reader,)))["w"] == (Route("log", "t"),)
    told = assignments([Pipeline("p", (WRITER,)), Pipeline("q", (reader,))], SITES)
    assert (told["w"][1].pipeline, told["r"][1].pipeline) == ("p", "q")


def test_a_reader_at_another_site() -> None:
    reader = job("r", "b", Place("t", "b"))
    link = Route("link", "t", "mqtt://10.0.0.2:1883", "b")
    assert routes(Pipeline("p", (FAR_WRITER, reader)))["f"] == (link,)


def test_a_reader_with_wildcards() -> None:
    reader = job("r", "b", Place("#", "b"))
    link = Route("link", "t", "mqtt://10.0.0.2:1883", "b")
    assert routes(Pipeline("p", (FAR_WRITER, reader)))["f"] == (link,)


def test_a_reader_from_afar_needs_the_broker() -> None:
    near, far = job("n", "a", Place("t", "a")), job("r", "b", Place("t", "a"))
    pipeline = Pipeline("p", (WRITER, near, far))
    assert routes(pipeline)["w"] == (Route("publish", "t"),)
    told = assignments([pipeline], SITES)
    assert told["n"][1].reads == (Place("t"),)
    assert told["r"][1].reads == (Place("t", "a", "mqtt://10.0.0.1:1883"),)


def test_what_is_published_comes_to_readers_from_the_broker() -> None:
    writer = job("w", "a", Place("in", "a"), Place("t", "a"), Place("u", "a"), publish=True)
    reader = job("r", "a", Place("t", "a"))
    told = routes(Pipeline("p", (writer, reader)))["w"]
    assert told == (Route("publish", "t"), Route("publish", "u"))


def test_a_foreign_broker() -> None:
    foreign = Place("t", broker="mqtt://10.9.9.9:1883")
    writer, reader = job("w", "a", Place("in", "a"), foreign), job("r", "b", foreign)
    told = routes(Pipeline("p", (writer, reader)))
    assert told["w"] == (Route("publish", "t", "mqtt://10.9.9.9:1883"),)


def test_a_gateway_links_to_its_site() -> None:
    light = Job("g", "gw", Steps(()), (Place("x", "gw"),), (Place("in", "a"),))
    told = routes(Pipeline("p", (light, WRITER)))
    assert told["g"] == (Route("link", "in", "mqtt://10.0.0.1:1883", "a"),)


def test_a_node_that_was_never_seen_is_waited_for() -> None:
    sender = Job("s", "gate", Steps(()), (Place("in", "gate"),), (Place("t", "far"),))
    reader = job("r", "far", Place("t", "far"))
    nodes = topology(gateway("gate", "far"))
    told = assignments([Pipeline("p", (sender,))], nodes)["s"][1]
    assert told.routes == (Route("publish", "t", node="far"),)
    assert told.routes[0].waits
    told = assignments([Pipeline("p", (sender, reader))], nodes)["s"][1]
    assert told.routes == (Route("link", "t", node="far"),)
    known = topology(gateway("gate", "far"), site("far", "10.0.0.9"))
    told = assignments([Pipeline("p", (sender,))], known)["s"][1]
    assert told.routes == (Route("publish", "t", "mqtt://10.0.0.9:1883"),)
    assert not told.routes[0].waits


def test_what_jobs_compute_is_told_to_code_that_reads_it() -> None:
    """So that it is stored once; what a gateway passes on is stored by its reader."""
    reader = job("r", "a", Place("#", "a"))
    passing = Job("g", "a", Steps(()), (Place("x", "a"),), (Place("passed", "a"),))
    told = assignments([Pipeline("p", (WRITER, reader)), Pipeline("q", (passing,))], SITES)
    assert {name: assignment.made for name, (_, assignment) in told.items()} == {
        "w": (),
        "r": ("t",),
        "g": (),
    }
    assert "made" not in told["w"][1].as_json()
    again = Assignment.from_json(told["r"][1].as_json())
    assert again.made == ("t",)
    assert again.run == told["r"][1].run == replace(again, made=()).run


def test_what_was_checked_alone_is_told_with_the_others() -> None:
    """The graph of a pipeline's own jobs is not that of all jobs."""
    reader = job("r", "a", Place("t", "a"))
    alone, other = Pipeline("p", (WRITER,)), Pipeline("q", (reader,))
    told = assignments([alone, other], SITES)
    assert told == assignments([other, alone], SITES)
    assert told["w"][1].routes == (Route("log", "t"),)
    assert assignments([alone], SITES)["w"][1].routes == (Route("publish", "t"),)


def test_nodes_that_are_told_alike_get_equal_assignments() -> None:
    nodes = topology(site("a", "10.0.0.1"), *(gateway(f"g{n}", "a") for n in range(3)))
    work = Steps(({"op": "forward"},))
    jobs = [Job(f"j{n}", f"g{n}", work, (Place("x", f"g{n}"),), (Place("y", "a"),)) for n in (0, 1)]
    own = Job("j2", "g2", work, (Place("x", "g1"),), (Place("y", "g2"),))
    told = assignments([Pipeline("p", (*jobs, own))], nodes)
    first, second, third = (told[f"j{n}"][1] for n in range(3))
    assert first.reads == (Place("x"),)
    assert first.routes == (Route("publish", "y", "mqtt://10.0.0.1:1883"),)
    assert (first.reads, first.routes) == (second.reads, second.routes)
    assert third.reads == (Place("x", "g1"),)
    assert third.routes == (Route("publish", "y"),)


def test_who_reads_a_signed_insight_is_told_its_key() -> None:
    text = (
        's = STREAM FROM mqtt(topic="in", format="json", time="t");\n'
        "a = COMPUTE AVG(x, 5 s) EVERY 5 s WITH SIGNATURE 'k';\n"
        "b = COMPUTE MAX(x, 5 s) EVERY 5 s;"
    )
    writes = (Place("insights/q/a", "b"), Place("insights/q/b", "b"))
    query = Job("q", "a", Query(text), (Place("in", "a"),), writes)
    near, far = job("n", "b", Place("insights/q/a", "b")), job("f", "b", Place("insights/#", "b"))
    other = job("o", "b", Place("insights/q/b", "b"))
    told = assignments([Pipeline("p", (query, near, far, other))], SITES)
    assert told["n"][1].signed == told["f"][1].signed == {"insights/q/a": "k"}
    assert told["o"][1].signed == told["q"][1].signed == {}
    again = Assignment.from_json(told["n"][1].as_json())
    assert again == told["n"][1]
    assert again.run == replace(again, signed={}).run, "the computation goes on"
    muted = assignments([Pipeline("p", (replace(query, muted=("a",)), near))], SITES)
    assert muted["n"][1].signed == {}
