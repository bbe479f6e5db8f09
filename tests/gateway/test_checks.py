"""What a gateway is asked to run, looked at before anything is done."""

from __future__ import annotations

import pytest

from fogline.gateway import checks
from fogline.gateway.chain import Chain
from fogline.gateway.checks import steps_problem


def test_equal_steps_of_many_jobs_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []

    def counted(*given: object) -> Chain:
        made.append(given)
        return Chain(*given)  # type: ignore[arg-type]

    checks._known_problem.cache_clear()
    monkeypatch.setattr(checks, "Chain", counted)
    right = [{"op": "publish", "rate": 1}]
    for _ in range(5):
        assert steps_problem(right, {"format": "json"}, {}) == ""
        assert "no operator 'fly'" in steps_problem([{"op": "fly"}], {}, {})
    assert len(made) == 2
    assert "rate" in steps_problem(right, {"format": "json"}, {"publish.rate": "often"})


@pytest.mark.parametrize("steps", [[{"op": {1}}], [1], [{"op": "filter", "where": object()}]])
def test_steps_that_cannot_be_read_are_told(steps: list[dict[str, object]]) -> None:
    assert steps_problem(steps, {}, {})
