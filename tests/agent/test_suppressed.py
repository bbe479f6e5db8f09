"""Insights that move between jobs of a site: one log and one topic, whoever computes them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from fogline.agent.config.store import StoreConfig
from fogline.agent.engine.suppressed import MutedLogs
from fogline.agent.jobs.job import AgentJob, make_job, routes, sendings, subscriptions
from fogline.agent.jobs.site_jobs import SiteJobs
from fogline.agent.supervisor.store_config import feeds
from fogline.common import settings
from fogline.common.state_files import read_state
from fogline.log import SiteLog, get_position, set_position
from fogline.log.counting import RecordCounter
from fogline.model.jobs import LINK, Assignment, Query, Route
from tests.agent.kit import fill, install

TEXT = (
    's = STREAM FROM mqtt(topic="t", format="json", time="at");\n'
    "m = COMPUTE AVG(x, 5 s) EVERY 5 s;\n"
    'n = COMPUTE MAX(x, 5 s) BY room EVERY 5 s TO mqtt(topic="cmd/{room}")'
)
TO_CLOUD = Route(LINK, "insights/p/n", "mqtt://127.0.0.1:1", "cloud")
OLD = Assignment("p", "p", Query(TEXT, insights=("m", "n")), routes=(TO_CLOUD,))
MUTED = replace(OLD, muted=("n",), routes=())
NEW = Assignment(
    "p-2", "p", Query(TEXT.replace("MAX", "MIN"), insights=("n",), outlet="p"), routes=(TO_CLOUD,)
)
LOG = "insights/p/n"


def made(assignment: Assignment) -> AgentJob:
    return make_job(assignment, settings.load())


def test_muting_is_no_other_computation() -> None:
    assert MUTED.version != OLD.version
    assert (MUTED.run, MUTED.computation) == (OLD.run, OLD.computation)
    assert Assignment.from_json(MUTED.as_json()) == MUTED
    assert Assignment.from_json(NEW.as_json()) == NEW


def test_what_is_muted_is_neither_published_nor_sent_nor_stored() -> None:
    old, muted, new = made(OLD), made(MUTED), made(NEW)
    assert {LOG, "insights/p/m", "to/p/n"} <= set(old.published_logs())
    assert muted.results() == ["insights/p/m"]
    assert not {LOG, "to/p/n"} & set(muted.published_logs())
    assert set(muted.dropped_logs()) == {LOG, "to/p/n"}
    assert {LOG, "to/p-2/n"} <= set(new.published_logs())
    assert new.dropped_logs() == []
    stored = [feed.log for feed in feeds([muted], StoreConfig(metrics=False))]
    assert "insights/p/m" in stored
    assert LOG not in stored


def test_a_route_to_the_topic_of_an_insight_takes_that_insight_alone() -> None:
    assert [route.log for route in routes([made(OLD)])] == [LOG]
    assert sendings(made(replace(MUTED, routes=(TO_CLOUD,)))) == []
    assert [s.key for s in sendings(made(OLD))] == [s.key for s in sendings(made(NEW))]
    everything = replace(OLD, routes=(replace(TO_CLOUD, topic="all"),))
    assert [route.log for route in routes([made(everything)])] == ["insights/p/m", LOG]


def test_who_reads_an_insight_at_its_site_reads_the_same_log_after_a_change() -> None:
    reading = Query(
        f'r = STREAM FROM mqtt(topic="{LOG}", format="insight", schema="value double");\n'
        "top = COMPUTE MAX(value, 60 s) EVERY 60 s"
    )
    reader = made(Assignment("reader", "q", reading))
    assert LOG in reader.logs()
    for computing in ([OLD], [MUTED, NEW]):
        told = subscriptions([*map(made, computing), reader])
        assert [item.log for item in told] == ["t"]


def test_another_job_goes_on_sending_where_the_one_before_was(
    jobs: SiteJobs, logs: SiteLog
) -> None:
    install(jobs, OLD)
    sent = fill(logs, LOG, b"1")
    fill(logs, LOG, b"2")
    (sending,) = sendings(made(OLD))
    set_position(logs.folder(LOG), sending.reader, sent)
    install(jobs, MUTED, revision=2)
    jobs.clean_up(2)
    install(jobs, NEW, revision=3)
    jobs.clean_up(3)
    assert get_position(logs.folder(LOG), sending.reader) == sent


def test_a_route_that_a_running_job_gets_sends_what_comes_from_now_on(
    jobs: SiteJobs, logs: SiteLog
) -> None:
    install(jobs, replace(OLD, routes=()))
    end = fill(logs, LOG, b"1")
    install(jobs, OLD)
    (sending,) = sendings(made(OLD))
    assert get_position(logs.folder(LOG), sending.reader) == end
    install(jobs, replace(OLD, routes=()), revision=2)
    jobs.clean_up(2)
    assert get_position(logs.folder(LOG), sending.reader) is None


def test_a_log_that_another_job_has_taken_over_stays_when_a_job_goes(
    jobs: SiteJobs, logs: SiteLog
) -> None:
    install(jobs, MUTED, NEW)
    for log in (LOG, "insights/p/m"):
        fill(logs, log, b"1")
    install(jobs, OLD)
    assert get_position(logs.folder(LOG), sendings(made(OLD))[0].reader) is None, (
        "all is to be sent"
    )
    jobs.remove(["p-2"], 2)
    assert jobs.release_drained(2, 3), "what is not sent yet, the other one sends"
    jobs.clean_up(3)
    assert logs.folder(LOG).exists()
    jobs.remove(["p"], 4)
    set_position(logs.folder(LOG), sendings(made(OLD))[0].reader, 1 << 40)
    jobs.release_drained(4, 5)
    jobs.clean_up(5)
    assert not logs.folder(LOG).exists()


def test_only_what_is_not_muted_is_appended(tmp_path: Path) -> None:
    muted, found = MutedLogs(tmp_path / "job" / "muted"), []
    append = muted.around(lambda log, *_: found.append(log))
    for logs in ((), (LOG,), ("other",), ()):
        muted.set(logs)
        append(LOG, 1, 1, ())
    assert len(found) == 3
    assert not muted.path.exists()
    muted.set([LOG, "other"])
    assert read_state(muted.path).split() == [LOG, "other"]


def test_what_others_write_into_a_log_is_not_counted(logs: SiteLog, tmp_path: Path) -> None:
    fill(logs, LOG, b"before", b"before")
    old = RecordCounter(logs.folder(LOG), tmp_path / "old")
    new = RecordCounter(logs.folder(LOG), tmp_path / "new", shared=True)
    for counter, wanted in ((old, False), (new, True)):
        counter.count_on(wanted)
    fill(logs, LOG, b"new")
    assert (old.update(), new.update()) == (2, 1)
    old, new = (RecordCounter(logs.folder(LOG), tmp_path / name) for name in ("old", "new"))
    for counter, wanted in ((old, True), (new, False)):
        counter.count_on(wanted)
    fill(logs, LOG, b"old")
    assert (old.update(), new.update()) == (3, 1)
