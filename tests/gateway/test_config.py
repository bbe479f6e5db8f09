"""The configuration file: what it says, and what is wrong with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fogline.broker.login import with_login
from fogline.common.errors import DataError, UsageError
from fogline.gateway.runtime.config import parse_config, read_config

FULL = """
gateway: gate-7
site: north
folder: data
broker: {port: 1884, user: dev, password_file: secret, sync: true}
control: {url: "mqtt://c:1883", user: g, password_file: secret}
location: {latitude: 52.5, longitude: 13.4}
labels: {floor: 2}
buffer: {hours: 12, megabytes: 100}
"""


def test_a_full_file(tmp_path: Path) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_text(FULL, encoding="utf-8")
    (tmp_path / "secret").write_text("p@ss\n", encoding="utf-8")
    config = read_config(file)
    assert config.folder == tmp_path / "data"
    assert config.broker.port == 1884
    assert config.location is not None
    assert config.location.latitude == 52.5
    assert config.labels == {"floor": "2"}
    assert (config.buffer.hours, config.buffer.megabytes) == (12.0, 100.0)
    assert config.control is not None
    control = config.control
    assert with_login(control.url, control.user, control.password_file) == "mqtt://g:p%40ss@c:1883"


def test_one_of_many(tmp_path: Path) -> None:
    data = {"gateway": "g", "broker": {"url": "mqtt://h:1"}, "gateways": 200}
    config = parse_config(data, tmp_path, "file").with_number(7)
    assert config.gateway == "g-007"
    assert config.folder == tmp_path / "g" / "g-007"
    assert config.gateways == 1


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (None, "must be a mapping"),
        ({}, "'gateway'"),
        ({"gateway": "a/b"}, "'gateway'"),
        ({"gateway": "g", "colour": 1}, "unknown colour"),
        ({"gateway": "g", "broker": {"ports": 1}}, "unknown ports"),
        ({"gateway": "g", "broker": {"port": -1}}, "whole number"),
        ({"gateway": "g", "control": {}}, "url is missing"),
        ({"gateway": "g", "broker": {"host": "0.0.0.0"}}, "needs 'user' and 'password_file'"),
        ({"gateway": "g", "broker": {"host": "10.0.0.1", "user": "u"}}, "'password_file'"),
        ({"gateway": "g", "broker": {"certificate": "a.pem"}}, "both 'certificate' and 'key'"),
        ({"gateway": "g", "location": {"latitude": 1}}, "longitude is missing"),
        ({"gateway": "g", "location": {"latitude": 91, "longitude": 0}}, "-90 to 90"),
        ({"gateway": "g", "buffer": {"hours": float("nan")}}, "above 0"),
        ({"gateway": "g", "labels": [1]}, "labels"),
        ({"gateway": "g", "gateways": 3}, "broker url"),
    ],
)
def test_wrong_files(tmp_path: Path, data: Any, text: str) -> None:
    with pytest.raises(UsageError, match=text):
        parse_config(data, tmp_path, "file")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(DataError):
        read_config(tmp_path / "none")
    (tmp_path / "bad").write_text("a: [", encoding="utf-8")
    with pytest.raises(UsageError, match="YAML"):
        read_config(tmp_path / "bad")
