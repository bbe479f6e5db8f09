"""The ingest process: every subscription of the site into its log."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Any

from fogline.agent.brokers import broker_options, connect
from fogline.agent.children import child_config, parent_gone, tell
from fogline.agent.intake import Intake, Subscription
from fogline.errors import FoglineError
from fogline.log import SiteLog

_STATUS_SECONDS = 0.5


def main() -> None:
    config = child_config()
    gone = parent_gone()
    logs = SiteLog(Path(config["logs"]), min_free_bytes=config["min_free_bytes"])
    try:
        intakes = [_open(item, config, logs, gone) for item in config["subscriptions"]]
    except FoglineError as error:
        sys.exit(f"ingest: {error}")
    threads = [threading.Thread(target=i.run, args=(gone,), daemon=True) for i in intakes if i]
    for thread in threads:
        thread.start()
    while not gone.wait(_STATUS_SECONDS) and all(t.is_alive() for t in threads):
        tell(_status([i for i in intakes if i]))
    if not gone.is_set():
        sys.exit("ingest: a subscription ended")
    for thread in threads:
        thread.join(5)


def _open(
    item: dict[str, Any], config: dict[str, Any], logs: SiteLog, gone: threading.Event
) -> Intake | None:
    """Waits for the broker; nothing when it is to end before that."""
    subscription = Subscription(**item)
    client = f"{config['client']}-{subscription.log}"
    options = broker_options(client, config["tls"], persistent=True)
    broker = connect(subscription.broker, options, gone)
    return None if broker is None else Intake(subscription, broker, logs)


def _status(intakes: list[Intake]) -> dict[str, Any]:
    states = [i.state for i in intakes]
    unwell = [s for s in states if s != "running"]
    return {
        "state": unwell[0] if unwell else "running",
        "subscriptions": [
            {
                "pattern": i.subscription.pattern,
                "log": i.subscription.log,
                "state": i.state,
                "messages": i.messages,
                "repeated": i.repeated,
                "bytes": i.bytes,
            }
            for i in intakes
        ],
    }


if __name__ == "__main__":
    main()
