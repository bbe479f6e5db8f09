"""Subscriptions of the ingest process at brokers that have no journal here."""

from __future__ import annotations

import threading
from dataclasses import replace

from fogline.agent.broker.connections import broker_options, connect
from fogline.agent.contracts.ingest import IngestConfig, Subscription
from fogline.agent.ingest.intake import SubscriptionIntake
from fogline.broker import BrokerClosedError, open_broker
from fogline.links.inlet import BadLinks
from fogline.log import SiteLog


class ForeignSubscription:
    """One of them: its connection and its thread."""

    def __init__(
        self, subscription: Subscription, config: IngestConfig, logs: SiteLog, bad: BadLinks
    ) -> None:
        client = f"{config.client}-{subscription.log}"
        options = broker_options(client, config.tls, persistent=True)
        options = replace(options, retained_once=True)
        self._broker = open_broker(subscription.broker, options)
        self.intake = SubscriptionIntake(subscription, self._broker, logs, bad)
        self._stop = threading.Event()
        self._given_up = False
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def holds_up(self) -> bool:
        """Whether something could still be missed that is sent to this site."""
        return self.intake.subscription.own and not self.intake.subscribed

    def check(self) -> None:
        """Raises what has ended the thread."""
        if self._error is not None:
            raise self._error

    def end(self, for_good: bool) -> bool:
        """Ends it while the process goes on; whether that is done."""
        self._given_up = for_good
        self._stop.set()
        if not self.intake.subscribed:
            self._broker.close(timeout=0)
        return not self._thread.is_alive()

    def stop(self, seconds: float) -> None:
        """Ends it for now, in that time if possible: the broker goes on collecting for us."""
        self._stop.set()
        self._thread.join(seconds)

    def _run(self) -> None:
        try:
            if connect(self._broker, self._stop, self._set_state):
                self.intake.run(self._stop)
                if self._given_up:
                    self.intake.unsubscribe()
        except BrokerClosedError:
            return
        except Exception as error:
            self._error = error
        finally:
            self.intake.close()
            self._broker.close()

    def _set_state(self, text: str) -> None:
        self.intake.state = text
