"""How long to wait before the next attempt to connect."""

from __future__ import annotations

import random
from dataclasses import dataclass, field


@dataclass(slots=True)
class Backoff:
    """Doubles from `first` to `longest` seconds, and takes off up to half at random.

    The randomness keeps the clients of a broker that restarts from coming back all at once.
    """

    first: float = 0.1
    longest: float = 30.0
    attempts: int = 0
    source: random.Random = field(default_factory=random.Random)

    def next(self) -> float:
        whole = min(self.longest, self.first * (1 << min(self.attempts, 30)))
        self.attempts += 1
        return whole * (1 - self.source.random() / 2)

    def reset(self) -> None:
        self.attempts = 0
