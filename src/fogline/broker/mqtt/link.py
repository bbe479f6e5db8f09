"""The network thread of an MQTT connection: connects, moves packets, reconnects.

Messages of QoS 0 and 1 are written, confirmed and sent again here, and subscriptions asked for; all
else is the library's. Only this thread touches it. It takes from the queues what other threads left
there, so packets and acknowledgements go out in bulk and order is kept over reconnects; and it
stops reading while the inbox is full, so memory stays bounded whatever the broker sends.
"""

from __future__ import annotations

import select
import struct
import threading
import time
from typing import Any

from paho.mqtt.client import ConnectFlags, DisconnectFlags, MQTTMessage
from paho.mqtt.enums import MQTTErrorCode
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.reasoncodes import ReasonCode

from fogline.broker.errors import BrokerError, BrokerUnreachableError
from fogline.broker.interface import Message
from fogline.broker.mqtt import failures
from fogline.broker.mqtt.buffered import BufferedSocket
from fogline.broker.mqtt.packets import (
    PUBACK,
    RETAINED_ONCE,
    SUBSCRIBE,
    UNSUBSCRIBE,
    Takers,
    message_packet,
    request_packet,
)
from fogline.broker.mqtt.paho_client import make_client
from fogline.broker.mqtt.queues import Queues, Waker
from fogline.broker.mqtt.requests import Request
from fogline.broker.options import BrokerOptions
from fogline.common.backoff import Backoff
from fogline.model.broker_url import BrokerUrl

PINGREQ = b"\xc0\0"
CHECK_SECONDS = 5.0
CONNECT_CHECK_SECONDS = 0.1
STEADY_SECONDS = 1.0
CONFIRM_SECONDS = 0.0015
"""Brokers confirm messages one by one: so much later there are more of them to read at once, if
nothing waits for them."""
MOST_UNCONFIRMED = 65535


