"""Jobs run once for each day and each week, whatever the clock does and however many processes look."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import memlog
from tests.service.jobs.conftest import Clock
from tests.support.provider import Provider

HELSINKI = memlog.JobRules(timezone="Europe/Helsinki")


def ran(store: memlog.Store) -> list[tuple[str, str]]:
    return sorted((run.job, run.period) for run in store.jobs.log())


def test_without_a_model_nothing_fails_and_the_log_says_what_was_skipped(
    tmp_path: Path, clock: Clock
) -> None:
    with memlog.open(tmp_path) as store:
        store.memories.save("A joke about tea", category="temp", importance=0.001)
        clock.now = "2026-01-20T12:00:00.000Z"
        store.jobs.run()
        daily, weekly = store.jobs.log(job="daily"), store.jobs.log(job="weekly")
        assert [(step.name, step.outcome, step.count) for step in daily[0].steps] == [
            ("decay", "done", 1),
            ("daily events", "skipped", 0),
        ]
        assert daily[0].steps[1].why == "no language model is configured"
        assert ("prune", "done", 1) in [(step.name, step.outcome, step.count) for step in weekly[0].steps]
        assert store.memories.list() == []
        assert store.jobs.run() == []


def test_what_was_skipped_for_want_of_a_model_is_due_once_there_is_one(
    tmp_path: Path, clock: Clock, provider: Provider
) -> None:
    with memlog.open(tmp_path) as store:
        store.memories.save("Anna lives in Turku")
        store.daily.record("Anna told of her cat", date="2026-01-14")
        clock.now = "2026-01-20T12:00:00.000Z"
        store.jobs.run()
    provider.answer = lambda _: '{"memories": [], "entries": [], "groups": []}'
    model = memlog.LanguageModelProvider(base_url=provider.url, model="m")
    with memlog.open(tmp_path, language_model=model) as store:
        done = [(report.job, [step.name for step in report.steps]) for report in store.jobs.run()]
        assert done == [("daily", ["daily events"]), ("weekly", ["merge", "profile"])]
        assert store.daily.list(uncompressed=True) == []
        assert store.jobs.run() == []


def test_a_clock_that_is_set_back_and_forward_runs_no_job_twice_and_loses_none(
    tmp_path: Path, clock: Clock
) -> None:
    with memlog.open(tmp_path, jobs=HELSINKI) as store:
        store.append([memlog.Message(channel="cli", chat_id="1", role="user", content="Moikka")])
        assert store.jobs.run() == [], "nothing was missed before the first event"
        for now in (
            "2026-01-15T00:59:00.000Z",  # one minute before 03:00 in Helsinki
            "2026-01-15T01:00:00.000Z",
            "2026-01-14T23:00:00.000Z",  # set back
            "2026-01-15T01:00:01.000Z",
            "2026-01-29T12:00:00.000Z",  # forward over two weeks: caught up once
            "2026-01-16T12:00:00.000Z",  # and back
            "2026-01-19T12:00:00.000Z",  # a Monday
            "2026-01-29T12:00:00.000Z",
        ):
            clock.now = now
            store.jobs.run()
        assert ran(store) == [
            *(("daily", f"2026-01-{day}") for day in (15, 16, 19, 29)),
            *(("weekly", f"2026-01-{day}") for day in (19, 26)),
        ]


def test_an_hour_that_a_zone_skips_or_has_twice_is_one_run(tmp_path: Path, clock: Clock) -> None:
    with memlog.open(tmp_path, jobs=HELSINKI) as store:
        store.memories.save("Anna lives in Turku")
        for day in ("2026-03-29", "2026-10-25"):
            for minute in range(0, 6 * 60, 20):
                clock.now = f"{day}T{minute // 60:02}:{minute % 60:02}:00.000Z"
                store.jobs.run()
        assert Counter(period for job, period in ran(store) if job == "daily") == dict.fromkeys(
            ("2026-03-28", "2026-03-29", "2026-10-25"), 1
        )


def test_processes_that_look_at_once_run_each_job_once(tmp_path: Path) -> None:
    with memlog.open(tmp_path) as store:
        store.memories.save("Anna lives in Turku", ts="2026-01-14T12:00:00Z")
    program = "import sys, memlog\nwith memlog.open(sys.argv[1]) as store:\n    store.jobs.run()\n"
    running = [subprocess.Popen([sys.executable, "-c", program, str(tmp_path)]) for _ in range(4)]
    assert [process.wait(60) for process in running] == [0] * 4
    with memlog.open(tmp_path) as store:
        assert Counter(job for job, _ in ran(store)) == {"daily": 1, "weekly": 1}


@pytest.mark.parametrize(
    "rules",
    [{"daily": "25:00"}, {"daily": "monday 03:00"}, {"weekly": "04:00"}, {"timezone": "Europe/Nowhere"}],
)
def test_a_time_that_is_none_is_refused(rules: dict[str, str]) -> None:
    with pytest.raises(memlog.BadInput):
        memlog.JobRules(**rules)


@pytest.mark.parametrize("undone", ["append", "prune"])
def test_a_clock_that_is_far_ahead_prunes_nothing_until_somebody_appends(
    tmp_path: Path, clock: Clock, undone: str
) -> None:
    with memlog.open(tmp_path) as store:
        store.memories.save("Scrap", category="temp", importance=0.01)
        clock.now = "2300-01-01T12:00:00.000Z"
        for _ in range(2):
            ((*_, step),) = [report.steps for report in store.jobs.run("weekly")]
            assert (step.name, step.count) == ("prune", 0)
            assert "the clock says 2300-01-01" in str(step.why)
        assert "nobody but jobs" in store.maintenance.status().silent["prune"]
        if undone == "prune":
            assert store.memories.prune().archived == 1
        else:
            store.append(
                [memlog.Message(channel="x", chat_id="1", role="user", content="A happy new century")]
            )
            assert store.jobs.run("weekly")[0].steps[-1].count == 1
            assert "prune" not in store.maintenance.status().silent
