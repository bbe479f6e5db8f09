"""Subscriptions that many gateways share: made once, kept until the last one lets go."""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from fogline.broker import Message, open_broker
from fogline.broker.memory import hub
from fogline.gateway.runtime.intake import GatewayIntake, Target
from fogline.log import SiteLog
from tests.waiting import wait_for

TARGETS = 3
_numbers = itertools.count()


class Shared:
    """An intake for some targets, and the broker's view of it."""

    def __init__(self, folder: Path) -> None:
        self.name = f"intake-{next(_numbers)}"
        self.intake = GatewayIntake(f"memory://{self.name}", "in")
        logs = SiteLog(folder, min_free_bytes=0)
        self.targets = [Target(logs.writer(f"in/{n}"), lambda: True) for n in range(TARGETS)]
        for target in self.targets:
            self.intake.add(target)
        wait_for(lambda: self.intake.state == "running")

    def subscribed(self) -> set[str]:
        return set(hub(self.name)._sessions["in"].filters)

    def close(self) -> None:
        self.intake.close()


wishes = st.lists(
    st.tuples(
        st.integers(0, TARGETS - 1),
        st.frozensets(st.sampled_from(["a", "a/+", "b/#", "c"])),
        st.booleans(),
    ),
    max_size=15,
)


@given(wishes)
def test_the_broker_has_what_somebody_wants(script: list[tuple[int, frozenset[str], bool]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        shared = Shared(Path(folder))
        now: dict[int, frozenset[str]] = {}
        for number, patterns, looked_after in script:
            shared.intake.request(shared.targets[number], patterns)
            now[number] = patterns
            shared.intake.settle()
            wanted = frozenset().union(*now.values())
            assert shared.subscribed() >= wanted
            assert shared.intake.has(wanted)
            if looked_after:
                shared.intake.step()
                assert shared.subscribed() == wanted
        shared.close()


def test_what_one_lets_go_the_other_still_gets(tmp_path: Path) -> None:
    shared = Shared(tmp_path)
    one, other, _ = shared.targets
    shared.intake.request(one, {"d/+"})
    shared.intake.request(other, {"d/+", "e"})
    shared.intake.settle()
    shared.intake.request(one, ())
    shared.intake.step()
    broker = open_broker(f"memory://{shared.name}")
    broker.connect()
    broker.publish([Message("d/1", b"x"), Message("e", b"y")]).wait(10)
    wait_for(lambda: (shared.intake.step(), other.messages == 2)[1])
    assert one.messages == 0
    broker.close()
    shared.close()