class MqttLink:
    """One try to connect and, once that worked, reconnecting until `stop`."""

    def __init__(
        self, url: BrokerUrl, options: BrokerOptions, queues: Queues, timeout: float
    ) -> None:
        self.answered = threading.Event()
        """The first attempt is over: `connected`, or `problem` says why not."""
        self.connected = False
        self.problem: BrokerError = BrokerUnreachableError("not connected yet")
        self._url = url
        self._queues = queues
        self._timeout = timeout
        self._most_unconfirmed = self._window = options.window
        self._is_v5 = options.protocol == 5
        self._retained_once = options.retained_once and self._is_v5
        self._check_seconds = min(CHECK_SECONDS, options.keepalive_seconds / 3)
        self._backoff = Backoff(options.retry_first, options.retry_longest)
        self._client = make_client(url, options, timeout)
        self._client.on_connect = self._on_connect
        self._client.on_disconnect = self._on_disconnect
        self._client.on_message = self._on_message
        self._client.on_publish = self._on_publish
        self._takers = Takers(queues.inbox.add, self._confirm, self._answer)
        self._waker = queues.waker = Waker()
        self._stopping = threading.Event()
        self._connected_at = 0.0
        self._refusal: BrokerError | None = None
        self._thread = threading.Thread(target=self._run, name=f"mqtt {url}", daemon=True)
        self._thread.start()

    def stop(self, timeout: float) -> None:
        """Says good-bye and ends the thread; what takes longer ends in the background."""
        self._stopping.set()
        self._waker.wake()
        if self._thread is not threading.current_thread():
            self._thread.join(timeout)
        self.answered.set()

    def _run(self) -> None:
        try:
            self._stay_connected()
        finally:
            self._waker.close()
            self.answered.set()

    def _stay_connected(self) -> None:
        while not self._stopping.is_set():
            self._refusal = None
            try:
                self._client.reconnect()
            except (OSError, ValueError) as error:
                self._connection_lost(failures.of_system(self._url, error))
            else:
                self._serve()
            self.answered.set()
            if not self._connected_at or self._stopping.wait(self._backoff.next()):
                break

    def _serve(self) -> None:
        """Moves packets until the connection ends."""
        connection = self._client.buffered
        poll = select.poll()
        poll.register(self._waker, select.POLLIN)
        give_up, next_check = time.monotonic() + self._timeout, 0.0
        while self._client.socket() is not None:
            if self._stopping.is_set():
                self._say_goodbye(connection)
                return
            self._turn(connection, poll)
            now = time.monotonic()
            if not self.connected and now > give_up:
                connection.abort()
            if now >= next_check:
                next_check = now + self._check_seconds
                self._keep_alive(connection)

    def _turn(self, connection: BufferedSocket, poll: select.poll) -> None:
        """Waits for something to do, and does all there is."""
        reading = not self._queues.inbox.full
        unsent = connection.unsent or self._client.want_write()
        events = (select.POLLIN if reading else 0) | (select.POLLOUT if unsent else 0)
        poll.register(connection, events)
        pending = reading and connection.pending() > 0
        pause = self._check_seconds if self.connected else CONNECT_CHECK_SECONDS
        ready = [file for file, _ in poll.poll(0 if pending else pause * 1000)]
        unconfirmed = self._queues.outbox.unconfirmed
        if self._waker.fileno() in ready:
            self._waker.drain()
        if pending or (reading and connection.fileno() in ready):
            self._read(connection)
        if self.connected:
            self._send_requests(connection)
            self._send_acknowledgements(connection)
            self._send_again(connection)
            self._send_messages(connection)
            self._queues.outbox.announce()
        if self._client.socket() is not None:
            self._client.loop_write()
            connection.flush()
        if self._queues.outbox.unconfirmed < unconfirmed and self._queues.outbox.next() is None:
            time.sleep(CONFIRM_SECONDS)

    def _read(self, connection: BufferedSocket) -> None:
        connection.fill()
        while self._client.socket() is not None and connection.next_packet(self._takers):
            self._client.loop_read()
        self._queues.inbox.announce()

    def _keep_alive(self, connection: BufferedSocket) -> None:
        """While we do not read, paho would take a broker whose answers wait for a dead one."""
        if not self._queues.inbox.full:
            self._client.loop_misc()
        elif connection.takes_more:
            connection.send(PINGREQ)

    def _send_acknowledgements(self, connection: BufferedSocket) -> None:
        """All in one piece; a PUBACK without reason code is the same in MQTT 3.1.1 and 5."""
        waiting = self._queues.acknowledged
        while waiting and connection.takes_more:
            batch = waiting.popleft()
            if batch.connection == self._queues.inbox.connection:
                packets = [struct.pack("!BBH", PUBACK, 2, packet_id) for packet_id in batch.tokens]
                connection.send(b"".join(packets))

    def _send_again(self, connection: BufferedSocket) -> None:
        """What the connection before has not confirmed, in the old order."""
        while connection.takes_more and (found := self._queues.outbox.again()) is not None:
            packet_id, message = found
            connection.send(message_packet(message, packet_id, self._is_v5, again=True))

    def _send_messages(self, connection: BufferedSocket) -> None:
        outbox = self._queues.outbox
        while (
            connection.takes_more
            and outbox.unconfirmed < self._window
            and (message := outbox.next()) is not None
        ):
            if message.qos == 2:
                if not self._send_by_library(message):
                    return
            elif message.qos:
                packet_id = self._free_packet_id()
                connection.send(message_packet(message, packet_id, self._is_v5))
                outbox.note_sent(packet_id)
            else:
                connection.send(message_packet(message, 0, self._is_v5))
                outbox.done()

    def _send_by_library(self, message: Message) -> bool:
        info = self._client.publish(*message[:4])
        if info.rc == MQTTErrorCode.MQTT_ERR_QUEUE_SIZE:
            return False
        self._queues.outbox.note_sent(info.mid)
        self._client.loop_write()  # what follows must not overtake it
        return True

    def _free_packet_id(self) -> int:
        """The library counts, because its own requests have packet ids too."""
        while not self._queues.outbox.is_free(packet_id := self._client._mid_generate()):
            pass
        return packet_id

    def _send_requests(self, connection: BufferedSocket) -> None:
        subscriptions = self._queues.subscriptions
        for requests in subscriptions.take_unsent():
            head = UNSUBSCRIBE if requests[0].qos is None else SUBSCRIBE
            filters = [(request.pattern, self._filter_options(request)) for request in requests]
            packet_id = self._free_packet_id()
            connection.send(request_packet(head, filters, packet_id, self._is_v5))
            subscriptions.note_sent(packet_id, requests)

    def _filter_options(self, request: Request) -> bytes:
        if request.qos is None:
            return b""
        return bytes([request.qos | (RETAINED_ONCE if self._retained_once else 0)])

    def _say_goodbye(self, connection: BufferedSocket) -> None:
        if self.connected:
            self._send_acknowledgements(connection)
        self.connected = False
        self._client.disconnect()
        self._client.loop_write()
        if self._client.socket() is not None:
            connection.close()

    # ── what the client reports ──────────────────────────────────────────────────────────────────

    def _on_connect(
        self, client: Any, data: Any, flags: ConnectFlags, reason: ReasonCode, more: Any
    ) -> None:
        if reason.is_failure:
            self._refusal = failures.of_reason(self._url, reason)
            return
        allowed = getattr(more, "ReceiveMaximum", MOST_UNCONFIRMED)
        self._window = min(self._most_unconfirmed, allowed)
        self._queues.inbox.new_connection()
        self._queues.subscriptions.restore(flags.session_present)
        self._connected_at = time.monotonic()
        self.connected = True
        self.answered.set()

    def _on_disconnect(
        self, client: Any, data: Any, flags: DisconnectFlags, reason: ReasonCode, more: Any
    ) -> None:
        if self.connected and time.monotonic() - self._connected_at > STEADY_SECONDS:
            self._backoff.reset()
        system = self._client.buffered.error
        self._connection_lost(
            self._refusal or failures.of_loss(self._url, reason, system, self.connected)
        )

    def _on_message(self, client: Any, data: Any, message: MQTTMessage) -> None:
        """Only messages of QoS 2 come this way, from subscriptions that others have made.

        They are ours when they get here, whatever we answer.
        """
        plain = Message(message.topic, bytes(message.payload), message.qos, message.retain)
        self._queues.inbox.add(plain, 0)
        self._client.ack(message.mid, message.qos)

    def _connection_lost(self, problem: BrokerError) -> None:
        self.problem = problem
        self.connected = False
        self._queues.outbox.connection_lost()

    def _on_publish(self, client: Any, data: Any, mid: int, reason: ReasonCode, more: Any) -> None:
        """Of messages that are the library's."""
        refused = failures.of_reason(self._url, reason) if reason.is_failure else None
        self._queues.outbox.confirm(mid, refused)

    def _confirm(self, packet_id: int, code: int) -> None:
        self._queues.outbox.confirm(packet_id, failures.of_code(self._url, code) if code else None)

    def _answer(self, packet_id: int, reasons: bytes) -> None:
        packet, what = PacketTypes.SUBACK, "a subscription"
        errors = [failures.of_code(self._url, code, packet, what) for code in reasons]
        self._queues.subscriptions.answer(packet_id, errors)
