"""Mosquitto as a child: it starts, ends with us, keeps its data, and explains why it does not."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from fogline.broker import BrokerOptions, Message, open_broker
from fogline.broker.mosquitto import server as module
from fogline.broker.mosquitto.server import Mosquitto, MosquittoOptions
from fogline.common.errors import SetupError, UsageError
from fogline.common.process.free_ports import free_port
from tests.broker.worlds import eventually, numbered, payloads, receive, send

pytestmark = pytest.mark.site


def gone(pid: int) -> bool:
    """Ended; nobody may have collected its exit code yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_starting_and_stopping_are_repeatable(tmp_path: Path) -> None:
    broker = Mosquitto(tmp_path)
    broker.stop()
    pid = broker.start().pid
    assert broker.start().pid == pid
    assert broker.running
    broker.stop()
    broker.stop()
    assert not broker.running


def test_it_runs_when_it_takes_connections(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broker = Mosquitto(tmp_path)
    answers, while_starting = broker._answers, []

    def look(port: int) -> bool:
        while_starting.append((broker.pid, broker.running))
        return answers(port)

    monkeypatch.setattr(broker, "_answers", look)
    for _ in range(2):
        pid = broker.start().pid
        assert broker.running
        assert while_starting[-1] == (pid, False), "it is another process, and does not answer yet"
        broker.kill()
        assert not broker.running


def test_it_keeps_port_and_data(tmp_path: Path) -> None:
    options = BrokerOptions(client_id="reader", persistent=True)
    broker = Mosquitto(tmp_path).start()
    port = broker.port
    with open_broker(broker.url, options) as reader:
        reader.connect()
        reader.subscribe("x")
    with open_broker(broker.url) as writer:
        writer.connect()
        send(writer, *numbered("x", 5))
    broker.stop()
    with Mosquitto(tmp_path, MosquittoOptions(port=port)), open_broker(broker.url, options) as back:
        back.connect()
        assert len(payloads(receive(back, 5))) == 5
    assert broker.log.read_text().count("Client reader disconnected") == 2


def test_it_listens_on_loopback_only(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="needs a user"):
        MosquittoOptions(host="0.0.0.0")
    text = module.configuration(MosquittoOptions(), 1883, tmp_path)
    assert "listener 1883 127.0.0.1\n" in text


def test_with_a_journal_it_saves_seldom(tmp_path: Path) -> None:
    text = module.configuration(MosquittoOptions(journal=tmp_path / "journal"), 1883, tmp_path)
    assert f"plugin {module.PLUGIN}\n" in text
    assert f"plugin_opt_folder {tmp_path / 'journal'}\nplugin_opt_sync false\n" in text
    assert "persistence true" in text
    assert "autosave" not in text
    synced = MosquittoOptions(journal=tmp_path / "journal", journal_sync=True)
    assert "plugin_opt_sync true\n" in module.configuration(synced, 1883, tmp_path)
    assert "plugin" not in module.configuration(MosquittoOptions(), 1883, tmp_path)


def test_a_journal_that_is_not_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PLUGIN", tmp_path / "none.so")
    Mosquitto(tmp_path / "without").start().stop()
    with pytest.raises(SetupError, match="not built") as caught:
        Mosquitto(tmp_path / "with", MosquittoOptions(journal=tmp_path / "journal")).start()
    assert "native/build.py" in str(caught.value.hint)


def test_with_a_journal_it_keeps_subscriptions_and_retained_messages(tmp_path: Path) -> None:
    broker = Mosquitto(tmp_path, MosquittoOptions(journal=tmp_path / "journal")).start()
    options = BrokerOptions(client_id="reader", persistent=True)
    with open_broker(broker.url, options) as reader:
        reader.connect()
        reader.subscribe("x")
    with open_broker(broker.url) as writer:
        writer.connect()
        send(writer, *numbered("x", 5), Message("kept", b"1", 1, retain=True))
    broker.stop()
    with broker, open_broker(broker.url, options) as back:
        back.connect()
        back.subscribe("kept")
        assert len(payloads(receive(back, 6))) == 6


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(SetupError, match=f"port {port} is taken"):
            Mosquitto(tmp_path, MosquittoOptions(port=port)).start()


@pytest.mark.parametrize("inner", [False, True])
def test_a_free_port_that_is_taken_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inner: bool
) -> None:
    """It takes another one, also for the listener of its own processes."""
    with Mosquitto(tmp_path / "other") as other:
        given = [free_port(), other.port] if inner else [other.port]
        monkeypatch.setattr(
            module, "free_port", lambda *host: given.pop(0) if given else free_port()
        )
        with Mosquitto(tmp_path / "own", MosquittoOptions(inner=inner)) as broker:
            assert not given
            for url in (broker.url, broker.inner_url):
                assert str(other.port) not in url
                with open_broker(url) as client:
                    client.connect()


def test_a_reason_from_its_log(tmp_path: Path) -> None:
    tls = module.ServerTls(tmp_path / "none.pem", tmp_path / "none.key")
    with pytest.raises(SetupError, match="does not start") as caught:
        Mosquitto(tmp_path, MosquittoOptions(tls=tls)).start()
    assert "mosquitto.log" in str(caught.value)


def test_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(module, "PLACES", str(tmp_path))
    with pytest.raises(SetupError, match="apt-get install mosquitto"):
        Mosquitto(tmp_path).start()


def test_it_is_found_outside_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert module.find_mosquitto().endswith("/mosquitto")


def test_it_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib, fogline.broker.mosquitto.server as m\n"
        "broker = m.Mosquitto(pathlib.Path(sys.argv[1])).start()\n"
        "print(broker.pid, flush=True)\n"
        "sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    parent = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    assert not gone(pid)
    parent.kill()
    parent.wait(10)
    eventually(lambda: gone(pid))


def test_it_outlives_the_thread_that_started_it(tmp_path: Path) -> None:
    broker = Mosquitto(tmp_path)
    thread = threading.Thread(target=broker.start)
    thread.start()
    thread.join()
    with open_broker(broker.url) as client:
        client.connect()
        send(client, Message("x", b"1"))
    broker.stop()


def test_a_broker_that_does_not_stop_is_killed(tmp_path: Path) -> None:
    broker = Mosquitto(tmp_path).start()
    os.kill(broker.pid, signal.SIGSTOP)
    broker.stop(timeout=0.1)
    assert not broker.running
    assert gone(broker.pid)
