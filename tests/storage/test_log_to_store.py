"""Messages into values: formats, oddities, and that columns and single records give the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fogline.common.errors import UsageError
from fogline.log import LogWriter
from fogline.storage.ingest.columns import _by_columns, decode_batch
from fogline.storage.ingest.decode import ArrivedMessage, decode
from fogline.storage.ingest.log_to_store import Feeder
from fogline.storage.ingest.mapping import Insights, Readings
from fogline.storage.store import SiteStore
from fogline.storage.values import Value, to_values
from tests.storage.kit import START, everything, numbers, same_values, write_log

ARRIVAL = START + 5
PLAIN = Readings(fields=("x", "y"), entity="s", time="t", labels=("c",), prefix="p.")
NAMED = Readings(metric="m", value="v", entity="s", time="t")


def decoded(source: Readings | Insights, *bodies: object) -> list[Value]:
    return to_values(decode(source, [message(body) for body in bodies]).table)


def message(body: object) -> ArrivedMessage:
    payload = body if isinstance(body, bytes) else json.dumps(body).encode()
    return "city/1", payload, ARRIVAL


@pytest.mark.parametrize(
    "time",
    [START, START // 1_000, START / 1e6, START // 10**6, "2026-01-01T00:00:00Z", "2026-01-01",
     "2026-01-01 01:00:00+01:00", str(START)],
)  # fmt: skip
def test_times_are_read_as_the_connector_reads_them(time: object) -> None:
    assert [value.time for value in decoded(PLAIN, {"t": time, "s": "a", "x": 1})] == [START]


def test_a_reading_gives_a_value_per_field() -> None:
    found = decoded(PLAIN, {"t": START, "s": "a", "x": 1, "y": "hot", "c": "bern", "z": 9})
    labels = {"c": "bern"}
    expected = [Value("p.x", "a", START, 1.0, labels), Value("p.y", "a", START, "hot", labels)]
    assert found == expected


def test_without_entity_and_time_there_are_topic_and_arrival() -> None:
    assert decoded(Readings(fields=("x",)), [{"x": 1}, {"x": True}]) == [
        Value("x", "city/1", ARRIVAL, 1.0),
        Value("x", "city/1", ARRIVAL, 1.0),
    ]


def test_a_record_may_name_its_metric() -> None:
    record = {"m": "cpu", "v": 0.5, "s": 17, "t": START}
    assert decoded(NAMED, record) == [Value("cpu", "17", START, 0.5)]


@pytest.mark.parametrize(
    "body",
    [
        [{"bn": "dev1", "bt": START // 10**6, "n": "x", "v": 1.5}, {"n": "y", "vs": "on", "t": 1}],
        {"e": [{"n": "x", "v": 1.5}, {"n": "y", "vs": "on", "t": 1}], "bn": "dev1", "bt": START},
        f'{START},[{{"bn":"dev1","bt":{START},"n":"x","v":1.5}},{{"n":"y","vs":"on","t":1}}]'.encode(),
    ],
)
def test_senml(body: object) -> None:
    assert decoded(Readings(format="senml"), body) == [
        Value("x", "dev1", START, 1.5),
        Value("y", "dev1", START + 1_000_000, "on"),
    ]


def test_insights() -> None:
    window = {"start": "2025-12-31T23:59:30.000Z", "end": "2026-01-01T00:00:00.000Z"}
    one = {"insight": "hot", "window": window, "keys": {"source": "s1"}, "value": 3, "count": 14}
    two = {"insight": "top", "window": window, "keys": {"a": "x", "b": 2}, "value": [1, 2]}
    three = {"insight": "all", "window": window, "keys": {}, "value": "u0"}
    assert decoded(Insights(counts=True), one, two, three) == [
        Value("hot", "s1", START, 3.0, {"source": "s1"}),
        Value("hot.count", "s1", START, 14.0, {"source": "s1"}),
        Value("top", "a=x,b=2", START, "[1, 2]", {"a": "x", "b": "2"}),
        Value("all", "", START, "u0"),
    ]


HOSTILE = [
    b"", b"{", b"null", b"[1]", b"\xff\xfe", b"[" * 100_000, b'{"t":1e999,"s":"a","x":1}',
    b'{"t":true,"s":"a","x":1}', b'{"s":"a","x":1}', b'{"t":1,"s":{},"x":1}', b'{"t":1,"x":1}',
    b'{"t":1,"s":"a","x":[1]}', b'{"t":1,"s":"a","x":1e999}', b'{"t":1,"s":"a","x":NaN}',
    b'{"t":9e17,"s":"a","x":1}', b'{"t":"never","s":"a","x":1}',
    b'{"t":"9999-99-99","s":"a","x":1}',
    json.dumps({"t": 1, "s": "n" * 2_000, "x": 1}).encode(),
    json.dumps({"t": 1, "s": "a", "x": "v" * 70_000}).encode(),
    json.dumps({"t": 1, "s": "a", "x": 1, "c": "l" * 9_000}).encode(),
]  # fmt: skip


PACK = [{"bn": "a", "bt": START, "n": "x", "v": 1}]


@pytest.mark.parametrize("payload", HOSTILE)
@pytest.mark.parametrize("source", [PLAIN, NAMED, Readings(format="senml"), Insights()])
def test_what_is_no_value_is_counted(payload: bytes, source: Readings | Insights) -> None:
    is_senml = isinstance(source, Readings) and source.format == "senml"
    good = PACK if is_senml else {"t": START, "s": "a", "x": 1, "m": "x", "v": 1}
    result = decode_batch(source, [message(payload), *(message(good) for _ in range(30))])
    if isinstance(source, Readings):
        assert len(result.table) == 30
        assert sum(result.rejected.values()) == 1
    else:
        assert len(result.table) == 0


@pytest.mark.parametrize("digits", [b"9" * 400, b"1e999"])
def test_numbers_that_no_double_can_hold_are_no_values_either_way(digits: bytes) -> None:
    """A query sees none in them either."""
    messages = [message(b'{"t":1,"s":"a","x":-' + digits + b"}")] * 20
    for result in (decode(PLAIN, messages), decode_batch(PLAIN, messages)):
        assert len(result.table) == 0
        assert result.rejected == {"not a number or a text": 20}


SCALARS = st.one_of(
    st.none(), st.integers(-(2**70), 2**70), st.floats(), st.booleans(), st.text(max_size=3),
    st.sampled_from(["a", "ü", "\u0000", "\n", '"', "2026-01-01T00:00:00Z", START, START // 1000]),
)  # fmt: skip
USUAL = st.fixed_dictionaries(
    {"t": st.integers(START, START + 99), "s": st.sampled_from(["a", "b", "é"])},
    optional={"x": st.floats(), "y": st.text(max_size=3), "c": st.sampled_from(["k", "l", '"'])},
)
ODD = st.dictionaries(st.sampled_from(["t", "s", "x", "y", "c", "z"]), SCALARS)


@given(st.lists(USUAL, min_size=16, max_size=40), st.lists(ODD, max_size=1))
def test_columns_and_records_agree(usual: list[dict[str, object]], odd: list[object]) -> None:
    messages = [message(body) for body in [*usual, *odd]]
    one, many = decode(PLAIN, messages), decode_batch(PLAIN, messages)
    assert one.rejected == many.rejected
    assert same_values(in_order(one.table), in_order(many.table))


def in_order(table: object) -> list[Value]:
    return sorted(to_values(table), key=lambda value: value.metric)


def test_the_usual_case_goes_by_columns() -> None:
    bodies = [{"t": START + i, "s": "a", "x": i, "y": "on", "c": "k"} for i in range(20)]
    assert _by_columns(PLAIN, [message(body) for body in bodies]) is not None


def test_a_log_is_followed_across_restarts(tmp_path: Path) -> None:
    log, source = tmp_path / "log", Readings(fields=("x",), entity="sensor", time="time")
    for first in (0, 500):
        write_log(log, 500, first)
        with SiteStore(tmp_path / "store") as store:
            feeder = Feeder(store, log, source)
            while feeder.step(3_000):
                pass
            assert numbers(store) == list(range(first + 500))
            feeder.close()


def test_a_log_that_is_not_there_yet_and_one_of_rubbish(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with SiteStore(tmp_path / "store") as store:
        feeder = Feeder(store, log, PLAIN)
        assert feeder.step() == 0
        with LogWriter(log, "x", min_free_bytes=0) as writer:
            writer.append([("x", b"rubbish")] * 50)
            end = writer.commit()
        assert feeder.step() == 50
        assert feeder.rejected == {"not json": 50}
        store.maintain()
        assert (store.committed("log"), everything(store)) == (end, [])


@pytest.mark.parametrize(
    "wrong", [{"format": "csv"}, {"fields": ("x",), "metric": "m", "value": "v"}, {"metric": "m"}]
)  # fmt: skip
def test_declarations_that_make_no_sense(wrong: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        Readings(**wrong)  # type: ignore[arg-type]


def test_senml_as_devices_write_it() -> None:
    """Numbers in quotes, texts as `sv`, and the entity among the values."""
    pack = (
        b'1767225600050,{"e":[{"u":"string","n":"source","sv":"s7"},'
        b'{"v":"18.7","u":"far","n":"temperature"},{"v":"dark","n":"light"}],"bt":1767225600050}'
    )
    found = decode(Readings(format="senml", entity="source"), [("city", pack, 1)])
    values = [(v.metric, v.entity, v.value) for v in to_values(found.table)]
    assert values == [("temperature", "s7", 18.7), ("light", "s7", "dark")]
    (first, *_) = to_values(decode(Readings(format="senml"), [("city", pack, 1)]).table)
    assert (first.entity, first.time) == ("city", 1_767_225_600_050_000)
    (alone,) = to_values(decode(Readings(format="senml"), [("t", b'[{"bn":"x","v":3}]', 1)]).table)
    assert (alone.entity, alone.value) == ("x", 3.0)
