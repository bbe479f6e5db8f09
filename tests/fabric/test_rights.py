"""Who is let in, and what for."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from fogline.common.errors import DataError, UsageError
from fogline.fabric.api.rights import NODE, OWNER, Caller, parse_rights
from fogline.fabric.api.tokens_file import (
    Callers,
    add_token,
    list_tokens,
    own_token,
    remove_token,
)
from tests.fabric.kit_node import SECRET


def bearer(token: str) -> bytes:
    return f"Bearer {token}".encode()


@pytest.mark.parametrize(
    ("rights", "asked", "granted"),
    [
        (["*"], "write:space:a", True),
        (["read:values"], "read:values", True),
        (["read:values"], "write:values", False),
        (["read:*"], "read:space:a", True),
        (["read:*"], "write:space:a", False),
        (["read:space:a"], "read:space:a", True),
        (["read:space:a"], "read:space:ab", False),
        (["read:space:a"], "read:space:*", False),
        (["read:space:*"], "read:space:b", True),
        (["read:space:*"], "read:values", False),
        (["write:space:*"], "read:space:b", False),
        (["key:plant-7"], "read:values", False),
        (["key:*"], "read:values", False),
    ],
)
def test_what_rights_allow(rights: list[str], asked: str, granted: bool) -> None:
    assert Caller("x", parse_rights(rights)).may(asked) is granted


@pytest.mark.parametrize(
    "right", ["", "read", "read:", "values", "**", "read:space:", "read:space:A", "read:space:a b",
              "delete:values", "read:values\n", "read:space:../x", "key", "key:", "key:a b",
              "key:a,b",
              "key:a\n", "key:#", "key:+", "key:'", "key:ü", "key:-a", "key:a/b", "key:**",
              "key:" + "a" * 65, "read:key:a"]
)  # fmt: skip
def test_rights_that_do_not_exist(right: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        parse_rights([right])
    with pytest.raises(UsageError):
        add_token(tmp_path, "a", [right])
    assert list_tokens(tmp_path) == {}


@pytest.mark.parametrize(
    ("rights", "keys"),
    [
        (["*"], None),
        (["key:*", "read:values"], None),
        (["read:*"], set()),
        (["read:values", "key:plant-7", "key:a.b_c@d-e"], {"plant-7", "a.b_c@d-e"}),
        (["key:" + "a" * 64], {"a" * 64}),
    ],
)
def test_keys(rights: list[str], keys: set[str] | None) -> None:
    assert Caller("x", parse_rights(rights)).keys == keys


def test_owner_and_nodes_hold_all_keys() -> None:
    assert OWNER.keys is None
    assert NODE.keys is None


def test_tokens_are_made_told_once_and_taken_back(tmp_path: Path) -> None:
    callers = Callers(tmp_path)
    first = add_token(tmp_path, "first", ["read:values"])
    second = add_token(tmp_path, "second", ["*"])
    assert list_tokens(tmp_path) == {"first": ("read:values",), "second": ("*",)}
    caller = callers.who(bearer(first))
    assert caller is not None
    assert (caller.name, caller.rights) == ("first", frozenset({"read:values"}))
    for file in tmp_path.iterdir():
        text = file.read_text(encoding="utf-8")
        assert first not in text, file
        assert second not in text, file
        assert file.stat().st_mode & 0o077 == 0, file
    with pytest.raises(UsageError, match="already"):
        add_token(tmp_path, "first", ["*"])
    remove_token(tmp_path, "first")
    assert callers.who(bearer(first)) is None
    assert callers.who(bearer(second)) is not None
    with pytest.raises(UsageError, match="unknown token"):
        remove_token(tmp_path, "first")


@pytest.mark.parametrize("name", ["", "-x", "a b", "a/b", "x" * 65, "a\n", "é"])
def test_names_of_tokens(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        add_token(tmp_path, name, ["*"])


def test_the_owner_the_nodes_and_nobody_else(tmp_path: Path) -> None:
    callers = Callers(tmp_path, SECRET)
    own = own_token(tmp_path)
    assert (tmp_path / "token").stat().st_mode & 0o777 == 0o600
    assert callers.who(bearer(own)) == OWNER
    assert callers.who(b"bearer  " + own.encode() + b" ") == OWNER
    assert callers.who(bearer(SECRET)) == NODE
    assert NODE.may("write:copies")
    assert not NODE.may("write:values")
    for wrong in (b"", b"Bearer", b"Bearer ", own.encode(), b"Basic " + own.encode(), b"\xff" * 99,
                  bearer(own[:-1]), bearer(own + "x"), bearer("")):  # fmt: skip
        assert callers.who(wrong) is None, wrong
    assert own not in repr(callers)
    assert SECRET not in repr(callers)


def test_a_new_own_token_counts_and_the_old_one_no_longer(tmp_path: Path) -> None:
    callers = Callers(tmp_path)
    old = own_token(tmp_path)
    assert callers.who(bearer(old)) == OWNER
    (tmp_path / "token").unlink()
    assert callers.who(bearer(old)) is None
    assert callers.who(bearer(own_token(tmp_path))) == OWNER


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", '{"tokens": []}', '{"tokens": {"a": {}}}', "[" * 100_000,
     '{"tokens": {"a": {"hash": "zz", "rights": ["*"]}}}',
     '{"tokens": {"a": {"hash": "00", "rights": ["*"]}}}',
     json.dumps({"tokens": {"a": {"hash": "00" * 32, "rights": ["all"]}}}),
     json.dumps({"tokens": {"a": {"hash": "00" * 32, "rights": []}}})],
)  # fmt: skip
def test_a_damaged_file_lets_nobody_in_but_the_owner(text: str, tmp_path: Path) -> None:
    callers = Callers(tmp_path)
    token = add_token(tmp_path, "a", ["*"])
    assert callers.who(bearer(token)) is not None
    (tmp_path / "tokens.json").write_text(text, encoding="utf-8")
    assert callers.who(bearer(token)) is None
    assert callers.who(bearer(own_token(tmp_path))) == OWNER
    with pytest.raises(DataError):
        add_token(tmp_path, "b", ["*"])


def test_short_secrets_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        Callers(tmp_path, "short")
    (tmp_path / "token").write_text("x", encoding="utf-8")
    with pytest.raises(DataError):
        Callers(tmp_path)


def test_changes_at_the_same_time_are_all_kept(tmp_path: Path) -> None:
    def add(number: int) -> None:
        for place in range(5):
            add_token(tmp_path, f"t{number}-{place}", ["read:values"])

    threads = [threading.Thread(target=add, args=[number]) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(list_tokens(tmp_path)) == 20
