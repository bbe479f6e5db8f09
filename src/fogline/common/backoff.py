"""How long to wait before the next attempt: the one rule for everything that is tried again."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

FIRST_SECONDS, LONGEST_SECONDS = 0.5, 30.0


def wait_seconds(
    seed: str, attempts: int, first: float = FIRST_SECONDS, longest: float = LONGEST_SECONDS
) -> float:
    """After so many attempts before; the same for the same seed. For decisions that are replayed,
    which keep the number of attempts themselves."""
    return Backoff(first, longest, attempts, random.Random(f"{seed}/{attempts}")).next()


@dataclass(slots=True)
class Backoff:
    """Doubles from `first` to `longest` seconds, and takes off up to half at random.

    The randomness keeps the clients of a broker that restarts from coming back all at once.
    """

    first: float = FIRST_SECONDS
    longest: float = LONGEST_SECONDS
    attempts: int = 0
    source: random.Random = field(default_factory=random.Random)

    def next(self) -> float:
        whole = min(self.longest, self.first * (1 << min(self.attempts, 30)))
        self.attempts += 1
        return whole * (1 - self.source.random() / 2)

    def reset(self) -> None:
        self.attempts = 0
