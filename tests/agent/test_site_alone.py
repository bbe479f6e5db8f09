"""Sites that cannot be shared: killed again and again, without space, at somebody else's broker."""

from __future__ import annotations

import json
import random
import subprocess
import time
from pathlib import Path

import pytest

from fogline.agent.config.site import read_config
from fogline.agent.supervisor.site import Site
from fogline.broker.mosquitto.server import Mosquitto, MosquittoOptions
from fogline.common.process.free_ports import free_port
from tests.agent import kill_matrix
from tests.agent.kill_matrix import VICTIMS
from tests.agent.kit import AgentProcess
from tests.agent.rooms import QUERY, publish, reading, results
from tests.live_folders import contents
from tests.waiting import wait_for

pytestmark = pytest.mark.site


def test_an_existing_broker_with_a_password(tmp_path: Path) -> None:
    """Over a subscription then, because a broker that is not ours has no journal."""
    options = MosquittoOptions(user="fog", password="s3cret line")
    (tmp_path / "secret").write_text("s3cret line\n", encoding="utf-8")
    with Mosquitto(tmp_path / "broker", options) as broker:
        more = f"{{url: 'mqtt://127.0.0.1:{broker.port}', user: fog, password_file: secret}}"
        agent = AgentProcess(tmp_path, {"q": QUERY}, broker=more)
        agent.mqtt_port = broker.port
        agent.start()
        try:
            agent.wait_healthy()
            publish(agent, "rooms/a", reading("a", 1, 0), login=["-u", "fog", "-P", "s3cret line"])
            wait_for(lambda: results(agent, "now", "a"), 60, "value")
            kept = [text for text in contents(tmp_path) if b"s3cret line" in text]
            assert len(kept) == 1, "only the password file holds the password"
            assert "s3cret" not in json.dumps(agent.status())
        finally:
            agent.end()


def test_without_space_the_site_says_so_and_confirms_nothing(tmp_path: Path) -> None:
    config = tmp_path / "site.yaml"
    port = free_port()
    text = f"site: full\nbroker: {{port: {port}}}\nmin_free_megabytes: 1000000000000\n"
    config.write_text(text, encoding="utf-8")
    site = Site(read_config(config))
    site.start()
    try:
        assert "no space" in site.status().broker.state
        command = ["mosquitto_pub", "-p", str(port), "-q", "1", "-t", "a", "-m", "1"]
        with pytest.raises(subprocess.TimeoutExpired):
            subprocess.run(command, timeout=3, check=True)
    finally:
        site.stop()


@pytest.mark.long
def test_kill_matrix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every process is killed three times. What killed ones left behind goes."""
    places = {"FOGLINE_SCRATCH": tmp_path / "scratch", "TMPDIR": tmp_path / "temporary"}
    for name, place in places.items():
        place.mkdir()
        monkeypatch.setenv(name, str(place))
    seed = int(time.time())
    chance = random.Random(seed)
    victims = [victim for _ in range(3) for victim in chance.sample(VICTIMS, len(VICTIMS))]
    outcome = kill_matrix.run(tmp_path, 100_000, 350, victims, seed, print)
    assert outcome.problems() == []
    left = [name for place in places.values() for name in place.glob("[!.]*")]
    assert len([name for name in left if name.name.startswith("fogline-spark-")]) <= len(places)
    assert not [name for name in left if not name.name.startswith("fogline-")]
