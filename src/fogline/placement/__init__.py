"""Which node computes what: pure functions of what is to be computed and of the nodes there are."""

from fogline.placement.schedulers import SCHEDULERS, Scheduler, Task, scheduler_named

__all__ = ["SCHEDULERS", "Scheduler", "Task", "scheduler_named"]
