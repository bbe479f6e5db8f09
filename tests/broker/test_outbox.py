"""What was sent and is not confirmed, over a lost connection."""

from __future__ import annotations

from fogline.broker import Message
from fogline.broker.errors import BrokerRefusedError
from fogline.broker.outbox import Outbox


def sent(*messages: Message) -> Outbox:
    """An outbox whose messages are on their way under the numbers 1, 2, …"""
    outbox = Outbox(100, 1 << 20)
    outbox.put(messages, 0)
    for number in range(1, len(messages) + 1):
        outbox.note_sent(number)
    return outbox


def all_again(outbox: Outbox) -> list[tuple[int, bytes]]:
    found = []
    while (again := outbox.again()) is not None:
        found.append((again[0], again[1].payload))
    return found


def test_nothing_goes_again_while_the_connection_stands() -> None:
    assert all_again(sent(Message("a", b"1"))) == []


def test_unconfirmed_messages_go_again_in_order_under_their_numbers() -> None:
    outbox = sent(*(Message("a", b"%d" % n) for n in range(4)))
    outbox.confirm(2)
    outbox.connection_lost()
    outbox.confirm(3)  # which came late
    assert all_again(outbox) == [(1, b"0"), (4, b"3")]
    outbox.connection_lost()
    assert all_again(outbox) == [(1, b"0"), (4, b"3")]
    assert outbox.unconfirmed == 2


def test_only_qos_1_goes_again() -> None:
    outbox = sent(Message("a", b"1"), Message("a", b"2", qos=2))
    outbox.connection_lost()
    assert all_again(outbox) == [(1, b"1")]
    assert not outbox.is_free(2)


def test_a_message_without_an_answer_is_done_when_it_is_sent() -> None:
    outbox = Outbox(100, 1 << 20)
    delivery = outbox.put([Message("a", b"1", qos=0)], 0)
    outbox.done()
    assert delivery.done
    assert outbox.next() is None


def test_a_refusal_is_told_with_its_message() -> None:
    outbox = Outbox(100, 1 << 20)
    message = Message("a", b"1")
    delivery = outbox.put([message], 0)
    outbox.note_sent(7)
    outbox.confirm(7, BrokerRefusedError("no"))
    assert delivery.done
    assert delivery.refused[0][0] == message
