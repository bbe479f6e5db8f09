"""Ports for processes that are told theirs."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from fogline import free_ports
from fogline.errors import SetupError
from fogline.free_ports import free_port


def test_a_port_can_be_listened_on_and_no_connection_gets_it() -> None:
    outgoing = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text(encoding="ascii")
    port = free_port()
    assert port < int(outgoing.split()[0])
    with socket.create_server(("127.0.0.1", port)):
        pass


def test_a_port_that_is_taken_is_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    monkeypatch.setattr(free_ports, "_FIRST", port)
    monkeypatch.setattr(free_ports, "_COUNT", 1)
    assert free_port() == port
    with socket.create_server(("127.0.0.1", port)), pytest.raises(SetupError, match="no free port"):
        free_port()
