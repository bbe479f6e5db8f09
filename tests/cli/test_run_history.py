"""`fogline run --from … --to …`: what was kept gives what the stream gave."""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import click
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from fogline.cli.main import cli
from fogline.fabric.http.arrow import to_arrow
from fogline.fabric.membership.local_sites import LocalSite, leave_note
from fogline.fabric.query.records import from_node, payloads
from fogline.formats.times import time_of
from fogline.log import SiteLog
from fogline.model.times import iso_micros
from fogline.storage.catalog.metadata import Description
from fogline.storage.names import parse_all
from fogline.storage.values import Value, from_values
from tests.fabric.kit_nodes import SECRET, running

pytestmark = pytest.mark.spark

NOON = 1_767_268_800_000_000
SECOND = 1_000_000
TOKEN = "only-for-this-test"


def at(second: float) -> str:
    return iso_micros(NOON + round(second * SECOND))


# ── a fabric by hand ─────────────────────────────────────────────────────────────────────────────


class Fabric:
    """A node that answers for all, from plain lists; pages hold three values at most."""

    def __init__(self) -> None:
        self.values: dict[str, list[Value]] = {}
        self.nodes: list[dict[str, Any]] = []
        self.metadata: list[dict[str, str]] = []
        self.questions: list[dict[str, list[str]]] = []
        self.page = 3
        self.answer: Callable[[], tuple[int, bytes]] | None = None
        fabric = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._reply(*fabric.reply(self.path, self.headers["Authorization"]))

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                self._reply(200, to_arrow(pa.Table.from_pylist(fabric.metadata)))

            def _reply(self, status: int, body: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                """Nothing on the screen."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def reply(self, target: str, token: str) -> tuple[int, bytes]:
        if token != f"Bearer {TOKEN}":
            return 401, b'{"error": "the token is not known", "hint": ""}'
        asked = parse_qs(urlsplit(target).query)
        self.questions.append(asked)
        if self.answer is not None:
            return self.answer()
        found = sorted(
            ((value.time, node, value) for node, vs in self.values.items() for value in vs),
            key=lambda item: item[:2],
        )
        rows = [
            (node, value)
            for _, node, value in found
            if _matches(value, asked) and _is_asked(node, asked)
        ]
        start = int(asked.get("cursor", ["0"])[0])
        page = rows[start : start + self.page]
        more = start + self.page if start + self.page < len(rows) else None
        nodes = [n for n in self.nodes or self._answered() if _is_asked(n["node"], asked)]
        told: dict[str, Any] = {"nodes": nodes}
        return 200, to_arrow(_table(page), told | ({"next": str(more)} if more else {}))

    def _answered(self) -> list[dict[str, str]]:
        return [{"node": node, "state": "answered"} for node in self.values]


def _is_asked(node: str, asked: dict[str, list[str]]) -> bool:
    wanted = asked.get("node", ["%"])
    return any(node.startswith(name.removesuffix("%")) for name in wanted)


def _matches(value: Value, asked: dict[str, list[str]]) -> bool:
    start, end = time_of(asked["from"][0]), time_of(asked["to"][0])
    named = [
        (value.metric, parse_all(asked.get("metric"))),
        (value.entity, parse_all(asked.get("entity"))),
    ]
    return start <= value.time < end and all(
        patterns is None or patterns.matches(name) for name, patterns in named
    )


def _table(rows: list[tuple[str, Value]]) -> pa.Table:
    plain = from_values(value for _, value in rows)
    return plain.append_column("node", pa.array([node for node, _ in rows], pa.string()))


@pytest.fixture
def fabric() -> Iterator[Fabric]:
    made = Fabric()
    yield made
    made.close()


@pytest.fixture
def site(tmp_path: Path, fabric: Fabric, monkeypatch: pytest.MonkeyPatch) -> LocalSite:
    """A site that seems to run: this process has left its note."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "runtime"))
    made = LocalSite("north", tmp_path / "site", os.getpid(), store=fabric.url)
    made.token_file.parent.mkdir(parents=True)
    made.token_file.write_text(TOKEN + "\n")
    leave_note(made)
    return made


Run = Callable[..., Any]


def results(told: Any) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in told.out.splitlines()]
    return sorted((line for line in lines if "insight" in line), key=json.dumps)


