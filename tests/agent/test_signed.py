"""Signed insights of a site: what is restricted, what the configuration says, and one that runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from fogline.agent.config.site import parse_config
from fogline.agent.jobs.job import AgentJob, make_job
from fogline.agent.jobs.signed import restricted_topics, signatures
from fogline.agent.supervisor.site import Site
from fogline.broker.mosquitto.access import SITE, Restricted
from fogline.broker.mosquitto.server import Mosquitto
from fogline.common.errors import SetupError, UsageError
from fogline.common.settings import Settings
from fogline.fabric.api.tokens_file import add_token
from fogline.model.jobs import Assignment, Code, Place, Query
from tests.agent.kit import AgentProcess
from tests.agent.rooms import publish, reading
from tests.broker.subscriber import Subscriber, login
from tests.live_folders import contents
from tests.waiting import wait_for

pytestmark = pytest.mark.site

STREAM = (
    's = STREAM FROM mqtt(topic="{topic}", format="{format}", schema="x double, value double");\n'
)
KEY = frozenset({"k"})


def job(name: str, text: str, topic: str = "in", form: str = "json", **more: Any) -> AgentJob:
    query = Query(STREAM.format(topic=topic, format=form) + text, outlet=more.pop("outlet", ""))
    return make_job(Assignment(name, "p", query, **more), Settings())


def signed(name: str, insight: str = "a", key: str = "k", **more: Any) -> AgentJob:
    text = f"{insight} = COMPUTE AVG(x, 5 s) EVERY 5 s WITH SIGNATURE '{key}';\n"
    return job(name, text + "b = COMPUTE MAX(x, 5 s) EVERY 5 s;", **more)


OPEN = "a = COMPUTE AVG(x, 5 s) EVERY 5 s;"


# ── what is restricted ───────────────────────────────────────────────────────────────────────────


def test_the_text_of_a_job_says_it() -> None:
    found = restricted_topics([signed("j")])
    assert signatures([signed("j")]) == {"a": {"j": "k"}, "b": {"j": None}}
    assert found["insights/j/a"] == Restricted("insights/j/a", KEY)
    assert found["insights/j/b"] is None
    assert found["bad/j/s"] is found["late/j/s"] is None


def test_muted_insights_say_nothing_and_others_keep_their_names() -> None:
    muted = signed("j", muted=("a",))
    after = job("j-2", OPEN, outlet="j")
    assert signatures([muted]) == {"b": {"j": None}}
    assert signatures([muted, after]) == {"a": {"j": None}, "b": {"j": None}}
    taking_over = signed("j-2", key="l", outlet="j")
    assert signatures([signed("j"), taking_over])["a"] == {"j": "k l"}
    assert restricted_topics([after, signed("j")])["insights/j/a"] == Restricted(
        "insights/j/a", KEY
    )


def test_who_reads_a_signed_insight_tells_no_more_of_it() -> None:
    reader = job("r", OPEN, "insights/j/a", "insight")
    found = restricted_topics([signed("j"), reader])
    assert found["late/r/s"] == Restricted("late/r/s", KEY)
    assert found["bad/r/s"] == Restricted("bad/r/s", KEY)
    assert found["insights/r/a"] is None
    elsewhere = replace(reader, assignment=replace(reader.assignment, signed={"insights/j/a": "k"}))
    link = "fogline/link/insights/j/a"
    assert restricted_topics([elsewhere])[link] == Restricted(link, None, all_write=True)
    assert restricted_topics([elsewhere])["bad/r/s"] == Restricted("bad/r/s", KEY)


def test_code_that_reads_signed_insights() -> None:
    work = Code("m:f", "0" * 64, "m.py")
    code = AgentJob(Assignment("c", "p", work, (Place("insights/#"),)))
    found = restricted_topics([signed("j"), code])
    assert found["bad/c/insights/#"] == Restricted("bad/c/insights/#", KEY)


# ── the configuration ────────────────────────────────────────────────────────────────────────────


def broker(tmp_path: Path, **values: Any) -> Any:
    (tmp_path / "secret").write_text("word\n", encoding="utf-8")
    return parse_config({"site": "s", "broker": values}, tmp_path, "site.yaml").broker


def test_logins_and_their_keys(tmp_path: Path) -> None:
    readers = {
        "screen": {"password_file": "secret", "keys": ["a", "b"]},
        "x": {"password_file": "secret"},
    }
    found = broker(tmp_path, user="u", password_file="secret", keys=["c"], readers=readers)
    assert found.logins == {"screen": {"a", "b"}, "x": frozenset(), "u": {"c"}}
    assert broker(tmp_path).logins == {}


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"keys": ["a"]}, "those of 'user'"),
        ({"url": "mqtt://h", "keys": ["a"], "user": "u"}, "own Mosquitto"),
        ({"url": "mqtt://h", "readers": {"a": {"password_file": "p"}}}, "own Mosquitto"),
        ({"user": "u", "password_file": "p", "keys": ["a b"]}, "cannot be a key"),
        ({"readers": {"a": {"password_file": "p", "keys": ["#"]}}}, "cannot be a key"),
        ({"readers": {"a:b": {"password_file": "p"}}}, "can be called"),
        ({"readers": {SITE: {"password_file": "p"}}}, "can be called"),
        ({"user": SITE, "password_file": "p"}, "can be called"),
        (
            {"readers": {"u": {"password_file": "p"}}, "user": "u", "password_file": "p"},
            "is 'user'",
        ),
        ({"readers": {"a": {"keys": ["k"]}}}, "password_file is missing"),
        ({"readers": {"a": {"password_file": "p", "keys": "k"}}}, "a list of texts"),
        ({"readers": ["a"]}, "must be a mapping"),
    ],
)
def test_what_cannot_be(tmp_path: Path, values: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        broker(tmp_path, **values)


# ── a site without Spark ─────────────────────────────────────────────────────────────────────────


@pytest.fixture
def site(tmp_path: Path) -> Site:
    config = {"site": "s", "min_free_megabytes": 1, "store": {"metrics": False}}
    return Site(parse_config(config, tmp_path, "site.yaml"))


def test_rules_are_there_before_processes_are_told(site: Site) -> None:
    """And the store confirms that it knows who may read before anybody else hears of the job."""
    told: list[str] = []
    access = site.folder / "broker" / "access"

    class Process:
        running = True
        pid = 1

        def __init__(self, name: str) -> None:
            self.name = name
            self.revision = 0

        def update(self) -> None:
            rules = access.read_text() if access.exists() else ""
            key = site._configs.store().signed.get("a", {}).get("j")
            told.append(f"{self.name} {'insights/j/a' in rules} {key}")
            self.revision = site._configs.revision

    children = {name: Process(name) for name in ("ingest", "engine", "publish", "store")}
    site._ingest, site._engine = children["ingest"], children["engine"]  # type: ignore[assignment]
    site._publish, site._store = children["publish"], children["store"]  # type: ignore[assignment]
    site._children = list(children.values())  # type: ignore[arg-type]
    site.folder.mkdir(parents=True, exist_ok=True)
    site.install([signed("j").assignment], 5)
    others = [f"{name} True k" for name in ("ingest", "engine", "publish", "store")]
    assert told == ["store True k", *others]

    told.clear()
    site.install([replace(signed("j").assignment, running=False)], 5)
    assert told == others, "the same signature is not told first again"

    told.clear()
    site.install([job("o", OPEN).assignment, signed("j").assignment], 5)
    assert told == others, "nor is one that needs no key"

    told.clear()
    children["store"].update = lambda: None  # type: ignore[method-assign]
    with pytest.raises(SetupError, match="the store process does not answer"):
        site.install([signed("j", key="l").assignment], 0.05)
    assert told == [], "nobody was told"


def test_at_an_existing_broker_it_is_said_who_decides(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "j.ins").write_text(signed("j").loaded.text, encoding="utf-8")  # type: ignore[union-attr]
    with Mosquitto(tmp_path / "broker") as other:
        config = {
            "site": "s",
            "jobs": ["j.ins"],
            "broker": {"url": f"mqtt://127.0.0.1:{other.port}"},
        }
        site = Site(parse_config(config, tmp_path, "site.yaml"))
        site._restrict()
        site._restrict()
    said = capfd.readouterr().err
    assert (
        said.count("insights/j/a is signed: who may read it there, the rules of the broker say")
        == 1
    )
    assert "insights/j/b" not in said


# ── a site with Spark ────────────────────────────────────────────────────────────────────────────

QUERY = """
rooms = STREAM FROM mqtt(topic="rooms/+", format="json", time="t", lateness="1 s",
                         schema="room string, x double");
