"""The fabric's secret: made, rotated, handed to sites, kept, shown to other nodes."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from fogline.agent.coordination.fabric_secret import SiteSecret
from fogline.common.errors import DataError, UsageError
from fogline.common.fabric_secret import FILE, FabricSecret, load_secret, save_secret
from fogline.fabric.api.rights import NODE
from fogline.fabric.api.tokens_file import Callers
from fogline.fabric.errors import NodeRefused
from fogline.fabric.http.secrets import Secrets
from fogline.fabric.membership.node_client import NodeClient
from tests.fabric.kit_nodes import SECRET, running

NOW = 1_800_000_000.0
HOUR = 3600.0


def accepted(secret: FabricSecret, now: float) -> list[str]:
    return [secret.secret, *(old.secret for old in secret.replaced if old.until > now)]


def test_a_rotation_keeps_the_secrets_of_before_for_a_while() -> None:
    first = FabricSecret.make(NOW)
    second = first.rotate(NOW + 10, HOUR)
    third = second.rotate(NOW + 20, HOUR)
    assert first.version < second.version < third.version
    assert len({first.secret, second.secret, third.secret}) == 3
    assert accepted(third, NOW + 21) == [third.secret, second.secret, first.secret]
    assert accepted(third, NOW + 10 + HOUR) == [third.secret, second.secret]
    assert accepted(third, NOW + 20 + HOUR) == [third.secret]


def test_rotating_at_once_ends_every_other() -> None:
    rotated = FabricSecret.make(NOW).rotate(NOW, HOUR).rotate(NOW + 1, 0)
    assert accepted(rotated, NOW + 1) == [rotated.secret]
    assert rotated.replaced == ()


def test_many_rotations_stay_small() -> None:
    secret = FabricSecret.make(NOW)
    for number in range(100):
        secret = secret.rotate(NOW + number, 30 * 86400)
    assert len(secret.replaced) == 16
    assert FabricSecret.from_json(json.loads(json.dumps(secret.as_json()))) == secret


def test_a_clock_that_goes_back_makes_a_newer_one_all_the_same() -> None:
    first = FabricSecret.make(NOW)
    assert first.rotate(NOW - 1e6).version == first.version + 1
    assert first.rotate(NOW, above=first.version + 7).version == first.version + 8


def test_what_a_site_had_of_a_coordinator_that_was_reset_counts_for_a_while() -> None:
    before, fresh = FabricSecret.make(NOW), FabricSecret.make(NOW + 100)
    taken = fresh.after(before, NOW + 101)
    assert accepted(taken, NOW + 101) == [fresh.secret, before.secret]
    assert accepted(taken, NOW + 100 + HOUR) == [fresh.secret]
    assert fresh.after(before, NOW + 2 * HOUR).replaced == ()
    at_once = fresh.rotate(NOW + 102, 0)
    assert accepted(at_once.after(taken, NOW + 103), NOW + 103) == [at_once.secret]


def test_a_site_that_missed_rotations_follows_what_the_coordinator_says() -> None:
    first = FabricSecret.make(NOW)
    third = first.rotate(NOW + 1, HOUR).rotate(NOW + 2, HOUR)
    assert third.after(first, NOW + 3) == third


def test_nothing_shows_the_secret() -> None:
    secret = FabricSecret.make(NOW).rotate(NOW, HOUR)
    told = repr(secret) + repr(Secrets([(secret.secret, None)]))
    assert not any(text in told for text in accepted(secret, NOW))


@pytest.mark.parametrize(
    "text",
    [
        *("", "null", "[]", "{}", '"x"', '{"version": 1}', "[" * 100_000),
        '{"version": true, "secret": "0123456789abcdef", "others_until": 1, "replaced": []}',
        '{"version": -1, "secret": "0123456789abcdef", "others_until": 1, "replaced": []}',
        '{"version": 1, "secret": "short", "others_until": 1, "replaced": []}',
        '{"version": 1, "secret": "0123456789abcdef\\n", "others_until": 1, "replaced": []}',
        '{"version": 1, "secret": "0123456789abcdef", "others_until": NaN, "replaced": []}',
        '{"version": 1, "secret": "0123456789abcdef", "others_until": 1, "replaced": [1]}',
        '{"version": 1, "secret": "0123456789abcdef", "others_until": 1}',
    ],
)
def test_a_damaged_file_counts_as_none(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text, encoding="utf-8")
    with pytest.raises(DataError) as told:
        load_secret(tmp_path)
    assert "0123456789" not in str(told.value)
    site = SiteSecret(tmp_path, None)
    assert site.accepted_secrets() == []
    assert FILE in site.problem
    assert site.take(FabricSecret.make(NOW))
    assert SiteSecret(tmp_path, None).version == site.version


def test_a_site_keeps_what_it_was_handed(tmp_path: Path) -> None:
    first = FabricSecret.make(NOW)
    second = first.rotate(NOW + 1, HOUR)
    site = SiteSecret(tmp_path, None, lambda: NOW + 2)
    assert (site.version, site.accepted_secrets(), site.own) == (0, [], False)
    assert site.take(first)
    assert not site.take(first)
    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600
    assert SiteSecret(tmp_path, None).accepted_secrets() == [(first.secret, None)]
    assert site.take(second)
    assert site.accepted_secrets() == [(second.secret, None), (first.secret, NOW + 1 + HOUR)]
    assert not site.take(first)
    assert site.version == second.version


def test_the_configured_file_wins(tmp_path: Path) -> None:
    file = tmp_path / "own"
    file.write_text("a secret of our own\n", encoding="utf-8")
    save_secret(tmp_path, FabricSecret.make(NOW))
    site = SiteSecret(tmp_path, file)
    assert site.own
    assert not site.take(FabricSecret.make(NOW + 1))
    assert site.accepted_secrets() == [("a secret of our own", None)]


def test_secrets_end_at_their_time() -> None:
    secrets = Secrets([("the newest of them", None), ("the one of before", NOW)])
    assert secrets.accepted_secrets(lambda: NOW - 1) == ("the newest of them", "the one of before")
    assert secrets.accepted_secrets(lambda: NOW) == ("the newest of them",)
    with pytest.raises(UsageError):
        secrets.change([("short", None)])


def test_what_is_missing_is_said_with_what_to_do() -> None:
    assert "site.yaml: store: {secret_file: fabric.secret}" in Secrets().missing
    assert "fogline coordinator" in Secrets(managed=True).missing


def test_callers_follow_a_rotation(tmp_path: Path) -> None:
    secrets = Secrets("the secret of before")
    callers = Callers(tmp_path, secrets)
    assert callers.who(b"Bearer the secret of before") == NODE
    secrets.change([("the secret of today", None), ("the secret of before", 1.0)])
    assert callers.who(b"Bearer the secret of today") == NODE
    assert callers.who(b"Bearer the secret of before") is None


def test_a_node_shows_the_secret_that_the_other_accepts(tmp_path: Path) -> None:
    with running(tmp_path, "north") as (north,):
        secrets = Secrets([("a newer one than theirs", None), (SECRET, None)])
        client = NodeClient(north.address, secrets, "north")
        assert client.state()["node"] == "north"
        secrets.change([("a newer one than theirs", None)])
        with pytest.raises(NodeRefused) as told:
            client.state()
        assert "another secret" in told.value.message
        secrets.change([])
        with pytest.raises(NodeRefused) as told:
            client.state()
        assert "no secret" in told.value.message