# ── the storage fabric ───────────────────────────────────────────────────────────────────────────

CPU = """
cpu = STREAM FROM storageFabric(metricID="cpu_%", lateness="1 h");
mean = COMPUTE AVG(cpu, 30 s) BY entityID EVERY 10 s;
peak = COMPUTE MAX(mean, 20 s) EVERY 20 s;
high = COMPUTE cpu BY metricID, entityID, nodeID, zone WHEN cpu > 90;
"""


def many(count: int, node: str) -> list[Value]:
    """A value every 700 ms, with whole numbers only: their sums are exact in any order."""
    return [
        Value(f"cpu_{n % 3}", f"pod-{n % 5}", NOON + n * 700_001, float(n % 97), {"zone": node})
        for n in range(count)
    ]


def streamed(fogline: Run, query: Path, fabric: Fabric, folder: Path) -> list[dict[str, Any]]:
    """What a stream over all values gives."""
    path = folder / "all.ndjson"
    tables = [from_node(from_values(values), node) for node, values in fabric.values.items()]
    path.write_bytes(b"".join(p + b"\n" for table in tables for p in payloads(table)))
    return results(fogline("run", query, "--input", path, "--json"))


def ends_in(found: list[dict[str, Any]], start: float, end: float) -> list[dict[str, Any]]:
    """Windows that end in a stretch, and records in it."""
    first, last = at(start)[:23], at(end)[:23]
    return [
        r
        for r in found
        if (first <= r["window"]["end"][:23] < last)
        if r["insight"] == "high" or first < r["window"]["end"][:23]
    ] + [r for r in found if r["window"]["end"][:23] == last and r["insight"] != "high"]


def test_history_gives_what_the_stream_gave(
    spark: SparkSession, fogline: Run, query: Run, site: LocalSite, fabric: Fabric, tmp_path: Path
) -> None:
    fabric.page = 50
    fabric.values = {"north": many(300, "n"), "south": many(300, "s")}
    whole = streamed(fogline, query(CPU), fabric, tmp_path)
    told = fogline("run", query(CPU), "--from", at(63), "--to", at(160), "--json")
    assert told.code == 0, told.err
    assert results(told) == sorted(ends_in(whole, 63, 160), key=json.dumps)
    assert {r["insight"] for r in results(told)} == {"mean", "peak", "high"}
    nodes = [{"node": "north", "state": "answered"}, {"node": "south", "state": "answered"}]
    assert json.loads(told.out.splitlines()[-1]) == {"nodes": nodes}
    asked = fabric.questions[0]
    assert (asked["metric"], asked["scope"], asked["limit"]) == (["cpu_%"], ["all"], ["200000"])
    assert (asked["from"], asked["to"]) == ([at(13)], [at(160)])
    assert not list(tmp_path.glob("fogline-history-*"))


NAMED = """
s = STREAM FROM storageFabric(metricID="cpu", nodeID="nor%", entityType="POD");
i = COMPUTE cpu BY nodeID, entityID, unit WHEN entityID IN (a, b);
"""


def test_conditions_go_into_the_question(
    spark: SparkSession, fogline: Run, query: Run, site: LocalSite, fabric: Fabric
) -> None:
    one = [Value("cpu", entity, NOON, 1.0) for entity in ("a", "b", "c")]
    fabric.values = {"north": one, "south": one}
    fabric.nodes = [{"node": "north", "state": "answered"}, {"node": "south", "state": "away"}]
    described = {"metric": "cpu", "entity": "", "unit": "%", "description": ""}
    fabric.metadata = [
        {**described, "entity_type": "POD"},
        {**described, "entity": "b", "entity_type": "HOST"},
    ]
    told = fogline("run", query(NAMED), "--from", at(0), "--to", at(1), "--json", "--require-all")
    assert told.code == 0, told.err
    assert [r["keys"] for r in results(told)] == [{"nodeID": "north", "entityID": "a", "unit": "%"}]
    assert fabric.questions[0]["metric"] == ["cpu"]
    assert fabric.questions[0]["entity"] == ["a", "b"]
    assert fabric.questions[0]["node"] == ["nor%"]
    assert json.loads(told.out.splitlines()[-1])["nodes"] == [fabric.nodes[0]]


