"""Subscriptions that wait for their answers."""

from __future__ import annotations

import pytest

from fogline.broker.errors import BrokerError, BrokerTimeoutError
from fogline.broker.mqtt.requests import MOST_FILTERS, Request, Subscriptions


def asked(subscriptions: Subscriptions, *requests: Request) -> list[list[Request]]:
    subscriptions.ask(requests)
    return subscriptions.take_unsent()


def test_filters_share_packets_in_their_order_and_of_one_kind() -> None:
    subscribes = [Request(f"a/{number}", 1) for number in range(MOST_FILTERS + 1)]
    opposite, last = Request("a/0", None), Request("a/0", 1)
    groups = asked(Subscriptions(), *subscribes, opposite, last)
    assert groups == [subscribes[:MOST_FILTERS], subscribes[MOST_FILTERS:], [opposite], [last]]


def test_each_of_a_packet_gets_its_own_answer() -> None:
    subscriptions = Subscriptions()
    good, bad, silent = (Request(name, 1) for name in ("good", "bad", "silent"))
    (group,) = asked(subscriptions, good, bad, silent)
    subscriptions.note_sent(7, group)
    subscriptions.answer(7, [None, BrokerError("not for you")])
    good.wait(0, 0)
    silent.wait(0, 0)
    with pytest.raises(BrokerError, match="not for you"):
        bad.wait(0, 0)
    subscriptions.restore(session_present=False)
    assert [r.pattern for group in subscriptions.take_unsent() for r in group] == ["good", "silent"]


def test_what_got_no_answer_is_asked_again_after_a_lost_connection() -> None:
    subscriptions = Subscriptions()
    (group,) = asked(subscriptions, Request("a", 1), Request("b", 1))
    subscriptions.note_sent(1, group)
    with pytest.raises(BrokerTimeoutError):
        group[0].wait(0, 0)
    subscriptions.restore(session_present=True)
    assert subscriptions.take_unsent() == [group]
