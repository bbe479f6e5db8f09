"""Cutting a byte stream into packets, wherever it is broken."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fogline.broker import Message
from fogline.broker.mqtt.packets import (
    SUBSCRIBE,
    UNSUBSCRIBE,
    MalformedError,
    PacketReader,
    Takers,
    message_packet,
    request_packet,
)

PING = b"\xd0\0"


def length(count: int) -> bytes:
    out = b""
    while True:
        count, low = divmod(count, 128)
        out += bytes([low | (128 if count else 0)])
        if not count:
            return out


def unwanted(what: object, number: object) -> None:
    raise AssertionError(f"{what} was not sent")


NOTHING = Takers(unwanted, unwanted, unwanted)


def encode(message: Message, number: int, is_v5: bool, properties: bytes = b"") -> bytes:
    head = 0x30 | message.dup << 3 | message.qos << 1 | message.retain
    topic = message.topic.encode()
    body = len(topic).to_bytes(2, "big") + topic
    body += number.to_bytes(2, "big") if message.qos else b""
    body += length(len(properties)) + properties if is_v5 else b""
    body += message.payload
    return bytes([head]) + length(len(body)) + body


messages = st.builds(
    Message,
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20),
    st.binary(max_size=300),
    st.integers(0, 1),
    st.booleans(),
    st.booleans(),
)


@given(
    st.lists(messages, max_size=8),
    st.lists(st.integers(1, 200), max_size=50),
    st.booleans(),
    st.binary(max_size=200),
)
def test_any_cut_gives_the_same(
    sent: list[Message], cuts: list[int], is_v5: bool, properties: bytes
) -> None:
    stream = b"".join(encode(m, 7 + i, is_v5, properties) + PING for i, m in enumerate(sent))
    reader = PacketReader(is_v5)
    got: list[tuple[Message, int]] = []
    others = 0
    while stream:
        size = cuts.pop() if cuts else len(stream)
        reader.feed(stream[:size])
        stream = stream[size:]
        while other := reader.read(
            replace(NOTHING, message=lambda message, number: got.append((message, number)))
        ):
            assert other == PING
            others += 1
    assert got == [(m, 7 + i if m.qos else 0) for i, m in enumerate(sent)]
    assert others == len(sent)


def test_a_large_message_says_what_is_missing() -> None:
    reader = PacketReader(True)
    packet = encode(Message("x", b"y" * 1_000_000), 1, True)
    reader.feed(packet[:100])
    assert reader.read(NOTHING) == b""
    assert reader.missing == len(packet) - 100


@pytest.mark.parametrize(
    "data",
    [
        b"\x30\xff\xff\xff\xff\x01",
        b"\x32\x02\xff\xff",
        b"\x32\x03\0\1x",
        b"\x32\x00",
        b"\x40\x01\x05",
        b"\x40\x00",
        b"\x90\x01\x05",
        b"\xb0\x00",
    ],
)
def test_what_is_not_mqtt(data: bytes) -> None:
    reader = PacketReader(False)
    reader.feed(data)
    with pytest.raises(MalformedError):
        reader.read(NOTHING)


def test_a_qos_2_message_is_left_to_the_library() -> None:
    reader = PacketReader(False)
    packet = encode(Message("x", b"1", qos=2), 1, False)
    reader.feed(packet)
    assert reader.read(NOTHING) == packet


@given(messages, st.integers(1, 65535), st.booleans(), st.booleans())
def test_what_is_sent_is_what_is_read(
    message: Message, number: int, is_v5: bool, again: bool
) -> None:
    sent = message._replace(dup=again)
    packet = message_packet(sent, number, is_v5, again)
    assert packet == encode(sent, number, is_v5)


def test_a_message_of_any_length() -> None:
    for size in (0, 1, 117, 118, 200, 16_400, 2_097_200):
        sent = Message("a/topic", b"x" * size)
        assert message_packet(sent, 300, True) == encode(sent, 300, True)


@pytest.mark.parametrize(
    ("data", "is_v5", "reason"),
    [
        (b"\x40\x02\x01\x02", False, 0),
        (b"\x40\x02\x01\x02", True, 0),
        (b"\x40\x03\x01\x02\x10", True, 16),
        (b"\x40\x04\x01\x02\x87\x00", True, 135),
    ],
)
def test_confirmations_are_read(data: bytes, is_v5: bool, reason: int) -> None:
    reader = PacketReader(is_v5)
    reader.feed(data + PING)
    got: list[tuple[int, int]] = []
    takers = replace(NOTHING, confirmation=lambda number, code: got.append((number, code)))
    assert reader.read(takers) == PING
    assert got == [(258, reason)]


@pytest.mark.parametrize(
    ("data", "is_v5", "reasons"),
    [
        (b"\x90\x05\x01\x02\x00\x01\x80", False, b"\x00\x01\x80"),
        (b"\x90\x05\x01\x02\x00\x01\x87", True, b"\x01\x87"),
        (b"\x90\x08\x01\x02\x04abcd\x01", True, b"\x01"),
        (b"\xb0\x02\x01\x02", False, b""),
        (b"\xb0\x05\x01\x02\x00\x00\x11", True, b"\x00\x11"),
    ],
)
def test_answers_to_requests_are_read(data: bytes, is_v5: bool, reasons: bytes) -> None:
    reader = PacketReader(is_v5)
    reader.feed(data + PING)
    got: list[tuple[int, bytes]] = []
    takers = replace(NOTHING, answer=lambda number, codes: got.append((number, codes)))
    assert reader.read(takers) == PING
    assert got == [(258, reasons)]


def test_requests_for_subscriptions() -> None:
    filters = [("a/+", b"\x11"), ("ü", b"\x00")]
    assert request_packet(SUBSCRIBE, filters, 258, True) == (
        b"\x82\x0e\x01\x02\x00\x00\x03a/+\x11\x00\x02\xc3\xbc\x00"
    )
    without = [(pattern, b"") for pattern, _ in filters]
    assert request_packet(UNSUBSCRIBE, without, 1, False) == (
        b"\xa2\x0b\x00\x01\x00\x03a/+\x00\x02\xc3\xbc"
    )
    long = "x" * 65_000
    packet = request_packet(SUBSCRIBE, [(long, b"\0")], 1, True)
    assert packet[1:4] == length(65_000 + 6)
