"""What every broker must do; the same tests for all of them."""

from __future__ import annotations

import threading
import time

import pytest

from fogline.broker import (
    BrokerClosedError,
    BrokerError,
    BrokerTimeoutError,
    BrokerUnreachableError,
    Message,
    TopicError,
)
from tests.broker.worlds import MqttWorld, World, eventually, numbered, payloads, receive, send


def test_messages_arrive_in_order_and_whole(world: World) -> None:
    reader, writer = world.open("reader"), world.open("writer")
    reader.subscribe("plant/#")
    sent = numbered("plant/a", 3000)
    writer.publish(sent).wait(15)
    assert receive(reader, 3000) == sent


def test_a_batch_is_at_most_as_large_as_asked(world: World) -> None:
    reader = world.open("reader")
    reader.subscribe("x")
    send(reader, *numbered("x", 10))
    sizes: list[int] = []
    while sum(sizes) < 10:
        batch = reader.receive(max_messages=3, timeout=5)
        sizes.append(len(batch))
        reader.acknowledge(batch)
    assert max(sizes) <= 3


def test_several_filters_together(world: World) -> None:
    reader = world.open("reader")
    patterns = [f"plant/{number}" for number in range(300)]
    reader.subscribe(patterns)
    send(reader, *(Message(pattern, b"1") for pattern in patterns))
    assert {message.topic for message in receive(reader, 300)} == set(patterns)
    reader.unsubscribe(patterns[1:])
    send(reader, Message("plant/7", b"2"), Message("plant/0", b"3"))
    assert payloads(receive(reader, 1)) == [b"3"]
    with pytest.raises(TopicError):
        reader.subscribe(["fine", "a#"])


def test_an_empty_batch_when_nothing_comes(world: World) -> None:
    reader = world.open("reader")
    reader.subscribe("x")
    started = time.monotonic()
    batch = reader.receive(timeout=0.1)
    assert not len(batch)
    assert time.monotonic() - started >= 0.1
    reader.acknowledge(batch)


def test_what_is_not_acknowledged_comes_again_and_is_marked(world: World) -> None:
    reader = world.open("reader", persistent=True)
    reader.subscribe("x")
    send(world.open("writer"), *numbered("x", 5))
    first = receive(reader, 5, acknowledge=False)
    assert not any(message.dup for message in first)
    reader.close()
    again = receive(world.open("reader", persistent=True), 5)
    assert payloads(again) == payloads(first)
    assert all(message.dup for message in again)


def test_what_is_acknowledged_does_not_come_again(world: World) -> None:
    reader = world.open("reader", persistent=True)
    reader.subscribe("x")
    send(world.open("writer"), *numbered("x", 10))
    first = reader.receive(max_messages=4, timeout=5)
    reader.acknowledge(first)
    rest = receive(reader, 10 - len(first), acknowledge=False)
    reader.close()
    again = receive(world.open("reader", persistent=True), len(rest))
    assert payloads(again) == payloads(rest)


def test_a_lost_connection_brings_unacknowledged_messages_again(world: World) -> None:
    reader = world.open("reader", persistent=True)
    reader.subscribe("x")
    writer = world.open("writer")
    send(writer, *numbered("x", 5))
    batch = reader.receive(timeout=5)
    while len(batch) < 5:
        batch.messages.extend(reader.receive(timeout=5))
    world.cut(reader)
    reader.acknowledge(batch)
    again = receive(reader, 5)
    assert payloads(again) == payloads(batch.messages)
    assert all(message.dup for message in again)
    send(writer, *numbered("x", 2, start=5))
    assert payloads(receive(reader, 2)) == [b"5", b"6"]


def test_what_waited_here_when_the_connection_broke_is_kept(world: World) -> None:
    reader = world.open("reader", persistent=True)
    reader.subscribe("x")
    writer = world.open("writer")
    send(writer, *numbered("x", 50))
    world.cut(reader)
    send(writer, Message("x", b"last"))
    got: list[Message] = []
    while not got or got[-1].payload != b"last":
        got += receive(reader, 1)
    assert list(dict.fromkeys(payloads(got))) == [*[b"%d" % i for i in range(50)], b"last"]
    fresh = payloads([message for message in got if not message.dup])
    assert len(fresh) == len(set(fresh))


