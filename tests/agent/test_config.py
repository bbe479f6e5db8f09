"""The site's configuration: defaults, and a clear word about everything that is wrong."""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from fogline.agent.config.site import SiteConfig, read_config
from fogline.agent.coordination.manager import Manager
from fogline.agent.supervisor.site import Site
from fogline.common.errors import FoglineError, SetupError, UsageError
from fogline.common.settings import Settings
from fogline.spark.session.session import _configuration

pytestmark = pytest.mark.spark


def write(folder: Path, text: str) -> Path:
    path = folder / "site.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_two_lines_are_enough(tmp_path: Path) -> None:
    config = read_config(write(tmp_path, "site: north\njobs: [city.ins]\n"))
    assert config.site == "north"
    assert config.folder == tmp_path / "north"
    assert [(job.name, job.query) for job in config.jobs] == [("city", tmp_path / "city.ins")]
    assert config.broker.url is None
    assert config.engine == "local[*]"


def test_everything_can_be_said(tmp_path: Path) -> None:
    text = """
site: north
folder: data
jobs: [{name: heat, query: q/a.ins}, b.ins]
broker: {url: "mqtts://host:8883", user: u, password_file: secret, ca: ca.pem}
retention: {hours: 2, megabytes: 100}
engine: spark://host:7077
engine_host: 10.0.0.7
memory: 2g
trigger_ms: 200
live_seconds: 30
http_port: 8080
metrics_seconds: 1
min_free_megabytes: 10
"""
    config = read_config(write(tmp_path, text))
    assert config.folder == tmp_path / "data"
    assert [job.name for job in config.jobs] == ["heat", "b"]
    assert config.broker.password_file == tmp_path / "secret"
    assert config.retention.hours == 2.0
    assert (config.trigger_ms, config.live_seconds, config.http_port) == (200, 30.0, 8080)
    assert config.engine_host == "10.0.0.7"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "must be a mapping"),
        ("[1, 2]", "must be a mapping"),
        ("jobs: []", "'site' must be"),
        ("site: 3", "'site' must be"),
        ("site: a\ncolour: red", "unknown colour"),
        ("site: a\nbroker: {prot: 1}", "unknown prot"),
        ("site: a\nbroker: 1883", "must be a mapping"),
        ("site: a\nbroker: {port: many}", "'many', not a whole number"),
        ("site: a\nbroker: {port: -1}", "-1, not a whole number"),
        ("site: a\nretention: {hours: 0}", "0, not a number above 0"),
        ("site: a\nengine: 4", "4, not a text"),
        ("site: a\nengine: banana", "'banana', which is no Spark master"),
        ("site: a\nengine: local[x]", "which is no Spark master"),
        ("site: a\nengine: yarn\nengine_host: http://here:80", "no address of this machine"),
        ("site: a\nengine: yarn\nengine_host: ''", "no address of this machine"),
        ("site: a\nengine_host: 10.0.0.7", "is for a Spark cluster, and the engine is local[*]"),
        ("site: a\nengine: none\nengine_host: 10.0.0.7", "is for a Spark cluster"),
        ("site: a\nmemory: lots", "'lots', which is no size"),
        ("site: a\ntrigger_ms: true", "True, not a whole number"),
        ("site: a\nlive_seconds: 1", "1, not a number from 5 to 86400"),
        ("site: a\nlive_seconds: long", "'long', not a number"),
        ("site: a\njobs: city.ins", "must be a list"),
        ("site: a\njobs: [{name: x}]", "needs 'query'"),
        ("site: a\njobs: [{query: x.ins, start: soon}]", "'soon', not oldest or now"),
        ("site: a\njobs: [{query: x.ins, name: a/b}]", "part of a topic"),
        ("site: [", "is not YAML"),
        ("site: !!python/object/apply:os.system ['true']", "is not YAML"),
        ("? {a: 1}\n: 2", "is not YAML"),
    ],
)
def test_what_is_wrong_is_told(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_config(write(tmp_path, text))
    assert told in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    "engine", ["none", "local", "local[4]", "local[2, 3]", "spark://a:7077,b:7077", "yarn"]
)
def test_engines_that_spark_knows(tmp_path: Path, engine: str) -> None:
    text = f"site: a\nengine: '{engine}'\nmemory: 512M\n"
    assert read_config(write(tmp_path, text)).engine == engine


