"""Short ways to make chains, jobs and gateways."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from fogline.gateway.jobs.chain import Chain, Results
from fogline.gateway.operators import ReceivedMessage

BASE = 1_767_225_600_000
Records = list[dict[str, Any]]


def message(content: Any, topic: str = "d/1", arrival: int = BASE * 1000) -> ReceivedMessage:
    payload = content if isinstance(content, bytes) else json.dumps(content).encode()
    return ReceivedMessage(topic, payload, arrival)


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
