"""The REST interface, also against people who mean no good."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from httpx import Client

from fogline.common.http.server import Server
from fogline.coordinator.api import bodies
from fogline.coordinator.api.rest import OPEN, make_app
from fogline.coordinator.api.routes import ROUTES
from fogline.coordinator.api.service import Service
from fogline.coordinator.api.tokens import Tokens
from fogline.coordinator.errors import RepositoryError
from fogline.coordinator.pipelines import packages as packages_module
from fogline.deploy.manifest.composition import JOB_FIELDS
from tests.coordinator.kit import CODE, Rig, composition
from tests.waiting import wait_for

TOKEN = "a-token-for-these-tests"
YAML = {"Content-Type": "application/yaml"}
PLAN = {"Content-Type": "application/json"}


@pytest.fixture
def rig(make_rig: Callable[..., Rig]) -> Rig:
    return make_rig().begin()


@pytest.fixture
def client(rig: Rig) -> Iterator[Client]:
    tokens = Tokens(["another-token-of-mine", TOKEN])
    server = Server("127.0.0.1", 0)
    server.start(make_app(rig.service, tokens))
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with Client(base_url=server.address, headers=headers, trust_env=False, timeout=60) as made:
        yield made
    server.stop()


def refused(reply: Any, status: int) -> dict[str, Any]:
    assert reply.status_code == status, reply.text
    told = reply.json()
    assert set(told) == {"error", "hint", "problems"}
    assert TOKEN not in reply.text
    return dict(told)


@pytest.mark.site
def test_a_pipeline_over_rest(client: Client) -> None:
    told = client.put("/pipelines/p", content=composition(2), headers=YAML)
    assert told.status_code == 200, told.text
    assert told.json()["diff"]["counts"] == {"added": 2}
    assert not client.put("/pipelines/p", content=composition(2), headers=YAML).json()["changed"]
    wait_for(lambda: {job["state"] for job in client.get("/jobs").json()} == {"running"})
    assert client.get("/pipelines").json()[0]["jobs"] == ["job-0", "job-1"]
    assert client.get("/pipelines/p").json()["text"] == composition(2)
    assert client.get("/jobs/job-0").json()["description"]["node"] == "north"
    assert client.get("/jobs/job-0/logs?lines=1").json() == {"lines": ["job-0 says"]}
    changed = client.patch("/jobs/job-0", json={"parameters": {"limit": 3}, "running": False})
    assert (changed.json()["parameters"], changed.json()["running"]) == ({"limit": 3}, False)
    assert client.delete("/jobs/job-0").status_code == 200
    refused(client.delete("/jobs/job-0"), 404)
    assert client.delete("/pipelines/p").json()["deleted"]
    refused(client.delete("/pipelines/p"), 404)
    refused(client.get("/pipelines/p"), 404)
    refused(client.get("/jobs/job-0"), 404)


@pytest.mark.site
def test_the_difference_is_shown_by_get_and_post_and_dry_run(client: Client) -> None:
    client.put("/pipelines/p", content=composition(2), headers=YAML)
    other = composition(3).encode()
    shown = [
        client.request("GET", "/pipelines/p/diff", content=other),
        client.post("/pipelines/p/diff", content=other, headers=YAML),
        client.put("/pipelines/p?dry_run=true", content=other, headers=YAML),
    ]
    for reply in shown:
        assert reply.json()["diff"]["counts"] == {"added": 1, "unchanged": 2}, reply.text
    assert len(client.get("/jobs").json()) == 2
    assert client.get("/pipelines/p/diff").json()["empty"]
    client.patch("/jobs/job-0", json={"running": False})
    assert client.get("/pipelines/p/diff").json()["diff"]["counts"]["started"] == 1
    refused(client.get("/pipelines/none/diff"), 404)


@pytest.mark.site
def test_a_job_alone_over_rest(client: Client) -> None:
    job = {"name": "x", "site": "north", "job_path": "clean.py", "entry": "clean:clean"}
    job |= {"source_topic": "in", "sink_topic": "out"}
    assert client.post("/jobs", json=job).status_code == 201
    assert client.post("/jobs", json=job).status_code == 200
    refused(client.post("/jobs", json={**job, "sink_topic": "y"}), 409)
    assert client.get("/pipelines/x/diff").json()["empty"]
    told = refused(client.post("/jobs", json={**job, "name": "z", "site": "nowhere"}), 422)
    assert told["problems"][0]["line"] > 0


def test_packages_nodes_events(client: Client, rig: Rig) -> None:
    told = client.put("/packages/jobs/clean.py", content=CODE.encode())
    assert told.json()["size"] == len(CODE)
    assert [p["name"] for p in client.get("/packages").json()] == ["clean.py", "jobs/clean.py"]
    assert [node["name"] for node in client.get("/nodes").json()] == ["north", "south"]
    refused(client.delete("/nodes/north"), 409)
    refused(client.delete("/nodes/nobody"), 404)
    wait_for(lambda: client.get("/events?limit=5").json())
    for query in ("limit=0", "limit=x", "after=-1", f"after={10**30}"):
        refused(client.get(f"/events?{query}"), 400)
    assert client.get("/progress?settle=60").json() == {
        "jobs": 0, "states": {}, "extra": 0, "settled": True,
    }  # fmt: skip
    for settle in ("-1", "61", "nan", "inf", "soon"):
        refused(client.get(f"/progress?settle={settle}"), 400)


@pytest.mark.parametrize(
    "name", ["..%2F..%2Fetc%2Fpasswd", "..%2F..", "%00.py", "a.exe", "%F0%9F%A6%8A.py"]
)
def test_package_names_with_tricks(client: Client, name: str, rig: Rig) -> None:
    refused(client.put(f"/packages/{name}", content=CODE.encode()), 400)
    assert list(rig.store.aliases()) == ["clean.py"]


@pytest.mark.site
def test_names_in_all_alphabets(client: Client) -> None:
    text = composition(1, prefix="müll-日本-🦊")
    assert client.put("/pipelines/süd-日本", content=text.encode(), headers=YAML).status_code == 200
    assert client.get("/jobs/müll-日本-🦊-0").json()["name"] == "müll-日本-🦊-0"
    for bad in ("a%00b", "%0a", "a%2Bb", "%23", "%24SYS", "x" * 121, "%E2%80%AE"):
        refused(client.put(f"/pipelines/{bad}", content=text.encode(), headers=YAML), 400)


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (b"jobs: [", YAML),
        (b"- just\n- a list", YAML),
        (b"&a [*a, *a]", YAML),
        (b"!!python/object/apply:os.system ['true']", YAML),
        (b"[" * 100_000, YAML),
        (b"[" * 100_000, PLAN),
        (b"{", PLAN),
        (b"", YAML),
        (b"jobs:\n- name: x\n  site: north\n  entry: 'os:system'\n", YAML),
    ],
)
def test_broken_texts(client: Client, body: bytes, headers: dict[str, str]) -> None:
    told = refused(client.put("/pipelines/p", content=body, headers=headers), 422)
    assert told["problems"]
    assert client.get("/pipelines").json() == []


@pytest.mark.site
def test_bodies_that_are_wrong(client: Client) -> None:
    refused(client.put("/pipelines/p", content=b"\xff\xfe", headers=YAML), 400)
    refused(client.put("/pipelines/p", content=b"x", headers={"Content-Type": "image/png"}), 400)
    for body in (b"", b"[]", b"{", b'{"a": NaN}', b"[" * 100_000, b"\xff"):
        refused(client.post("/jobs", content=body), 400)
    client.put("/pipelines/p", content=composition(1), headers=YAML)
    for wrong in (
        '{"x": 1}',
        '{"running": "yes"}',
        '{"parameters": []}',
        '{"parameters": {"a": []}}',
    ):
        refused(client.patch("/jobs/job-0", content=wrong), 400)
    refused(client.put("/pipelines/p?dry_run=perhaps", content=b"", headers=YAML), 400)


def test_bodies_that_are_too_large(
    client: Client, monkeypatch: pytest.MonkeyPatch, rig: Rig
) -> None:
    refused(client.put("/pipelines/p", content=b"#" * (bodies.LARGEST_TEXT + 1), headers=YAML), 413)
    refused(client.post("/jobs", content=b" " * (bodies.LARGEST_TEXT + 1)), 413)
    monkeypatch.setattr(packages_module, "LARGEST", 1 << 20)
    refused(client.put("/packages/big.py", content=b"#" * ((1 << 20) + 1)), 413)
    assert list(rig.store.aliases()) == ["clean.py"]


@pytest.mark.parametrize(
    "header", ["", TOKEN, f"Basic {TOKEN}", "Bearer", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}"]
)
def test_nothing_without_a_token(
    client: Client, header: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    for address in ROUTES:
        path = re.sub(r"\{.*?\}", "x", address.path)
        reply = client.request(address.method, path, headers={"Authorization": header})
        if address.path in OPEN:
            assert reply.status_code == 200
        else:
            refused(reply, 401)
            assert reply.headers["WWW-Authenticate"] == "Bearer"
    refused(client.get("/nothing", headers={"Authorization": header}), 401)
    assert TOKEN not in caplog.text


def test_unknown_addresses_and_methods(client: Client) -> None:
    refused(client.get("/nothing"), 404)
    refused(client.post("/nodes"), 405)
    refused(client.get("/jobs/a/b"), 404)


def test_a_store_that_fails_is_not_now_and_bugs_are_told_as_such(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(self: Service) -> list[Any]:
        raise RepositoryError("the disk is full", "make room")

    monkeypatch.setattr(Service, "jobs", away)
    assert refused(client.get("/jobs"), 503)["hint"] == "make room"
    monkeypatch.setattr(Service, "jobs", lambda self: 1 / 0)
    assert "ZeroDivisionError" not in refused(client.get("/jobs"), 500)["error"]


def test_the_description_lists_every_route(client: Client) -> None:
    told = client.get("/openapi.json").json()
    described = {(m.upper(), path) for path, item in told["paths"].items() for m in item}
    assert described == {(a.method, a.path.replace(":path", "")) for a in ROUTES}
    ids = [op["operationId"] for item in told["paths"].values() for op in item.values()]
    assert len(ids) == len(set(ids))


def test_the_description_names_a_jobs_fields_and_the_token(client: Client) -> None:
    told = client.get("/openapi.json").json()
    body = told["paths"]["/jobs"]["post"]["requestBody"]["content"]["application/json"]
    assert set(body["schema"]["properties"]) == set(JOB_FIELDS)
    used = {name for op in told["paths"]["/jobs"].values() for s in op["security"] for name in s}
    assert used == told["components"]["securitySchemes"].keys() == {"token"}


def test_the_health_of_nodes_is_told(client: Client, rig: Rig) -> None:
    def healthy() -> dict[str, bool | None]:
        return {node["name"]: node["healthy"] for node in client.get("/nodes").json()}

    assert set(healthy().values()) == {None}
    rig.control.healthy["north"] = False
    assert healthy()["north"] is False


def test_the_page_needs_nothing_from_elsewhere(client: Client) -> None:
    page = client.get("/docs")
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    assert not re.search(r"https?://|src=|href=|<script", page.text)
    for address in ROUTES:
        assert address.path.replace(":path", "") in page.text
    assert client.get("/redoc").status_code == 404


def test_health_tells_what_is_wrong(client: Client, rig: Rig) -> None:
    assert client.get("/health").json()["ok"]
    rig.control.connected, rig.control.problem = False, "nobody listens"
    reply = client.get("/health")
    assert reply.status_code == 503
    assert reply.json()["problem"] == "nobody listens"
    assert json.dumps(reply.json())
