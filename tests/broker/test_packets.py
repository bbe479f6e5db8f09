"""Cutting a byte stream into packets, wherever it is broken."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fogline.broker import Message
from fogline.broker.packets import MalformedError, PacketReader

PING = b"\xd0\0"


def length(count: int) -> bytes:
    out = b""
    while True:
        count, low = divmod(count, 128)
        out += bytes([low | (128 if count else 0)])
        if not count:
            return out


def encode(message: Message, number: int, modern: bool, properties: bytes = b"") -> bytes:
    head = 0x30 | message.dup << 3 | message.qos << 1 | message.retain
    topic = message.topic.encode()
    body = len(topic).to_bytes(2, "big") + topic
    body += number.to_bytes(2, "big") if message.qos else b""
    body += length(len(properties)) + properties if modern else b""
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
    sent: list[Message], cuts: list[int], modern: bool, properties: bytes
) -> None:
    stream = b"".join(encode(m, 7 + i, modern, properties) + PING for i, m in enumerate(sent))
    reader = PacketReader(modern)
    got: list[tuple[Message, int]] = []
    others = 0
    while stream:
        size = cuts.pop() if cuts else len(stream)
        reader.feed(stream[:size])
        stream = stream[size:]
        while other := reader.read(lambda message, number: got.append((message, number))):
            assert other == PING
            others += 1
    assert got == [(m, 7 + i if m.qos else 0) for i, m in enumerate(sent)]
    assert others == len(sent)


def test_a_large_message_says_what_is_missing() -> None:
    reader = PacketReader(True)
    packet = encode(Message("x", b"y" * 1_000_000), 1, True)
    reader.feed(packet[:100])
    assert reader.read(lambda message, number: None) == b""
    assert reader.missing == len(packet) - 100


@pytest.mark.parametrize(
    "data", [b"\x30\xff\xff\xff\xff\x01", b"\x32\x02\xff\xff", b"\x32\x03\0\1x", b"\x32\x00"]
)
def test_what_is_not_mqtt(data: bytes) -> None:
    reader = PacketReader(False)
    reader.feed(data)
    with pytest.raises(MalformedError):
        reader.read(lambda message, number: None)


def test_a_qos_2_message_is_left_to_the_library() -> None:
    reader = PacketReader(False)
    packet = encode(Message("x", b"1", qos=2), 1, False)
    reader.feed(packet)
    assert reader.read(lambda message, number: None) == packet