now  = COMPUTE AVG(x, 10 s) BY room WITH SIGNATURE 'plant-7';
open = COMPUTE MAX(x, 10 s) BY room;
"""


def test_a_signed_insight_of_a_live_site(tmp_path: Path) -> None:
    (tmp_path / "screen.secret").write_text("s\n", encoding="utf-8")
    readers = "{screen: {password_file: screen.secret, keys: [plant-7]}}"
    agent = AgentProcess(tmp_path, {"q": QUERY})
    text = agent.config.read_text(encoding="utf-8")
    text = text.replace(
        f"{{port: {agent.mqtt_port}}}", f"{{port: {agent.mqtt_port}, readers: {readers}}}"
    )
    agent.config.write_text(text, encoding="utf-8")
    agent.start()
    try:
        agent.wait_healthy()
        for number, death in enumerate(("", "broker", "agent")):
            if death:
                _kill(agent, death)
            room = f"r{number}"
            holder = Subscriber(agent.mqtt_port, tmp_path, *login("screen", "s"))
            other = Subscriber(agent.mqtt_port, tmp_path)
            publish(agent, f"rooms/{room}", reading(room, 1.0, number * 1_000))
            for client, insight in ((holder, "now"), (holder, "open"), (other, "open")):
                _wait_for_value(client, insight, room)
            assert "insights/q/now" not in other.text
            holder.close()
            other.close()
        _check_store(agent)
        everything = b"".join(contents(tmp_path, ".log"))
        assert b"fogline-site:" not in everything
    finally:
        agent.end()


def _kill(agent: AgentProcess, what: str) -> None:
    """Returns when the site runs again, with another broker."""
    before = agent.status()["broker"]["pid"]
    agent.kill(what)

    def back() -> bool:
        now = agent.status()
        return bool(now.get("healthy")) and now["broker"]["pid"] != before

    wait_for(back, 120, "a healthy site again")


def _wait_for_value(client: Subscriber, insight: str, room: str) -> None:
    wait_for(lambda: client.got(f"insights/q/{insight}", f'"{room}"'), 60, f"{insight} of {room}")


def _check_store(agent: AgentProcess) -> None:
    folder = agent.folder / "test" / "store"
    rights = ["read:values", "read:sql"]
    holder = add_token(folder, "holder", [*rights, "key:plant-7"])
    reader = add_token(folder, "reader", rights)
    wait_for(lambda: _metrics(agent, holder) >= {"now", "open"}, 60, "stored values")
    assert "open" in _metrics(agent, reader)
    assert "now" not in _metrics(agent, reader)


def _metrics(agent: AgentProcess, token: str) -> set[str]:
    address = agent.status()["store"]["address"]
    headers = {"Authorization": f"Bearer {token}"}
    with httpx.Client(base_url=address, headers=headers, trust_env=False, timeout=60) as client:
        latest = {value["metric"] for value in client.get("/v1/latest").json()["values"]}
        text = {"sql": "SELECT DISTINCT metric FROM history"}
        rows = client.post("/v1/sql", json=text).json()["rows"]
        assert {row["metric"] for row in rows} == latest
        return latest
