"""Short ways to make chains, jobs and gateways."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from typing import Any

from fogline.gateway.chain import Chain, Results
from fogline.gateway.operators import Message

BASE = 1_767_225_600_000
Records = list[dict[str, Any]]


def message(content: Any, topic: str = "d/1", arrival: int = BASE * 1000) -> Message:
    payload = content if isinstance(content, bytes) else json.dumps(content).encode()
    return Message(topic, payload, arrival)


def run(
    steps: list[dict[str, Any]],
    contents: Iterable[Any],
    flush: bool = True,
    parameters: dict[str, Any] | None = None,
    **given: Any,
) -> tuple[Records, Results]:
    """What a chain makes of messages, as records and in full."""
    options = {"time": "time", "deduplicate": "0"} | given
    chain = Chain(steps, {k: v for k, v in options.items() if v is not None}, parameters or {})
    results = Results()
    for content in contents:
        chain.feed(message(content), results)
    if flush:
        chain.flush(results)
    return [json.loads(payload) for payload in results.out], results


def wait_for(condition: Callable[[], Any], seconds: float = 20.0) -> Any:
    """The condition's value as soon as it is true."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)
    return found
