"""Which nodes there are: from the configuration and from births, whatever the bytes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fogline.broker import BrokerOptions, Message, open_broker
from fogline.control import topics
from fogline.control.announcements import Announcement
from fogline.fabric.membership.directory import MOST_NODES, Directory, is_address
from fogline.fabric.membership.discovery import Discovery
from fogline.fabric.membership.options import FabricOptions
from fogline.model.nodes import OFFLINE, ONLINE, SITE, Node
from tests.fabric.kit_nodes import until

SOUTH = "http://10.0.0.2:80"


def announcement(name: str, store: str, state: str = ONLINE) -> Message:
    node = Node(name, SITE, store=store)
    return Message(topics.announcement(name), Announcement(state, "i", node).encode())


def births(directory: Directory) -> Discovery:
    return Discovery(directory, FabricOptions(control="memory://no-such-broker"))


def test_configured_nodes_come_and_go(tmp_path: Path) -> None:
    directory = Directory("north", tmp_path)
    assert directory.configure({"south": SOUTH, "north": SOUTH, "west": "http://w"}) == []
    assert directory.nodes() == {"south": SOUTH, "west": "http://w"}
    assert Directory("north", tmp_path).nodes() == directory.nodes()
    directory.configure({"west": "http://w2"})
    assert Directory("north", tmp_path).nodes() == {"west": "http://w2"}


def test_wrong_entries_are_told(tmp_path: Path) -> None:
    directory = Directory("north", tmp_path)
    wrong = {"a/b": SOUTH, "": SOUTH, "c": "nowhere", "d": "ftp://x", "e": SOUTH}
    assert directory.configure(wrong) == ["", "a/b", "c", "d"]
    assert directory.nodes() == {"e": SOUTH}


def test_births_bring_addresses_and_deaths_do_not_take_them(tmp_path: Path) -> None:
    directory = Directory("north", tmp_path)
    listener = births(directory)
    for message in (
        announcement("south", SOUTH),
        announcement("north", "http://own"),
        announcement("west", ""),
    ):
        listener.handle_message(message)
    assert directory.nodes() == {"south": SOUTH}
    listener.handle_message(announcement("south", "http://10.0.0.3"))
    assert directory.nodes() == {"south": "http://10.0.0.3"}
    listener.handle_message(announcement("south", "", OFFLINE))
    assert Directory("north", tmp_path).nodes() == {"south": "http://10.0.0.3"}
    listener.handle_message(Message(topics.announcement("south"), b""))
    assert Directory("north", tmp_path).nodes() == {}
    assert listener.bad == 0


def test_the_configuration_goes_before_births(tmp_path: Path) -> None:
    directory = Directory("north", tmp_path)
    births(directory).handle_message(announcement("south", SOUTH))
    directory.configure({"south": "http://other"})
    assert directory.nodes() == {"south": "http://other"}
    directory.configure({})
    assert directory.nodes() == {"south": SOUTH}


@given(
    st.sampled_from(["fogline/nodes/south/birth", "fogline/nodes/a", "x", "fogline/nodes//birth"]),
    st.one_of(
        st.binary(min_size=1, max_size=60),
        st.dictionaries(
            st.sampled_from(["state", "instance", "node"]),
            st.one_of(
                st.sampled_from([ONLINE, "i", None, 5, [], 1e300]),
                st.dictionaries(
                    st.sampled_from(["name", "kind", "store", "labels"]),
                    st.sampled_from(["south", SITE, "javascript:1", 5, None, {}, "http://u:p@h"]),
                ),
            ),
        ).map(lambda data: json.dumps(data).encode()),
    ),
)
def test_hostile_births_change_nothing(topic: str, payload: bytes) -> None:
    directory = Directory("north", Path("/nonexistent"))
    births(directory).handle_message(Message(topic, payload))
    assert directory.nodes() == {}


def test_there_is_an_end_to_births(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fogline.fabric.membership.directory.MOST_NODES", 3)
    directory = Directory("north", tmp_path)
    for number in range(10):
        directory.note_announcement(f"n{number}", SOUTH)
    assert sorted(directory.nodes()) == ["n0", "n1", "n2"]
    directory.note_announcement("n1", "http://new")
    assert directory.nodes()["n1"] == "http://new"
    assert MOST_NODES > 1_000


@pytest.mark.parametrize(
    "damage",
    [b"", b"\x00" * 50, b"00000000\n{}", b"[" * 100_000, b'{"configured": {}, "born": {}}'],
)
def test_a_damaged_file_is_made_anew(tmp_path: Path, damage: bytes) -> None:
    Directory("north", tmp_path).configure({"south": SOUTH})
    (tmp_path / "fabric.json").write_bytes(damage)
    directory = Directory("north", tmp_path)
    assert directory.nodes() == {}
    directory.configure({"south": SOUTH})
    assert Directory("north", tmp_path).nodes() == {"south": SOUTH}


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("http://host", True),
        ("https://host:8443/below", True),
        ("http://[::1]:80", True),
        ("http://user:secret@host", False),
        ("http://host?x=1", False),
        ("http://host#x", False),
        ("http://host:0", False),
        ("http://host:99999", False),
        ("http://ho st", False),
        ("http://host\n", False),
        ("http://" + "h" * 600, False),
        ("HTTP:", False),
        ("", False),
        (None, False),
        (7, False),
    ],
)
def test_addresses(text: object, right: bool) -> None:
    assert is_address(text) is right


def test_births_at_a_broker(tmp_path: Path) -> None:
    url = f"memory://{tmp_path.name}"
    directory = Directory("north", tmp_path)
    listener = Discovery(directory, FabricOptions(control=url))
    listener.start()
    broker = open_broker(url, BrokerOptions())
    try:
        broker.connect(30)
        message = announcement("south", SOUTH)
        retained = Message(message.topic, message.payload, retain=True)
        until(lambda: listener.problem == "", "connected")
        broker.publish([retained], 30).wait(30)
        until(lambda: directory.nodes() == {"south": SOUTH}, "heard of")
        broker.publish([Message(message.topic, b"", retain=True)], 30).wait(30)
        until(lambda: directory.nodes() == {}, "forgotten")
    finally:
        listener.close()
        broker.close()
