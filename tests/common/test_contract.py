"""Contracts between processes: what is written is read back, and every key is checked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

from fogline.agent.contracts.engine import EngineStatus
from fogline.common.errors import DataError
from fogline.common.process.contract import ProcessStatus, from_json, to_json
from fogline.fabric.contract import StoreFeed
from fogline.model.question import Question


@dataclass(frozen=True)
class Part:
    name: str
    size: float = 1.0


@dataclass(frozen=True)
class Config:
    number: int
    on: bool
    parts: tuple[Part, ...]
    pair: tuple[str, float | None]
    by_name: Mapping[str, Mapping[str, str | None]]
    question: Question
    tls: Mapping[str, str] | None
    anything: Mapping[str, Any]
    why: str | None = None


CONFIG = Config(
    number=1,
    on=True,
    parts=(Part("a"), Part("b", 2)),
    pair=("x", None),
    by_name={"i": {"j": None, "k": "key"}},
    question=Question(("m_%",), share=0.5),
    tls=None,
    anything={"x": [1, {"y": None}]},
)
DATA = to_json(CONFIG)


def test_what_is_written_is_read_back() -> None:
    for config in (CONFIG, replace(CONFIG, why="because", tls={"ca": "file"})):
        assert from_json(Config, json.loads(json.dumps(to_json(config)))) == config


def test_only_what_is_none_by_default_is_left_out() -> None:
    assert "why" not in DATA
    assert DATA["tls"] is None
    assert to_json(replace(CONFIG, why="because"))["why"] == "because"
    assert to_json(EngineStatus("starting Spark")) == {"state": "starting Spark"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"other": 1}, "Config: unknown key 'other'"),
        ({"number": "1"}, "Config.number must be int, not '1'"),
        ({"number": True}, "Config.number must be int, not True"),
        ({"on": 1}, "Config.on must be bool, not 1"),
        ({"parts": {}}, "Config.parts must be a list, not {}"),
        ({"parts": [{"name": "a", "size": 1}, {"name": "b"}]}, "Config.parts[1]: missing key"),
        ({"parts": [{"name": "a", "size": 1, "x": 1}]}, "Config.parts[0]: unknown key 'x'"),
        ({"parts": [{"name": "a", "size": "1"}]}, "Config.parts[0].size must be float"),
        ({"parts": ["a"]}, "Config.parts[0] must be a mapping, not 'a'"),
        ({"pair": ["a"]}, "Config.pair must have 2 items, not 1"),
        ({"by_name": {"i": {"j": 1}}}, "Config.by_name.i.j must be str, not 1"),
        ({"tls": []}, "Config.tls must be a mapping, not []"),
        ({"why": 1}, "Config.why must be str, not 1"),
    ],
)
def test_what_is_wrong_is_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError) as raised:
        from_json(Config, DATA | change)
    assert message in str(raised.value)


@pytest.mark.parametrize("key", list(DATA))
def test_a_missing_key_is_named(key: str) -> None:
    with pytest.raises(DataError, match=f"Config: missing key '{key}'"):
        from_json(Config, {name: value for name, value in DATA.items() if name != key})


def test_of_contracts_in_use() -> None:
    feed = {"log": "a", "kind": "readings", "leave_out": []}
    assert from_json(StoreFeed, feed) == StoreFeed("a")
    with pytest.raises(DataError, match="unknown key 'wrong'"):
        from_json(StoreFeed, feed | {"wrong": 1})
    with pytest.raises(DataError, match="format must be str"):
        from_json(StoreFeed, feed | {"format": ["json"]})
    with pytest.raises(DataError, match="ProcessStatus: missing key 'state'"):
        from_json(ProcessStatus, {})
    with pytest.raises(DataError, match="ProcessStatus must be a mapping"):
        from_json(ProcessStatus, "running")