UNREACHABLE = [
    ({"node": "south", "state": "away", "why": "no answer"}, "node south is away: no answer"),
    ({"node": "south", "state": "refused"}, "node south is refused"),
    (
        {"node": "south", "state": "copy", "at": "north", "until": NOON + SECOND},
        "from a copy at north",
    ),
    (
        {"node": "south", "state": "copy", "at": "west", "until": NOON * 2, "partial": True},
        "some metrics only",
    ),
    (
        {"node": "south", "state": "copy", "at": "west", "until": NOON * 2, "partial": True}
        | {"since": "2026-01-02T03:04:05Z"},
        "without some from before 2026-01-02T03:04:05",
    ),
]
SIMPLE = 's = STREAM FROM storageFabric(metricID="cpu"); i = COMPUTE cpu;'


@pytest.mark.parametrize(("node", "text"), UNREACHABLE)
def test_nodes_that_are_away_are_named(
    spark: SparkSession,
    fogline: Run,
    query: Run,
    site: LocalSite,
    fabric: Fabric,
    node: dict[str, Any],
    text: str,
) -> None:
    fabric.values = {"north": [Value("cpu", "a", NOON, 1.0)]}
    fabric.nodes = [{"node": "north", "state": "answered"}, node]
    times_ = ("--from", at(0), "--to", at(5))
    told = fogline("run", query(SIMPLE), *times_, "--json")
    assert (told.code, len(results(told))) == (0, 1)
    assert text in told.err
    assert json.loads(told.out.splitlines()[-1]) == {"nodes": fabric.nodes}
    told = fogline("run", query(SIMPLE), *times_, "--json", "--require-all")
    assert (told.code, told.out) == (1, "")
    assert text in told.err


def test_a_whole_copy_is_as_good_as_the_node(
    spark: SparkSession, fogline: Run, query: Run, site: LocalSite, fabric: Fabric
) -> None:
    fabric.nodes = [{"node": "south", "state": "copy", "at": "north", "until": NOON + 9 * SECOND}]
    told = fogline("run", query(SIMPLE), "--from", at(0), "--to", at(5), "--require-all")
    assert (told.code, told.out) == (0, "")


def test_an_address_and_a_token(
    spark: SparkSession, fogline: Run, query: Run, fabric: Fabric, tmp_path: Path
) -> None:
    fabric.values = {"north": [Value("cpu", "a", NOON, 1.0), Value("cpu", "a", NOON + 1, "text")]}
    token = tmp_path / "token"
    token.write_text(TOKEN)
    call = ("run", query(SIMPLE), "--from", at(0), "--url", fabric.url, "--token-file", token)
    told = fogline(*call, "--json")
    assert [r["value"] for r in results(told)] == [1.0]
    token.write_text("another")
    told = fogline(*call)
    assert (told.code, told.out) == (1, "")
    assert "the token is not known" in told.err


BROKEN: list[tuple[int, bytes, str]] = [
    (200, b"no arrow", "no table"),
    (200, to_arrow(pa.table({"x": [1]})), "invalid columns"),
    (200, to_arrow(_table([("n", Value("cpu", "a", NOON, 1.0))]), {"next": 7}), "next page"),
    (200, to_arrow(_table([]), {"nodes": ["north"]}), "an invalid list of nodes"),
    (200, to_arrow(_table([]), {"next": "same"}), "next page"),
    (400, b'{"error": "that is no question", "hint": "ask better"}', "ask better"),
    (500, b"", "500"),
]


@pytest.mark.parametrize(("status", "body", "text"), BROKEN)
def test_answers_that_are_none_are_told(
    fogline: Run,
    query: Run,
    site: LocalSite,
    fabric: Fabric,
    tmp_path: Path,
    status: int,
    body: bytes,
    text: str,
) -> None:
    fabric.answer = lambda: (status, body)
    told = fogline("run", query(SIMPLE), "--from", at(0))
    assert (told.code, told.out) == (1, "")
    assert text in told.err
    assert len(told.err.splitlines()) == 1
    assert not list(tmp_path.glob("fogline-history-*"))


