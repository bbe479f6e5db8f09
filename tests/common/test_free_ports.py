"""Ports for processes that are told theirs."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from fogline.common.errors import SetupError
from fogline.common.process import free_ports
from fogline.common.process.free_ports import free_port


def test_a_port_can_be_listened_on_and_no_connection_gets_it() -> None:
    outgoing = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text(encoding="ascii")
    port = free_port()
    assert port < int(outgoing.split()[0])
    with socket.create_server(("127.0.0.1", port)):
        pass


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> int:
    """The only one there is, not reserved by anybody."""
    only = free_port()
    free_ports._reserved.pop().close()
    monkeypatch.setattr(free_ports, "_FIRST", only)
    monkeypatch.setattr(free_ports, "_COUNT", 1)
    return only


def test_a_port_that_is_taken_is_not_given(port: int) -> None:
    with socket.create_server(("127.0.0.1", port)), pytest.raises(SetupError, match="no free port"):
        free_port()
    assert free_port() == port


@pytest.mark.site
def test_a_port_is_given_once_among_all_processes(port: int) -> None:
    assert free_port() == port
    with pytest.raises(SetupError, match="no free port"):
        free_port()
    ask = f"""
from fogline.common.process import free_ports
free_ports._FIRST, free_ports._COUNT = {port}, 1
free_ports.free_port()
"""
    other = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=False)
    assert "no free port" in other.stderr
    free_ports._reserved.pop().close()
    subprocess.run([sys.executable, "-c", ask], check=True)


def test_a_process_that_asks_often_keeps_few_files_open() -> None:
    for _ in range(free_ports._KEPT + 10):
        free_port()
    assert len(free_ports._reserved) == free_ports._KEPT
