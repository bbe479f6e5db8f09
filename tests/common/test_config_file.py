"""Configuration files into dataclasses: what each type takes, and what is told of the rest."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fogline.common.config_file import Reader, port, read_yaml, within
from fogline.common.errors import DataError, UsageError

BASE = Path("/base")


@dataclass(frozen=True)
class Inner:
    need: str
    share: float = within(0, 1, 0.5)


@dataclass(frozen=True)
class Outer:
    text: str = ""
    flag: bool = False
    whole: int = 1
    number: float = 1.0
    maybe: float | None = within(-5, 5, None)
    port: int = port()
    path: Path | None = None
    inner: Inner | None = None
    inners: tuple[Inner, ...] = ()
    names: tuple[str, ...] = ()
    others: Mapping[str, Inner] = field(default_factory=dict)
    bounded: int = within(2, 4, 3)


def make(data: Any) -> Outer:
    return Reader(BASE, "text: a").make(Outer, data, "file")


def test_every_type() -> None:
    data = {
        "text": "a", "flag": True, "whole": 0, "number": 2, "maybe": -5, "port": 65535,
        "path": "x/y", "inner": {"need": "n", "share": 1}, "inners": [{"need": "a"}],
        "names": ["b"], "others": {"o": {"need": "c"}}, "bounded": 4,
    }  # fmt: skip
    found = make(data)
    assert found == Outer(
        "a", True, 0, 2.0, -5.0, 65535, BASE / "x/y", Inner("n", 1.0), (Inner("a"),), ("b",),
        {"o": Inner("c")}, 4,
    )  # fmt: skip
    assert (type(found.number), type(found.maybe)) == (float, float)
    assert make({}) == Outer()


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (None, "file: must be a mapping"),
        ({1: 2}, "file: must be a mapping"),
        ({"colour": 1, "size": 2}, "file: unknown colour, size"),
        ({"text": 1}, "file: text is 1, not a text"),
        ({"text": None}, "file: text is None, not a text"),
        ({"flag": 1}, "flag is 1, not true or false"),
        ({"whole": -1}, "whole is -1, not a whole number, 0 or more"),
        ({"whole": 1.0}, "whole is 1.0, not a whole number"),
        ({"whole": True}, "whole is True, not a whole number"),
        ({"number": 0}, "number is 0, not a number above 0"),
        ({"number": math.nan}, "number is nan, not a number above 0"),
        ({"number": math.inf}, "number is inf, not a number above 0"),
        ({"number": "1"}, "number is '1', not a number above 0"),
        ({"number": 10**400}, "not a number above 0"),
        ({"maybe": 5.1}, "maybe is 5.1, not a number from -5 to 5"),
        ({"maybe": None}, "maybe is None, not a number"),
        ({"port": 65536}, "port is 65536, not a whole number from 0 to 65535"),
        ({"path": ""}, "path is '', not a path"),
        ({"inner": {}}, "file: inner: need is missing"),
        ({"inner": {"need": "a", "share": 2}}, "file: inner: share is 2"),
        ({"inners": {"need": "a"}}, "inners must be a list"),
        ({"inners": [3]}, "inners: must be a mapping"),
        ({"names": "a"}, "names is 'a', not a list of texts"),
        ({"names": [1]}, "names is 1, not a text"),
        ({"others": [1]}, "others: must be a mapping"),
        ({"others": {"o": {}}}, "file: others: o: need is missing"),
        ({"bounded": 1}, "bounded is 1, not a whole number from 2 to 4"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(data: Any, told: str) -> None:
    with pytest.raises(UsageError) as caught:
        make(data)
    assert told in str(caught.value)


def test_only_single_values_are_shown() -> None:
    with pytest.raises(UsageError) as caught:
        make({"text": ["a secret"]})
    assert "file: text is not a text" in str(caught.value)
    assert "secret" not in str(caught.value)
    with pytest.raises(UsageError) as caught:
        make({"whole": "x" * 10_000})
    assert len(str(caught.value)) < 300


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda deep: st.lists(deep, max_size=3) | st.dictionaries(st.text(max_size=5), deep),
        max_leaves=10,
    ),
    st.sampled_from(list(Outer.__dataclass_fields__)),
)
def test_whatever_stands_there_it_is_taken_or_refused(value: Any, key: str) -> None:
    try:
        assert isinstance(make({key: value}), Outer)
    except UsageError:
        return


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        read_yaml(tmp_path / "none")
    file = tmp_path / "file"
    for text in (b"a: [", b"\xff\xfe\x00", b"[" * 5_000, b"!!python/object:os.system {}"):
        file.write_bytes(text)
        with pytest.raises(UsageError, match="not YAML"):
            read_yaml(file)
    file.write_bytes(b"")
    assert read_yaml(file) is None