DESCRIBED = """
s = STREAM FROM storageFabric(metricID="cpu%", entityType="POD");
i = COMPUTE COUNT(s, 10 s) BY nodeID, unit EVERY 10 s;
"""


def test_real_nodes_answer_together(
    spark: SparkSession,
    fogline: Run,
    query: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("fogline.cli.run.fetching.PAGE", 7)
    token = tmp_path / "token"
    token.write_text(SECRET)
    text = query(DESCRIBED)
    with running(tmp_path, "north", "south") as (north, south):
        for node in (north, south):
            node.put([Value("cpu0", "e", NOON + n * SECOND, float(n)) for n in range(20)])
        north.store.metadata.put("cpu0", Description(unit="%", entity_type="POD"))
        call = ("run", text, "--from", at(0), "--to", at(20), "--url", north.address)
        told = fogline(*call, "--token-file", token, "--json", "--require-all")
        assert told.code == 0, told.err
        found = [(r["keys"]["nodeID"], r["keys"]["unit"], r["value"]) for r in results(told)]
        assert sorted(found) == [(node, "%", 10.0) for node in ("north", "south") for _ in range(2)]
        south.stop()
        told = fogline(*call, "--token-file", token, "--json")
        assert [r["keys"]["nodeID"] for r in results(told)] == ["north", "north"]
        assert "node south is away" in told.err
        told = fogline(*call, "--token-file", token, "--json", "--require-all")
        assert (told.code, told.out) == (1, "")


# ── logs of the site, and files ──────────────────────────────────────────────────────────────────

MIXED = """
t = STREAM FROM mqtt(topic="plant/+", time="time", lateness="1 h");
f = STREAM FROM file(path="{file}", time="time", lateness="1 h");
s = STREAM FROM storageFabric(metricID="cpu", lateness="1 h");
seen = COMPUTE COUNT(x FROM (t), 10 s) EVERY 10 s;
last = COMPUTE MAX(x FROM (f), 10 s) EVERY 10 s;
load = COMPUTE MAX("cpu" FROM (s), 10 s) EVERY 10 s;
one = COMPUTE x FROM (t) WHEN x == 12;
"""


def write_log(site: LocalSite, topic: str, seconds: range) -> None:
    with SiteLog(site.folder / "log", min_free_bytes=0).writer(topic) as log:
        log.append([(topic.replace("+", "a"), reading(second)) for second in seconds])
        log.append([(topic.replace("+", "a"), b"no json")])
        log.commit()


def reading(second: int) -> bytes:
    return json.dumps({"time": at(second), "x": second}).encode()


def test_all_kinds_of_streams_at_once(
    spark: SparkSession, fogline: Run, query: Run, site: LocalSite, fabric: Fabric, tmp_path: Path
) -> None:
    write_log(site, "plant/+", range(40))
    file = tmp_path / "file.ndjson"
    file.write_bytes(b"".join(reading(second) + b"\n" for second in range(40)))
    fabric.values = {"n": [Value("cpu", "a", NOON + n * SECOND, float(n)) for n in range(40)]}
    text = MIXED.replace("{file}", str(file))
    told = fogline("run", query(text), "--from", at(10), "--to", at(30), "--json")
    assert told.code == 0, told.err
    found = [(r["insight"], r["window"]["end"][17:19], r["value"]) for r in results(told)]
    assert sorted(found) == [
        ("last", "20", 19.0),
        ("last", "30", 29.0),
        ("load", "20", 19.0),
        ("load", "30", 29.0),
        ("one", "12", 12.0),
        ("seen", "20", 10.0),
        ("seen", "30", 10.0),
    ]


def test_a_stretch_that_cuts_windows_gives_only_whole_ones(
    spark: SparkSession, fogline: Run, query: Run, site: LocalSite
) -> None:
    write_log(site, "plant/+", range(60))
    text = (
        't = STREAM FROM mqtt(topic="plant/+", time="time"); n = COMPUTE COUNT(x, 20 s) EVERY 10 s;'
    )
    told = fogline("run", query(text), "--from", at(15.5), "--to", at(44.5), "--json")
    assert [(r["window"]["end"][17:19], r["value"]) for r in results(told)] == [
        ("20", 20.0),
        ("30", 20.0),
        ("40", 20.0),
    ]
    assert '"nodes"' not in told.out


# ── wrong calls ──────────────────────────────────────────────────────────────────────────────────

LOGGED = 't = STREAM FROM mqtt(topic="other"); i = COMPUTE x;'
WRONG = [
    (SIMPLE, ["--to", at(0)], 2, "--to does not fit here (add --from"),
    (SIMPLE, ["--require-all", "--site", "a"], 2, "--site, --require-all does not fit here"),
    (SIMPLE, ["--from", at(1), "--input", "x"], 2, "--input does not fit here"),
    (SIMPLE, ["--from", at(1), "--speed", "2"], 2, "--speed does not fit here"),
    (SIMPLE, ["--from", at(1), "--to", at(1)], 2, "--from is not before --to"),
    (SIMPLE, ["--from", "yesterday"], 2, "--from: invalid time 'yesterday'"),
    (SIMPLE, ["--from", "-1y"], 2, "--from: invalid time '-1y'"),
    (SIMPLE, ["--from", "9" * 400], 2, "--from"),
    (SIMPLE, ["--from", "-1h", "--to", "2026-13-01"], 2, "--to: invalid time '2026-13-01'"),
    (SIMPLE, ["--from", "-1h", "--site", "south"], 1, "no site south runs on this machine"),
    (
        SIMPLE,
        ["--from", "-1h", "--url", "ftp://x", "--token-file", "{token}"],
        2,
        "http://host:port",
    ),
    (
        SIMPLE,
        ["--from", "-1h", "--url", "http://127.0.0.1:1", "--token-file", "{token}"],
        1,
        "answer",
    ),
    (SIMPLE, ["--from", "-1h", "--token-file", "gone"], 2, "gone"),
    (LOGGED, ["--from", "-1h"], 1, "site north keeps no log of other"),
    (
        LOGGED.replace("mqtt(topic", "memory(name"),
        ["--from", "-1h"],
        2,
        "memory, which has no history",
    ),
]


@pytest.mark.parametrize(("text", "options", "code", "message"), WRONG, ids=range(len(WRONG)))
def test_wrong_calls(
    fogline: Run,
    query: Run,
    site: LocalSite,
    tmp_path: Path,
    text: str,
    options: list[str],
    code: int,
    message: str,
) -> None:
    token = tmp_path / "token"
    token.write_text("a-token-of-nobody\n", encoding="utf-8")
    told = fogline("run", query(text), *(option.format(token=token) for option in options))
    assert (told.code, told.out) == (code, "")
    assert message in told.err


def test_no_site_on_this_machine(
    fogline: Run, query: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    told = fogline("run", query(SIMPLE), "--from", "-1h")
    assert (told.code, told.out) == (1, "")
    assert "no site runs on this machine" in told.err


# ── the page ─────────────────────────────────────────────────────────────────────────────────────

PAGE = (Path(__file__).parents[2] / "docs" / "history.md").read_text(encoding="utf-8")


def test_the_page_tells_of_every_option() -> None:
    listed = set(re.findall(r"`(--[a-z-]+)`", PAGE.partition("## Where")[0]))
    found = cli.get_command(click.Context(cli), "run")
    assert found is not None
    own = {p.opts[0] for p in found.params if "--from" in (getattr(p, "help", "") or "")}
    assert listed == own | {"--from", "--to"}


def test_records_are_as_the_page_shows_them() -> None:
    shown = [json.loads(text) for text in re.findall(r"^```json\n(.*?)^```", PAGE, re.M | re.S)]
    value = Value("cpu_ptc", "web-0", NOON + 1, 62.5, {"podNamespace": "shop"})
    known = {("cpu_ptc", ""): {"entityType": "POD", "unit": "%"}}
    (record,) = payloads(from_node(from_values([value]), "north"), known)
    assert json.loads(record) == shown[1]
    assert set(shown[0]) == {"nodes"}
