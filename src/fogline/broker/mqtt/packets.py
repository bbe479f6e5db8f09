"""MQTT packets that come in great numbers: messages, the confirmations of those with QoS 1, and
requests for subscriptions with their answers.

The client library needs 50 µs and a dozen objects for a message, a confirmation or a filter; here
it is a few slices. All other packets are left to the library. Does no I/O.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from fogline.broker.interface import Message

PUBLISH = 0x30
PUBACK = 0x40
SUBSCRIBE, SUBACK = 0x82, 0x90
UNSUBSCRIBE, UNSUBACK = 0xA2, 0xB0
RETAINED_ONCE = 0x10
"""Of a filter, in MQTT 5: retained messages come only if it was not subscribed before."""
MOST_TOPICS = 10_000
LONGEST_LENGTH = 4

Take = Callable[[Message, int], None]
Confirm = Callable[[int, int], None]
"""Of a message that was sent: its packet id, and the broker's reason (0: taken)."""
AnswerPacket = Callable[[int, bytes], None]
"""Of a request for subscriptions: its packet id, and the broker's reason for each filter, or none
where MQTT 3.1.1 has none."""


@dataclass(frozen=True, slots=True)
class Takers:
    """Who gets what is read."""

    message: Take
    confirmation: Confirm
    answer: AnswerPacket


class MalformedError(Exception):
    """What came is not MQTT."""


class PacketReader:
    """Feed it bytes in any pieces; `read` hands on what is whole, in order."""

    def __init__(self, is_v5: bool) -> None:
        self._is_v5 = is_v5
        self._buffer = b""
        self._pieces: list[bytes] = []
        self._topics: dict[bytes, str] = {}
        self.missing = 0
        """Bytes known to be needed before another packet is whole."""

    def feed(self, data: bytes) -> None:
        """Pieces of a large packet are joined once, when it is whole."""
        self._pieces.append(data)
        self.missing -= len(data)
        if self.missing <= 0:
            self._buffer = b"".join([self._buffer, *self._pieces])
            self._pieces.clear()

    def read(self, takers: Takers) -> bytes:
        """Hands on messages (QoS 0 and 1), confirmations and answers up to the first other packet,
        and returns that.

        Returns nothing when no packet is whole any more. Raises `MalformedError`.
        """
        if self._pieces:
            return b""
        buffer, start, other = self._buffer, 0, b""
        try:
            while (body := self._body(buffer, start)) is not None:
                begin, end = body
                head = buffer[start]
                if head == PUBACK:
                    self._confirmation(buffer, begin, end, takers.confirmation)
                elif head in (SUBACK, UNSUBACK):
                    self._answer(buffer, begin, end, takers.answer)
                elif head & 0xF0 != PUBLISH or head & 4:
                    start, other = end, buffer[start:end]
                    break
                else:
                    self._message(buffer, head, begin, end, takers.message)
                start = end
        except IndexError as error:
            raise MalformedError("a message ends before its fields do") from error
        self._buffer = buffer[start:]
        return other

    def _body(self, buffer: bytes, start: int) -> tuple[int, int] | None:
        """Where the packet's body begins and ends, when all of it is there."""
        at, length, shift = start + 1, 0, 0
        while at < len(buffer):
            byte = buffer[at]
            length |= (byte & 127) << shift
            shift, at = shift + 7, at + 1
            if byte < 128:
                self.missing = at + length - len(buffer)
                return None if self.missing > 0 else (at, at + length)
            if at - start > LONGEST_LENGTH:
                raise MalformedError("a packet's length has more than four bytes")
        self.missing = 1
        return None

    def _confirmation(self, buffer: bytes, begin: int, end: int, confirm: Confirm) -> None:
        """A reason follows the packet id only in MQTT 5, and only where it is not 0."""
        if end < begin + 2:
            raise MalformedError("an acknowledgement without a packet id")
        reason = buffer[begin + 2] if self._is_v5 and end > begin + 2 else 0
        confirm(buffer[begin] << 8 | buffer[begin + 1], reason)

    def _answer(self, buffer: bytes, begin: int, end: int, answer: AnswerPacket) -> None:
        at = _behind_properties(buffer, begin + 2) if self._is_v5 else begin + 2
        if at > end:
            raise MalformedError("an answer ends before its fields do")
        answer(buffer[begin] << 8 | buffer[begin + 1], buffer[at:end])

    def _message(self, buffer: bytes, head: int, begin: int, end: int, take: Take) -> None:
        at = begin + 2 + (buffer[begin] << 8 | buffer[begin + 1])
        topic = buffer[begin + 2 : at]
        packet_id = 0
        if head & 2:
            packet_id = buffer[at] << 8 | buffer[at + 1]
            at += 2
        if self._is_v5:
            at = _behind_properties(buffer, at)
        if at > end:
            raise MalformedError("a message ends before its fields do")
        text = self._topics.get(topic) or self._decode(topic)
        qos, retain, dup = head >> 1 & 1, head & 1 == 1, head & 8 == 8
        take(Message(text, buffer[at:end], qos, retain, dup), packet_id)

    def _decode(self, topic: bytes) -> str:
        """Topics repeat, so their text is kept; one that is not UTF-8 is no reason to stop."""
        if len(self._topics) >= MOST_TOPICS:
            self._topics.clear()
        text = self._topics[topic] = topic.decode(errors="replace")
        return text


def _behind_properties(buffer: bytes, at: int) -> int:
    """They hold nothing Fogline uses; topic aliases come only to clients that offer them."""
    length = shift = 0
    while True:
        byte = buffer[at]
        at += 1
        length |= (byte & 127) << shift
        if byte < 128:
            return at + length
        shift += 7


def message_packet(message: Message, packet_id: int, is_v5: bool, again: bool = False) -> bytes:
    """A message of QoS 0 or 1 on its way to the broker; `again` when it was sent before."""
    topic = message.topic.encode()
    head = PUBLISH | message.qos << 1 | (8 if again else 0) | (1 if message.retain else 0)
    fixed = b"%c%c%b" % (len(topic) >> 8, len(topic) & 255, topic)
    if message.qos:
        fixed += b"%c%c" % (packet_id >> 8, packet_id & 255)
    if is_v5:
        fixed += b"\0"  # no properties
    return b"%c%b%b%b" % (head, _length(len(fixed) + len(message.payload)), fixed, message.payload)


def request_packet(
    head: int, filters: Iterable[tuple[str, bytes]], packet_id: int, is_v5: bool
) -> bytes:
    """`SUBSCRIBE`, each filter with its options, or `UNSUBSCRIBE`, without any."""
    body = b"%c%c%b" % (packet_id >> 8, packet_id & 255, b"\0" if is_v5 else b"")
    for pattern, options in filters:
        text = pattern.encode()
        body += b"%c%c%b%b" % (len(text) >> 8, len(text) & 255, text, options)
    return b"%c%b%b" % (head, _length(len(body)), body)


def _length(count: int) -> bytes:
    out = bytearray()
    while count > 127:
        out.append(count & 127 | 128)
        count >>= 7
    out.append(count)
    return bytes(out)
