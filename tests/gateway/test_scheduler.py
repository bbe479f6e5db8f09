"""The scheduler: many tasks, few awakenings."""

from __future__ import annotations

import pytest

from fogline.gateway.runtime.scheduler import StepScheduler


def idle() -> bool:
    return False


@pytest.fixture
def scheduler(monkeypatch: pytest.MonkeyPatch) -> StepScheduler:
    """One that is not started, and in which nobody may wait."""
    made = StepScheduler()

    def wait(seconds: float | None) -> None:
        raise AssertionError(f"waits {seconds} s")

    monkeypatch.setattr(made._changed, "wait", wait)
    return made


def test_a_task_comes_a_little_early_rather_than_alone(scheduler: StepScheduler) -> None:
    scheduler.add(idle)
    task = scheduler._next()
    assert task is not None
    task.pause = 1000.0
    with scheduler._changed:
        scheduler._push(task, 100.0)
    assert scheduler._next() is task
    with scheduler._changed:
        scheduler._push(task, 200.0)
    with pytest.raises(AssertionError, match="waits"):
        scheduler._next()


def test_who_waits_is_woken_only_for_what_comes_first(
    scheduler: StepScheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    woken: list[int] = []
    monkeypatch.setattr(scheduler._changed, "notify", lambda: woken.append(1))
    scheduler.add(idle)
    task = scheduler._next()
    assert task is not None
    woken.clear()
    for pause, times in ((50.0, 1), (60.0, 1), (70.0, 1), (10.0, 2)):
        with scheduler._changed:
            scheduler._push(task, pause)
        assert len(woken) == times
