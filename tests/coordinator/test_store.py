"""One suite for both databases: what is put comes back, whole or not at all."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from fogline.common.sealed_files import unseal
from fogline.coordinator.errors import RepositoryError
from fogline.coordinator.repository import pipelines_table as stored_module
from fogline.coordinator.repository import snapshot
from fogline.coordinator.repository import store as store_module
from fogline.coordinator.repository.store import Alias, Entry, Store
from fogline.model.jobs import Code, Job, Pipeline, Place
from fogline.model.nodes import SITE, Node
from tests.coordinator.kit import chain, query_job


def test_a_pipeline_comes_back_as_it_was_put(store_url: str) -> None:
    jobs = (
        Job("a", "north", Code("m:f", "0" * 64, "m.py"), (Place("in", "north"),), publish=True),
        Job("ü-日本", "south", chain("x", 1).jobs[0].work, parameters={"x": 1.5, "y": "ß\0"}),
        query_job("q", "a query's text\0"),
        replace(query_job("r", "a query's text\0"), running=False),
    )
    store = Store(store_url)
    assert store.put(Pipeline("p", jobs), "yaml", "jobs: …", 7.0) == 1
    store.close()
    again = Store(store_url)
    stored = again.pipeline("p")
    assert stored is not None
    assert stored.pipeline == Pipeline("p", jobs)
    assert (stored.format, stored.text, stored.revision, stored.at) == ("yaml", "jobs: …", 1, 7.0)
    assert again.pipelines() == (stored,)
    again.close()


def test_replacing_counts_revisions_and_remembers_who_went(store_url: str) -> None:
    store = Store(store_url)
    store.put(chain("p", 3), "yaml", "one", 1.0)
    upstream = {"job-2": {"job-1"}}
    assert store.put(chain("p", 2), "yaml", "two", 2.0, upstream) == 2
    assert store.past_jobs() == {"job-2": frozenset({"job-1"})}
    assert store.put(chain("p", 3), "yaml", "three", 3.0) == 3
    assert store.past_jobs() == {}
    assert store.delete("p", 4.0)
    assert set(store.past_jobs()) == {"job-0", "job-1", "job-2"}
    assert not store.delete("p", 5.0)
    assert store.pipelines() == ()
    store.close()


def test_of_very_many_that_went_the_oldest_are_forgotten(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (snapshot, stored_module):
        monkeypatch.setattr(module, "MOST_PAST", 5)
    store = Store(store_url)
    for number, prefix in enumerate(("a", "b", "c")):
        store.put(chain("p", 2, prefix=prefix), "yaml", prefix, 2.0 * number)
        store.delete("p", 2.0 * number + 1, {f"{prefix}-1": {f"{prefix}-0"}})
    assert len(store.past_jobs()) == 5
    assert set(store.past_jobs()) > {"b-0", "b-1", "c-0", "c-1"}
    assert store.past_jobs()["c-1"] == {"c-0"}
    store.close()
    again = Store(store_url)
    assert len(again.past_jobs()) == 5
    assert set(again.past_jobs()) > {"b-0", "b-1", "c-0", "c-1"}
    again.close()


def test_names_are_values_whatever_signs_they_have(store_url: str) -> None:
    jobs = tuple(replace(job, name=f"{job.name} %s ? :x '\"") for job in chain("p", 2).jobs)
    store = Store(store_url)
    store.put(Pipeline("p", jobs), "yaml", "one", 1.0)
    store.put(Pipeline("p", jobs[:1]), "yaml", "two", 2.0)
    store.close()
    again = Store(store_url)
    assert [stored.pipeline.jobs for stored in again.pipelines()] == [jobs[:1]]
    assert again.past_jobs() == {jobs[1].name: frozenset()}
    again.close()


def test_a_job_of_another_pipeline_is_refused_and_nothing_changes(store_url: str) -> None:
    store = Store(store_url)
    store.put(chain("one", 2), "yaml", "1", 1.0)
    store.put(chain("two", 2, prefix="other"), "yaml", "2", 1.0)
    with pytest.raises(RepositoryError):
        store.put(chain("two", 3), "yaml", "3", 2.0)
    stored = store.pipeline("two")
    assert stored is not None
    assert (stored.text, stored.revision, len(stored.pipeline.jobs)) == ("2", 1, 2)
    assert store.past_jobs() == {}
    store.close()


def test_texts_are_kept_once_and_only_as_long_as_needed(store_url: str) -> None:
    store = Store(store_url)
    same = tuple(query_job(f"q{n}", "the query") for n in range(20))
    store.put(Pipeline("p", same), "ins", "the query", 1.0)
    assert count(store, "texts") == 1
    store.put(chain("p", 1), "yaml", "other", 1.0)
    assert count(store, "texts") == 1
    store.delete("p", 1.0)
    assert count(store, "texts") == 0
    store.close()


def count(store: Store, table: str) -> int:
    with store._engine.connect() as connection:
        return int(connection.execute(text(f"SELECT count(*) FROM {table}")).scalar() or 0)


def test_aliases_nodes_and_events(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "MOST_EVENTS", 50)
    store = Store(store_url)
    store.set_alias(Alias("clean.py", "0" * 64, "clean.py", 5, 1.0))
    assert store.aliases()["clean.py"].sha256 == "0" * 64
    store.set_alias(Alias("clean.py", "1" * 64, "clean.py", 6, 2.0))
    assert store.aliases()["clean.py"].sha256 == "1" * 64
    north = Node("north", SITE, broker="mqtt://h:1", labels={"k": "v"})
    store.remember_nodes([north, Node("south", SITE)], 1.0)
    store.remember_nodes([replace(north, cores=4)], 2.0)
    assert store.nodes()["north"] == (replace(north, cores=4), 2.0)
    store.forget_node("north")
    assert list(store.nodes()) == ["south"]
    for number in range(20):
        store.log(Entry(1.0, "n", {"number": number * 10 + n}) for n in range(10))
    assert count(store, "events") <= 55
    last = store.events(3)
    assert [entry.body["number"] for entry in last] == [197, 198, 199]
    assert store.events(10, after=last[1].id) == last[2:]
    store.close()


def test_a_store_of_another_version_is_refused(store_url: str) -> None:
    Store(store_url).close()
    engine = create_engine(store_url.replace("postgresql://", "postgresql+psycopg://"))
    with engine.begin() as connection:
        connection.execute(text("UPDATE meta SET value = 99"))
    engine.dispose()
    unseal(Path(store_url.removeprefix("sqlite:///")))
    with pytest.raises(RepositoryError, match="version 99"):
        Store(store_url)


def test_a_database_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(RepositoryError) as told:
        Store("postgresql://me:s3cret@127.0.0.1:1/none")
    assert "s3cret" not in str(told.value)
    with pytest.raises(RepositoryError):
        Store(f"sqlite:///{tmp_path / 'no' / 'folder' / 'x.db'}")
    with pytest.raises(RepositoryError):
        Store("mysql://x")
    (tmp_path / "junk.db").write_bytes(b"no database" * 100)
    with pytest.raises(RepositoryError):
        Store(f"sqlite:///{tmp_path / 'junk.db'}")


def test_a_thousand_jobs_take_little_room(tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path / 'store.db'}")
    pipeline = chain("large", 1000)
    for revision in range(3):
        store.put(pipeline, "yaml", f"# {revision}\n" + "jobs: []\n" * 7000, 1.0)
        store.tidy()
    used = sum(path.stat().st_size for path in tmp_path.iterdir())
    assert used < 500_000, used
    store.close()


WRITER = """
import sys
from fogline.coordinator.repository.store import Store
from tests.coordinator.kit import chain
store = Store(sys.argv[1])
store.put(chain("p", 300), "yaml", "300", 1.0)
print("begun", flush=True)
while True:
    for size in (200, 300):
        store.put(chain("p", size), "yaml", str(size), 1.0)