def test_subscriptions_return_when_the_session_is_lost(world: World) -> None:
    reader, writer = world.open("reader"), world.open("writer")
    reader.subscribe("x")
    world.cut(reader)
    eventually(lambda: reader.connected)
    reader.subscribe("behind")  # answered behind the subscriptions that were repeated
    send(writer, Message("x", b"after"))
    assert payloads(receive(reader, 1)) == [b"after"]


def test_a_persistent_session_collects_while_away(world: World) -> None:
    reader = world.open("reader", persistent=True)
    reader.subscribe("x/+")
    reader.close()
    send(world.open("writer"), *numbered("x/1", 500))
    back = world.open("reader", persistent=True)
    assert payloads(receive(back, 500)) == [b"%d" % i for i in range(500)]


def test_a_session_that_is_not_persistent_collects_nothing(world: World) -> None:
    reader = world.open("reader")
    reader.subscribe("x")
    reader.close()
    send(world.open("writer"), Message("x", b"missed"))
    back = world.open("reader")
    back.subscribe("x")
    send(back, Message("x", b"seen"))
    assert payloads(receive(back, 1)) == [b"seen"]


@pytest.mark.parametrize(
    ("pattern", "takes", "leaves"),
    [
        ("a/+/c", ["a/b/c", "a//c"], ["a/b", "a/b/c/d", "b/b/c"]),
        ("a/#", ["a", "a/b", "a/b/c"], ["b", "ab/c"]),
        ("#", ["a", "a/b", "/a"], ["$hidden/a"]),
        ("+", ["a", "ü b"], ["/a", "a/b", "$hidden"]),
        ("$hidden/#", ["$hidden/a"], ["hidden/a"]),
        ("+/+", ["/a", "a/b"], ["a"]),
    ],
)
def test_wildcards(world: World, pattern: str, takes: list[str], leaves: list[str]) -> None:
    reader, writer = world.open("reader"), world.open("writer")
    reader.subscribe(pattern)
    send(writer, *[Message(topic, b"x") for topic in [*leaves, *takes]])
    assert [message.topic for message in receive(reader, len(takes))] == takes


@pytest.mark.parametrize(
    "topic", ["ünï/ço∂é/😀", "with space/ and more ", "/leading", "a//b", "$odd/one", "a/b/"]
)
def test_odd_topics(world: World, topic: str) -> None:
    reader = world.open("reader")
    reader.subscribe(topic)
    send(reader, Message(topic, "ü\0".encode()))
    assert receive(reader, 1) == [Message(topic, "ü\0".encode())]


@pytest.mark.parametrize("topic", ["", "a/+", "#", "a\0b", "x" * 65536, "\ud800"])
def test_topics_nobody_can_publish_to(world: World, topic: str) -> None:
    with pytest.raises(TopicError):
        world.open().publish([Message("fine", b""), Message(topic, b"")])


@pytest.mark.parametrize(
    "pattern", ["", "a/#/b", "a#", "a/b+", "$share/", "$share/g", "$share//x", "$share/g+/x", "\0"]
)
def test_filters_nobody_can_subscribe_to(world: World, pattern: str) -> None:
    with pytest.raises(TopicError):
        world.open().subscribe(pattern)


def test_a_qos_that_does_not_exist(world: World) -> None:
    with pytest.raises(BrokerError, match="QoS"):
        world.open().publish([Message("x", b"", qos=3)])


def test_shared_subscriptions_split_the_load(world: World) -> None:
    readers = [world.open(f"reader{i}") for i in range(2)]
    for reader in readers:
        reader.subscribe("$share/team/job/#")
    everything = world.open("other")
    everything.subscribe("job/#")
    send(world.open("writer"), *numbered("job/1", 100))
    assert len(receive(everything, 100)) == 100
    parts: list[list[bytes]] = [[], []]

    def collect() -> bool:
        for reader, part in zip(readers, parts, strict=True):
            batch = reader.receive(timeout=0.05)
            part += payloads(batch.messages)
            reader.acknowledge(batch)
        return len(parts[0]) + len(parts[1]) >= 100

    eventually(collect)
    assert sorted(parts[0] + parts[1], key=int) == [b"%d" % i for i in range(100)]
    assert min(len(part) for part in parts) >= 20


