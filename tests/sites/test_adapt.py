"""SpecK's two listings: a pipeline over four sites is adapted while data flows through it."""

from __future__ import annotations

from collections import Counter

import pytest

from fogline.demo.world import World
from tests.sites.kit import PASS, Device, deployed, log_of, numbers, runs, upload

pytestmark = pytest.mark.site

JOB = """
- job_name: {name}
  spe_address: {spe}/
  source_broker: {source}
  sink_broker: {sink}
  source_topic: {reads}
  sink_topic: {writes}
  entry_class: test.run
  job_path: jars/test.py
"""


def listing(world: World, *jobs: tuple[str, str, str, str, str]) -> str:
    """Jobs as (name, site, source topic, sink site, sink topic), in SpecK's own words."""
    text = "----\njobs:"
    for name, site, reads, sink, writes in jobs:
        text += JOB.format(
            name=name,
            spe=world.address(site),
            source=world.broker(site).replace("mqtt", "tcp"),
            sink=world.broker(sink).replace("mqtt", "tcp"),
            reads=reads,
            writes=writes,
        )
    return text


def test_the_listings_of_the_paper(world: World) -> None:
    upload(world, "jars/test.py", PASS)
    first = listing(
        world,
        ("A", "a", "T-1", "c", "T-C-filter"),
        ("B", "b", "T-2", "c", "T-C-filter"),
        ("C", "c", "T-C-filter", "d", "T-D-merger"),
        ("D", "d", "T-D-merger", "d", "T-D-total"),
    )
    second = listing(
        world,
        ("A", "a", "T-1", "c", "T-C-filter"),
        ("C", "c", "T-C-filter", "c", "T-C2-filter"),
        ("C2", "c", "T-C2-filter", "d", "T-D-merger"),
        ("D", "d", "T-D-merger", "d", "T-D-total"),
    )
    with deployed(world, "speck", first):
        one, two = Device(world, "a", "T-1"), Device(world, "b", "T-2")
        one.start()
        two.start()
        world.wait(lambda: len(log_of(world, "d", "out/D")) > 500, 120, "500 records at D")
        before = runs(world, "A", "C", "D")
        told = world.client.put_pipeline("speck", second, "yaml")
        changes = {c["job"]: c["changes"] for c in told["diff"]["jobs"]}
        assert changes["B"] == ["removed"]
        assert changes["C"] == ["redirected"]
        assert changes["C2"] == ["added"]
        assert changes["A"] == changes["D"] == ["unchanged"]
        world.wait_running("speck")
        at = len(log_of(world, "d", "out/D"))
        world.wait(lambda: len(log_of(world, "d", "out/D")) > at + 300, 120, "more records at D")
        sent = one.stop()
        sent_to_b = two.stop()
        assert runs(world, "A", "C", "D") == before

        def arrived() -> list[int]:
            return numbers(log_of(world, "d", "out/D"), "a-T-1")

        world.wait(lambda: len(arrived()) >= sent, 120, "everything at D")
        assert arrived() == list(range(sent))
        through_b = numbers(log_of(world, "d", "out/D"), "b-T-2")
        assert through_b == list(range(len(through_b)))
        assert 0 < len(through_b) <= sent_to_b
        assert Counter(numbers(log_of(world, "c", "out/C2"), "a-T-1")).most_common(1)[0][1] == 1


def test_records_of_a_chain_at_one_site_do_not_touch_the_broker(world: World) -> None:
    upload(world, "jars/test.py", PASS)
    text = listing(world, ("E", "a", "L-1", "a", "L-2"), ("F", "a", "L-2", "a", "L-3"))
    with deployed(world, "local", text):
        device = Device(world, "a", "L-1")
        device.start()
        world.wait(lambda: len(log_of(world, "a", "out/F")) > 100, 60, "records")
        sent = device.stop()
        world.wait(lambda: len(log_of(world, "a", "out/F")) == sent, 60, "all records")
        assert numbers(log_of(world, "a", "out/F"), "a-L-1") == list(range(sent))
        journal = world.folder / "a" / "journal"
        said = b"".join(path.read_bytes() for path in journal.glob("*.seg"))
        assert b"L-1" in said
        assert b"L-2" not in said
        assert b"L-3" in said