"""


@pytest.mark.site
def test_a_killed_coordinator_leaves_a_whole_pipeline(store_url: str) -> None:
    root = Path(__file__).resolve().parents[2]
    environment = {**os.environ, "PYTHONPATH": f"{root / 'src'}{os.pathsep}{root}"}
    for _ in range(4):
        command = [sys.executable, "-c", WRITER, store_url]
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as writer:
            assert writer.stdout is not None
            assert writer.stdout.readline() == b"begun\n"
            with pytest.raises(subprocess.TimeoutExpired):
                writer.wait(0.1)
            writer.send_signal(signal.SIGKILL)
        store = Store(store_url)
        stored = store.pipeline("p")
        assert stored is not None
        assert stored.pipeline == chain("p", int(stored.text))
        assert len(store.past_jobs()) == 300 - int(stored.text)
        store.close()


def test_a_changed_pipeline_replaces_the_one_before(store_url: str) -> None:
    store = Store(store_url)
    jobs = chain("p", 5).jobs
    store.put(Pipeline("p", jobs), "yaml", "one", 1.0)
    changed = (*jobs[:2], replace(jobs[2], running=False), *jobs[3:])
    store.put(Pipeline("p", changed), "yaml", "two", 2.0)
    shorter = (changed[0], *changed[2:])
    store.put(Pipeline("p", shorter), "yaml", "three", 3.0)
    store.close()
    again = Store(store_url)
    found = again.pipeline("p")
    assert found is not None
    assert (found.pipeline.jobs, found.text, found.revision) == (shorter, "three", 3)
    assert again.past_jobs() == {"job-1": frozenset()}
    again.close()