def test_retained_messages_greet_new_subscribers(world: World) -> None:
    writer = world.open("writer")
    send(writer, Message("state/a", b"old", retain=True), Message("state/a", b"new", retain=True))
    send(writer, Message("state/b", b"gone", retain=True), Message("state/b", b"", retain=True))
    reader = world.open("reader")
    reader.subscribe("state/#")
    assert receive(reader, 1) == [Message("state/a", b"new", retain=True)]
    send(writer, Message("state/a", b"live", retain=True))
    assert receive(reader, 1) == [Message("state/a", b"live")]


def test_retained_messages_greet_a_subscription_once_where_that_is_asked_for(world: World) -> None:
    """MQTT 3.1.1 has no way to ask."""
    again = isinstance(world, MqttWorld) and world.protocol == 4
    send(world.open("writer"), Message("state/a", b"1", retain=True))
    for known in (False, True):
        reader = world.open("reader", persistent=True, retained_once=True)
        reader.subscribe("state/#")
        send(world.open("other"), Message("state/b", b"2"))
        expected = [b"1", b"2"] if again or not known else [b"2"]
        assert payloads(receive(reader, len(expected))) == expected
        reader.close()


def test_the_last_will_is_published_for_who_vanishes(world: World) -> None:
    watcher = world.open("watcher")
    watcher.subscribe("state/+")
    device = world.open("device", will=Message("state/device", b"gone"))
    world.cut(device)
    assert receive(watcher, 1) == [Message("state/device", b"gone")]


def test_the_last_will_is_not_published_for_who_closes(world: World) -> None:
    watcher = world.open("watcher")
    watcher.subscribe("state/+")
    world.open("device", will=Message("state/device", b"gone")).close()
    send(watcher, Message("state/other", b"next"))
    assert payloads(receive(watcher, 1)) == [b"next"]


def test_a_huge_payload(world: World) -> None:
    reader, writer = world.open("reader"), world.open("writer")
    reader.subscribe("x")
    large = bytes(range(256)) * 40_000
    send(writer, Message("x", b"before"), Message("x", large), Message("x", b""))
    assert payloads(receive(reader, 3)) == [b"before", large, b""]


def test_every_qos_can_be_published(world: World) -> None:
    reader, writer = world.open("reader"), world.open("writer")
    reader.subscribe("x", qos=2)
    send(writer, *[Message("x", b"%d" % qos, qos) for qos in (0, 1, 2)])
    assert [message.qos for message in receive(reader, 3)] == [0, 1, 1]


def test_a_subscription_with_qos_0_delivers_without_acknowledgement(world: World) -> None:
    reader = world.open("reader", persistent=True)
    reader.subscribe("x", qos=0)
    send(world.open("writer"), *numbered("x", 10))
    batch = receive(reader, 10, acknowledge=False)
    assert [message.qos for message in batch] == [0] * 10


def test_unsubscribing_ends_the_flow(world: World) -> None:
    reader = world.open("reader")
    reader.subscribe("x")
    reader.subscribe("y")
    reader.unsubscribe("x")
    send(reader, Message("x", b"no"), Message("y", b"yes"))
    assert payloads(receive(reader, 1)) == [b"yes"]


def test_confirmations(world: World) -> None:
    writer = world.open("writer")
    delivery = writer.publish(numbered("x", 2000))
    delivery.wait(15)
    assert delivery.done
    assert writer.publish([]).done


