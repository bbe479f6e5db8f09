"""What a person sees of results: the table at many sizes, hostile names, a readable pace."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from rich.console import Console

from fogline.cli.run.live_table import LiveTable, Rates
from fogline.cli.run.newest import NewestResult, NewestResults, value_text
from fogline.cli.run.paced import PacedLines
from fogline.cli.run.screen import result_line
from fogline.model.results import Account, Result, StreamCount, parse_results


def result(insight: str, keys: dict[str, Any], value: Any, second: int = 0) -> Result:
    end = f"2026-01-02T03:04:{second:02}.000Z"
    record = {"insight": insight, "window": {"start": end, "end": end}, "keys": keys}
    return parse_results(json.dumps(record | {"value": value, "count": 1}).encode())[0]


def test_a_row_is_the_newest_of_its_insight_and_key() -> None:
    newest = NewestResults(["a"])
    newest.add([result("a", {"k": "x"}, 1.0, 1), result("a", {"k": "y"}, 2.0, 1)])
    newest.add([result("a", {"k": "y"}, 3.14159265, 2)])
    assert newest.rows(10) == [
        NewestResult("a", "k=y", "3.14159", "2026-01-02 03:04:02", 2),
        NewestResult("a", "k=x", "1", "2026-01-02 03:04:01", 1),
    ]


def test_the_busiest_keys_come_first_and_the_rest_is_counted() -> None:
    newest = NewestResults(["a", "b"])
    for n in range(20):
        newest.add([result("a", {"k": n}, n)] * (n + 1))
    newest.add([result("b", {}, 1)])
    rows = newest.rows(5)
    assert [(row.insight, row.keys, row.count) for row in rows] == [
        ("a", "k=19", 20),
        ("a", "k=18", 19),
        ("a", "k=17", 18),
        ("a", "… 17 other keys", 210 - 57),
        ("b", "", 1),
    ]


def test_memory_is_bounded_and_what_is_beyond_is_counted() -> None:
    newest = NewestResults(["a"], most_keys=3)
    newest.add(result("a", {"k": n}, n) for n in range(1000))
    rows = newest.rows(100)
    assert [row.keys for row in rows] == ["k=0", "k=1", "k=2", "… other keys"]
    assert rows[-1].count == 997


@pytest.mark.parametrize("most", range(8))
def test_no_more_lines_than_there_is_room_for(most: int) -> None:
    newest = NewestResults(["a", "b", "c"])
    for name in "abc":
        newest.add(result(name, {"k": n}, n) for n in range(5))
    assert len(newest.rows(most)) == most


def test_values_are_short_and_lists_read_as_keys_and_values() -> None:
    top = [{"keys": {"source": "s1"}, "value": 12.3456789}, {"keys": {"source": "s2"}, "value": 9}]
    assert value_text(result("a", {}, top)) == "s1 12.3457, s2 9"
    assert value_text(result("a", {}, "text")) == "text"
    assert value_text(result("a", {}, [])) == ""


HOSTILE = "\x1b[2J[bold red]\u202e\n\r名前" + "x" * 5000


@pytest.mark.parametrize("width", [20, 40, 80, 120, 150, 200])
@pytest.mark.parametrize("height", [5, 24])
def test_the_table_fits_and_names_stay_whole(width: int, height: int) -> None:
    out = io.StringIO()
    console = Console(file=out, width=width, height=height, force_terminal=True, highlight=False)
    names = ["city_temperature", "dirtiest_air"]
    table = LiveTable(names, None, console)
    top = [{"keys": {"source": f"sensor-{n}"}, "value": n / 7} for n in range(5)]
    table.results([result("dirtiest_air", {}, top, 10)])
    for n in range(50):
        table.results([result("city_temperature", {"cell": HOSTILE + str(n)}, HOSTILE, n)])
    streams = {"messages": StreamCount(43_386)}
    table.tick(Account(streams, 51))
    console.print(table.render())
    lines = [line for line in out.getvalue().split("\n") if line]
    assert len(lines) <= height
    plain_lines = Console(width=width, highlight=False)
    with plain_lines.capture() as shown:
        plain_lines.print(table.render())
    text = shown.get()
    assert all(len(line) <= width for line in text.split("\n"))
    assert "\x1b[2J" not in out.getvalue()
    assert "%" not in text, "no bar where there is no end"
    if width >= 80 and height >= 24:
        assert all(name in text for name in names)
        assert "43,386 records" in text
    if width >= 150 and height >= 24:
        assert "sensor-1 0.142857, sensor-2 0.285714" in text


def test_a_replay_shows_how_far_it_is() -> None:
    console = Console(file=io.StringIO(), width=80, record=True)
    table = LiveTable(["a"], 1000, console)
    table.tick(Account({"s": StreamCount(5, bytes=250)}, 0))
    console.print(table.render())
    assert "25%" in console.export_text()


def test_rates_are_those_of_the_last_seconds() -> None:
    now = 0.0
    rates = Rates(lambda: now)
    for second in range(1, 101):
        now = float(second)
        rates.add(1000 * second, second // 2)
    assert (
        rates.line(2.44)
        == "up 0:01:40 · 100,000 records (1,000/s) · 50 results (0.6/s) · lag 2.4 s"
    )


def test_a_live_run_without_a_terminal_prints_a_few_lines_and_counts_the_rest(
    capsys: pytest.CaptureFixture[str],
) -> None:
    now = 0.0
    screen = PacedLines(lambda: now)
    for second in range(20):
        now = float(second)
        screen.results([result("wild", {"k": f"{n:03}"}, n) for n in range(500)])
        screen.results([result("mean", {}, second)])
    screen.finish(None, 20.0, None, None)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 11 * 6
    assert any("  mean  19" in line for line in lines)
    counted = sum(int(line.split()[2].replace(",", "")) for line in lines if line[0] == "…")
    shown = sum(line[0] != "…" for line in lines)
    assert counted + shown == 20 * 501
    assert screen.counts == {"wild": 10_000, "mean": 20}


def test_a_line_is_text_whatever_a_sensor_is_called() -> None:
    line = result_line(result("a", {"k": HOSTILE}, 1))
    assert line.isprintable()
    assert len(line) < 1000


def test_an_insight_without_a_result_has_a_line_that_says_so() -> None:
    newest = NewestResults(["early", "late"])
    newest.add([result("early", {"k": n}, n) for n in range(9)])
    assert [row.insight for row in newest.rows(4)] == ["early"] * 3 + ["late"]
    assert newest.rows(4)[-1] == NewestResult("late", "", "no result yet", "", 0)
