"""`mosquitto_sub` in the background: what a client of somebody else gets."""

from __future__ import annotations

import itertools
import subprocess
from pathlib import Path

from tests.waiting import wait_for

_numbers = itertools.count()


def login(*user: str) -> list[str]:
    """Options of Mosquitto's clients for a name and a password, or for nobody."""
    return ["-u", user[0], "-P", user[1]] if user else []


class Subscriber:
    """Subscribed when it is made; what it got is one line a message, the topic before it."""

    def __init__(self, port: int, folder: Path, *options: str, topic: str = "#") -> None:
        self._output = folder / f"subscriber-{next(_numbers)}.txt"
        command = ["stdbuf", "-oL", "mosquitto_sub", "-p", str(port), "-q", "1", "-t", topic]
        with self._output.open("wb") as output:
            self._process = subprocess.Popen([*command, "-v", "-d", *options], stdout=output)
        wait_for(lambda: "SUBACK" in self.text, 10, "a subscription")

    @property
    def text(self) -> str:
        """All that it said, also about messages as they came."""
        return self._output.read_text(encoding="utf-8", errors="replace")

    def got(self, topic: str, part: str = "") -> bool:
        """Whether there was a message on that topic with this in it."""
        lines = self.text.splitlines()
        return any(line.startswith(f"{topic} ") and part in line for line in lines)

    def close(self) -> None:
        self._process.terminate()
        self._process.wait()