def test_how_long_batches_last(tmp_path: Path) -> None:
    text = "site: a\ntrigger_ms: 200\nlive_seconds: 7.5\n"
    config = Site(read_config(write(tmp_path, text)))._configs.engine()
    assert (config.trigger_ms, config.live_ms) == (200, 7500)


@pytest.mark.parametrize("host", ["10.0.0.7", "north.example", "n", "fd00::7"])
def test_where_a_cluster_reaches_the_driver(tmp_path: Path, host: str) -> None:
    text = f"site: a\nengine: spark://a:7077\nengine_host: '{host}'\n"
    config = Site(read_config(write(tmp_path, text)))._configs.engine()
    spark = _configuration(Settings(engine=config.engine, engine_host=config.engine_host))
    assert (spark["spark.driver.host"], spark["spark.driver.bindAddress"]) == (host, host)
    assert _configuration(Settings())["spark.driver.host"] == "127.0.0.1"


@pytest.mark.parametrize("folder", ["file", "file/below", "/proc/none"])
def test_a_folder_that_cannot_be_is_told(tmp_path: Path, folder: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="the site cannot be kept in"):
        Site(read_config(write(tmp_path, f"site: a\nfolder: {folder}\n"))).start()


def test_a_port_for_health_that_is_taken_is_told(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        text = f"site: a\nengine: none\nhttp_port: {port}\n"
        site = Site(read_config(write(tmp_path, text)))
        try:
            with pytest.raises(SetupError, match=f"http_port {port} cannot be used"):
                site.start()
        finally:
            site.stop()


def test_hostile_files(tmp_path: Path) -> None:
    deep = write(tmp_path, "site: " + "[" * 5000)
    with pytest.raises(FoglineError):
        read_config(deep)
    deep.write_bytes(b"\xff\xfe\x00site")
    with pytest.raises(FoglineError):
        read_config(deep)
    with pytest.raises(FoglineError, match="cannot be read"):
        read_config(tmp_path / "none.yaml")


def test_the_store_can_be_told_what_to_keep(tmp_path: Path) -> None:
    text = """
site: north
store:
  hours: 24
  megabytes: 100
  memory_megabytes: 16
  insights: false
  port: 7481
  secret_file: secret
  nodes: {south: "http://south:7481"}
  topics: ["plant/#", {topic: grid, entity: meter, time: t, fields: [p, q], prefix: grid.}]
"""
    store = read_config(write(tmp_path, text)).store
    assert (store.hours, store.megabytes, store.port, store.insights) == (24.0, 100.0, 7481, False)
    assert store.secret_file == tmp_path / "secret"
    assert store.nodes == {"south": "http://south:7481"}
    assert [(t.topic, t.fields) for t in store.topics] == [("plant/#", ()), ("grid", ("p", "q"))]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("3", "must be a mapping"),
        ("{colour: red}", "unknown colour"),
        ("{hours: 0}", "not a number above 0"),
        ("{enabled: 1}", "not true or false"),
        ("{nodes: [a]}", "must be a mapping"),
        ("{nodes: {a: 1}}", "not a text"),
        ("{topics: plant}", "must be a list"),
        ("{topics: [{entity: a}]}", "has no topic"),
        ("{topics: [{topic: a, fields: x}]}", "not a list of texts"),
        ("{topics: [{topic: a, colour: x}]}", "unknown colour"),
        ("{topics: [7]}", "must be a mapping"),
    ],
)
def test_what_is_wrong_about_the_store(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        read_config(write(tmp_path, f"site: a\nstore: {text}\n"))


def test_the_address_that_compositions_name_can_be_told(tmp_path: Path) -> None:
    site = MagicMock()
    site.config = SiteConfig("s", tmp_path, announce_http="http://north.example:7490")
    site.config = replace(site.config, control=replace(site.config.control, url="mqtt://c:1"))
    site.http_address, site.store_address, site.broker.address = (
        "http://127.0.0.1:1",
        "",
        "mqtt://b",
    )
    assert Manager(site).describe().address == "http://north.example:7490"
    site.config = replace(site.config, announce_http="")
    assert Manager(site).describe().address == "http://127.0.0.1:1"