def test_publishing_while_the_broker_is_down_resumes(world: World) -> None:
    reader = world.open("reader", persistent=True)
    writer = world.open("writer", persistent=True)
    reader.subscribe("x")
    world.stop()
    eventually(lambda: not writer.connected)
    assert writer.problem
    deliveries = [writer.publish(numbered("x", 10, start)) for start in (0, 10)]
    with pytest.raises(BrokerTimeoutError):
        deliveries[0].wait(0.05)
    assert not len(reader.receive(timeout=0.05))
    world.start()
    for delivery in deliveries:
        delivery.wait(15)
    got = payloads(receive(reader, 20))
    assert list(dict.fromkeys(got)) == [b"%d" % i for i in range(20)]
    assert writer.problem == ""


def test_publishing_is_bounded_while_the_broker_is_down(world: World) -> None:
    writer = world.open("writer", queue_messages=10)
    world.stop()
    eventually(lambda: not writer.connected)
    first = writer.publish(numbered("x", 10))
    with pytest.raises(BrokerTimeoutError, match="nothing was taken"):
        writer.publish(numbered("x", 1), timeout=0.05)
    world.start()
    first.wait(15)
    send(writer, *numbered("x", 1))


def test_connecting_to_a_broker_that_is_down(world: World) -> None:
    world.open().close()
    world.stop()
    broker = world.make()
    with pytest.raises(BrokerUnreachableError):
        broker.connect(timeout=2)
    world.start()
    broker.connect()
    assert broker.connected


def test_subscribing_while_the_broker_is_down_holds_later(world: World) -> None:
    reader = world.open("reader")
    world.stop()
    eventually(lambda: not reader.connected)
    with pytest.raises(BrokerTimeoutError):
        reader.subscribe("x", timeout=0.05)
    world.start()
    eventually(lambda: reader.connected)
    reader.subscribe("y")
    send(reader, Message("x", b"1"))
    assert payloads(receive(reader, 1)) == [b"1"]


def test_closing_ends_a_waiting_receive(world: World) -> None:
    reader = world.open("reader")
    ended = threading.Event()

    def wait() -> None:
        with pytest.raises(BrokerClosedError):
            reader.receive(timeout=30)
        ended.set()

    thread = threading.Thread(target=wait)
    thread.start()
    reader.close()
    assert ended.wait(5)
    thread.join()


def test_a_closed_broker_says_so(world: World) -> None:
    broker = world.open("reader")
    batch = broker.receive(timeout=0)
    broker.close()
    broker.close()
    for call in (
        broker.connect,
        broker.receive,
        lambda: broker.subscribe("x"),
        lambda: broker.publish([Message("x", b"")]),
        lambda: broker.acknowledge(batch),
    ):
        with pytest.raises(BrokerClosedError):
            call()
    assert not broker.connected


def test_closing_ends_a_waiting_ticket(world: World) -> None:
    writer = world.open("writer")
    world.stop()
    eventually(lambda: not writer.connected)
    delivery = writer.publish([Message("x", b"")])
    writer.close()
    with pytest.raises(BrokerClosedError):
        delivery.wait(5)


def test_who_does_not_receive_holds_a_bounded_amount(world: World) -> None:
    reader = world.open("reader", queue_messages=100, receive_maximum=50, persistent=True)
    reader.subscribe("x")
    writer = world.open("writer")
    writer.publish(numbered("x", 2000)).wait(15)
    got: list[bytes] = []

    def next_batch() -> bool:
        batch = reader.receive(max_messages=1000, timeout=0.1)
        got.extend(payloads(batch.messages))
        assert len(batch) <= 100 + 5000
        reader.acknowledge(batch)
        return len(got) >= 2000

    eventually(next_batch)
    assert got == [b"%d" % i for i in range(2000)]


def test_many_threads_publish_at_once(world: World) -> None:
    reader, writer = world.open("reader"), world.open("writer")
    reader.subscribe("t/#")

    def work(name: int) -> None:
        for start in range(0, 200, 20):
            writer.publish(numbered(f"t/{name}", 20, start)).wait(15)

    threads = [threading.Thread(target=work, args=[i]) for i in range(4)]
    for thread in threads:
        thread.start()
    got = receive(reader, 800)
    for thread in threads:
        thread.join()
    for name in range(4):
        mine = [m.payload for m in got if m.topic == f"t/{name}"]
        assert mine == [b"%d" % i for i in range(200)]
