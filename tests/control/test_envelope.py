"""Whatever the bytes are, they are read or refused with a DataError."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fogline.common.errors import DataError
from fogline.control import topics
from fogline.control.announcements import Announcement, Status, status_payload
from fogline.control.envelope import MOST_JOINED_BYTES, Answer, ControlRequest, join_answers
from fogline.control.payload import LARGEST, write_object
from fogline.model.nodes import OFFLINE, ONLINE, Link, Node, Observed

ASK: dict[str, Any] = {
    "id": "1",
    "op": "install",
    "body": {"a": [1, 2.5, None, "ü"]},
    "deadline": 1e9,
    "answer": "fogline/answers/c",
}
BORN: dict[str, Any] = {"state": "online", "instance": "i", "node": {"name": "a", "kind": "site"}}

DECODERS: list[Callable[[bytes], object]] = [
    ControlRequest.decode,
    Answer.decode,
    lambda payload: Announcement.decode(payload, "a"),
    lambda payload: Status.decode_all(payload, "a"),
]

HOSTILE = {
    "empty": b"",
    "half": b'{"id": "1", "op',
    "no text": b"\xff\xfe\x00",
    "utf-16": '{"id": "1"}'.encode("utf-16"),
    "list": b"[1, 2]",
    "number": b"7",
    "null": b"null",
    "deep lists": b"[" * 10_000 + b"]" * 10_000,
    "deep objects": b'{"body":' * 10_000 + b"{}" + b"}" * 10_000,
    "deep inside": b'{"id": "1", "ok": true, "body": {"a": '
    + b"[" * 10_000
    + b"]" * 10_000
    + b"}}",
    "huge": b'{"id": "' + b"a" * (10 << 20) + b'"}',
    "huge rubbish": b"\0" * (10 << 20),
    "nan": b'{"id": "1", "ok": true, "body": {"a": NaN}, "at": NaN, "deadline": NaN}',
    "infinite": b'{"id": "1", "ok": true, "body": {"a": -Infinity}}',
    "too large": b'{"id": "1", "ok": true, "body": {"a": 1e999}}',
    "many digits": b'{"id": "1", "ok": true, "body": {"a": ' + b"9" * 5000 + b"}}",
    "duplicate ids": b'{"id": "1", "id": "2", "ok": true}',
    "two objects": b'{"id": "1", "ok": true}{"id": "2", "ok": true}',
}


@pytest.mark.parametrize("decode", DECODERS, ids=["request", "answer", "birth", "status"])
@pytest.mark.parametrize("payload", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_bytes_are_refused(decode: Callable[[bytes], object], payload: bytes) -> None:
    with pytest.raises(DataError):
        decode(payload)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("id", None),
        ("id", ""),
        ("id", 1),
        ("id", "x" * 201),
        ("op", ["install"]),
        ("op", ""),
        ("body", None),
        ("body", [1]),
        ("deadline", "soon"),
        ("deadline", True),
        ("deadline", None),
        ("deadline", 10**400),
        ("answer", None),
        ("answer", "fogline/answers/"),
        ("answer", "fogline/answers/+"),
        ("answer", "fogline/answers/a/b"),
        ("answer", "fogline/answers/\ud800"),
        ("answer", "fogline/nodes/x/do"),
        ("answer", "somewhere"),
        ("nodes", ["a"]),
        ("nodes", {"a": 1}),
        ("nodes", {"a": {}, "b": None}),
    ],
)
def test_a_wrong_field_of_a_request_is_refused(key: str, value: object) -> None:
    with pytest.raises(DataError):
        ControlRequest.decode(json.dumps(ASK | {key: value}).encode())


@pytest.mark.parametrize(
    "told",
    [
        {"id": "1"},
        {"id": "1", "ok": 1},
        {"id": "1", "ok": "true"},
        {"id": "1", "ok": True, "body": 3},
        {"id": "1", "ok": False},
        {"id": "1", "ok": False, "error": ""},
        {"id": "1", "ok": False, "error": ["no"]},
        {"id": "1", "ok": False, "error": "no", "hint": None},
        {"ok": True},
    ],
)
def test_a_wrong_answer_is_refused(told: dict[str, Any]) -> None:
    with pytest.raises(DataError):
        Answer.decode(json.dumps(told).encode())


@pytest.mark.parametrize(
    "more",
    [
        {"state": "silent"},
        {"state": 1},
        {"instance": ""},
        {"instance": "x" * 65},
        {"node": None},
        {"node": {"name": "b", "kind": "site"}},
        {"node": {"name": "a", "kind": "castle"}},
        {"node": {"name": "a", "kind": "site", "cores": "many"}},
        {"node": {"name": "a", "kind": "site", "cores": [1]}},
        {"node": {"name": "a", "kind": "site", "latitude": {}}},
        {"node": {"name": "a", "kind": "site", "latitude": 10**400}},
        {"node": {"name": "a", "kind": "site", "labels": [1, 2]}},
        {"node": {"name": ["a"], "kind": "site"}},
    ],
)
def test_a_wrong_birth_is_refused(more: dict[str, Any]) -> None:
    with pytest.raises(DataError):
        Announcement.decode(json.dumps(BORN | more).encode(), "a")


@pytest.mark.parametrize(
    "more",
    [
        {"at": "now"},
        {"instance": 5},
        {"jobs": {}},
        {"jobs": [1]},
        {"jobs": [{"job": 1}]},
        {"jobs": [{"job": "a", "runs": 3}]},
        {"jobs": [{"job": "a", "state": 3}]},
        {"jobs": [{"job": "a", "records_in": "3"}]},
        {"jobs": [{"job": "a", "records_in": True}]},
        {"jobs": [{"job": "a", "more": []}]},
        {"links": []},
        {"links": {"b": 1}},
        {"links": {"b": {"latency_ms": "1"}}},
        {"links": {"b": {"latency_ms": 1, "mbit_s": "fast"}}},
    ],
)
def test_a_wrong_status_is_refused(more: dict[str, Any]) -> None:
    with pytest.raises(DataError):
        Status.decode_all(json.dumps({"at": 1, "instance": "i"} | more).encode(), "a")


@given(st.binary(max_size=200))
def test_any_bytes(payload: bytes) -> None:
    for decode in DECODERS:
        with pytest.raises(DataError):
            decode(payload)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
KEYS = st.sampled_from([*ASK, *BORN, "ok", "error", "hint", "at", "jobs", "links", "job", "name"])


@given(st.dictionaries(KEYS, JSON | st.dictionaries(KEYS, JSON) | st.lists(JSON)))
def test_any_object_is_read_or_refused(content: dict[str, Any]) -> None:
    payload = json.dumps(content).encode()
    for decode in DECODERS:
        try:
            decode(payload)
        except DataError:
            continue


# ── what is right ────────────────────────────────────────────────────────────────────────────────


def test_requests_and_answers_come_back_as_they_were() -> None:
    request = ControlRequest("1", "install", {"a": {"b": [1, "ü", None]}}, 5.5, "fogline/answers/c")
    assert ControlRequest.decode(request.encode()) == request
    for answer in (Answer("1", body={"a": 1}), Answer.failure("1", "no", "do"), Answer("2")):
        assert Answer.decode(answer.encode()) == answer


def test_answers_travel_together_in_messages_of_bounded_size() -> None:
    answers = [Answer(str(number), body={"text": "x" * 10_000}) for number in range(20)]
    payloads = join_answers(answer.encode() for answer in answers)
    assert 2 <= len(payloads) < 20
    assert all(len(payload) < MOST_JOINED_BYTES + 11_000 for payload in payloads)
    assert [item for payload in payloads for item in Answer.decode_all(payload)] == answers
    assert join_answers([answers[0].encode()]) == [answers[0].encode()]
    assert join_answers([]) == []


@pytest.mark.parametrize("told", [{"answers": 1}, {"answers": [1]}, {"answers": [{"id": "1"}]}])
def test_several_answers_that_are_none_are_refused(told: dict[str, Any]) -> None:
    with pytest.raises(DataError):
        Answer.decode_all(json.dumps(told).encode())


def test_unknown_fields_are_ignored() -> None:
    assert ControlRequest.decode(json.dumps(ASK | {"later": 1}).encode()).op == "install"


def test_births_and_statuses_come_back_as_they_were() -> None:
    birth = Announcement(
        OFFLINE, "i", Node("a", "gateway", site="b", latitude=1.5, labels={"x": "y"})
    )
    assert Announcement.decode(birth.encode(), "a") == birth
    job = Observed("j", "v", "running", runs=("r",), records_in=3)
    told = {"jobs": [job.as_json()], "links": {"b": {"latency_ms": 2}}, "healthy": False}
    status = Status.decode_all(write_object(status_payload(1.0, "i", told)), "a")["a"]
    assert status == Status(1.0, "i", {"j": job}, {"b": Link(2.0)}, False)


def test_what_nobody_could_read_is_not_written() -> None:
    for body in ({"a": math.nan}, {"a": object()}, {"a": "x" * LARGEST}):
        with pytest.raises(DataError):
            Answer("1", body=body).encode()
    loop: dict[str, Any] = {}
    loop["loop"] = loop
    with pytest.raises(DataError):
        Answer("1", body=loop).encode()


def test_the_error_of_an_answer_may_be_long() -> None:
    answer = Answer.failure("1", "x" * 10_000_000, "y" * 10_000_000)
    assert Answer.decode(answer.encode()) == answer
    assert Answer.failure("1", "").error


def test_topics() -> None:
    assert topics.announcement("a b") == "fogline/nodes/a b/birth"
    assert topics.parse_topic("fogline/nodes/a/status") == ("a", "status")
    assert topics.parse_topic("x/fogline/nodes/a/status") == ("", "")
    assert topics.parse_topic("fogline/coordinator/do") == ("", "")
    for name in ("", "a/b", "+", "#", "$SYS", "a\0", "x" * 121):
        with pytest.raises(DataError):
            topics.do(name)
    assert Announcement(ONLINE, "i", Node("a", "site")).state == ONLINE


def test_nodes_get_the_body_and_their_parts() -> None:
    answers = topics.answers("c")
    read = {"jobs": ["ä"], "n": 1.0}
    asked = ControlRequest("1", "install", read, 5.0, answers, {"ä": {"x": 1}, "b": {}})
    found = ControlRequest.decode(asked.encode())
    assert found == ControlRequest("1", "install", read, 5.0, answers, {"ä": {"x": 1}, "b": {}})
    assert found.content("ä") == read | {"x": 1}
    assert found.content("b") == found.content() == read
    with pytest.raises(DataError, match="bytes"):
        ControlRequest("1", "x", {"x": "x" * LARGEST}, 5.0, answers).encode()


@pytest.mark.parametrize("body", [{}, {"a": 1}, {"a": 1, "b": [2]}])
@pytest.mark.parametrize("part", [{}, {"c": "ü"}])
def test_body_and_part_become_one_object(body: dict[str, Any], part: dict[str, Any]) -> None:
    request = ControlRequest("1", "x", body, 5.0, topics.answers("c"), {"n": part})
    assert ControlRequest.decode(request.encode()).content("n") == body | part
