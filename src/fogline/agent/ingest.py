"""The ingest process: every subscription of the site into its log.

What comes through the site's own broker is read from that broker's journal, in one thread; every
subscription at another broker has a connection and a thread of its own.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Any

from fogline.agent.brokers import broker_options, connect
from fogline.agent.children import Parent, tell
from fogline.agent.intake import Intake, Subscription
from fogline.agent.journal_intake import JournalIntake, Target
from fogline.errors import FoglineError
from fogline.log import SiteLog

_STATUS_SECONDS = 0.5


def main() -> None:
    parent = Parent()
    config, gone = parent.config, parent.gone
    logs = SiteLog(Path(config["logs"]), min_free_bytes=config["min_free_bytes"])
    try:
        journal = _open_journal(config, logs)
        opened = [_open(item, config, logs, gone) for item in config["subscriptions"]]
    except FoglineError as error:
        sys.exit(f"ingest: {error}")
    intakes = [intake for intake in opened if intake is not None]
    runs = [intake.run for intake in intakes] + ([journal.run] if journal else [])
    threads = [threading.Thread(target=run, args=(gone,), daemon=True) for run in runs]
    for thread in threads:
        thread.start()
    while not gone.wait(_STATUS_SECONDS) and all(t.is_alive() for t in threads):
        tell(_status([*(journal.targets if journal else []), *intakes]))
    if not gone.is_set():
        sys.exit("ingest: a subscription ended")
    for thread in threads:
        thread.join(5)


def _open_journal(config: dict[str, Any], logs: SiteLog) -> JournalIntake | None:
    """All subscriptions at the site's own broker, which are those that name none."""
    if not config.get("journal"):
        return None
    own = [Subscription(**item) for item in config["subscriptions"] if not item["broker"]]
    return JournalIntake(Path(config["journal"]), own, logs)


def _open(
    item: dict[str, Any], config: dict[str, Any], logs: SiteLog, gone: threading.Event
) -> Intake | None:
    """Waits for the broker; nothing when it is to end before that, or the journal has it all."""
    subscription = Subscription(**item)
    if config.get("journal") and not subscription.broker:
        return None
    client = f"{config['client']}-{subscription.log}"
    options = broker_options(client, config["tls"], persistent=True)
    broker = connect(subscription.broker, options, gone)
    return None if broker is None else Intake(subscription, broker, logs)


def _status(intakes: list[Intake | Target]) -> dict[str, Any]:
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
