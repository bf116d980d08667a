"""Jobs as programs use them: `store.jobs`."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from memlog.eventlog import timestamps
from memlog.eventlog.errors import BadInput
from memlog.eventlog.extraction import JobStep
from memlog.eventlog.folders import check_store
from memlog.query.jobs import JobRun, is_job_due, job_runs, last_extraction, last_summary
from memlog.service.engine import Engine, OperationGroup
from memlog.service.operations import operation
from memlog.service.requests.jobs import ListJobRuns, ListJobs, RunJobs

if TYPE_CHECKING:
    from memlog.service.jobs.runner import JobReport, JobRunner
    from memlog.service.jobs.schedule import JobRules, Schedule

_Jobs = list["Job"]
"""Within the class `list` is its method."""
_Runs = list[JobRun]
_Reports = list["JobReport"]


class Job(msgspec.Struct, kw_only=True):
    """A job of a store.

    due: when it runs, in words. next: the next time, or the past one that is to be caught up; None for one
        that has no hours, or is off.
    last: when it ran last; None if it never has. period: the local day for which that was.
    steps: of that run.
    """

    name: str
    due: str
    next: str | None = None
    last: str | None = None
    period: str | None = None
    steps: list[JobStep] = []


class Jobs(OperationGroup):
    """What memlog does with a store by itself, by day and by week: `store.jobs`."""

    @operation(ListJobs, effect="read")
    def list(self, _: ListJobs) -> _Jobs:
        from memlog.service.extraction.facade import rules_of

        rules, now = rules_of(self._engine), timestamps.now()
        extraction = Job(
            name="extraction",
            due=f"{rules.quiet_minutes:g} minutes after the last message, at {rules.tokens:,} tokens, the"
            " next day",
            last=self._read(last_extraction),
        )
        schedules = _rules(self._engine).schedules().items()
        summaries = Job(
            name="summaries",
            due=f"the older part of a session beyond {rules.tokens:,} tokens, and sessions that end",
            last=self._read(last_summary),
        )
        jobs = [
            extraction,
            summaries,
            *(self._scheduled(name, schedule, now) for name, schedule in schedules),
        ]
        if self._engine.read_model.is_off:
            for job in jobs:
                job.due, job.next = "off: memory.enabled is false", None
        return jobs

    @operation(RunJobs, effect="append")
    def run(self, asked: RunJobs) -> _Reports:
        check_store(self._engine.path)
        if self._engine.read_model.is_off:
            raise BadInput("memory.enabled is false: no job runs", hint="set memory.enabled to true")
        timeout = self._engine.lock_timeout
        runner = runner_of(
            self._engine, lock_timeout=timeout, is_asked=asked.job is not None, retry=asked.retry
        )
        return [*runner.run_due()] if asked.job is None else [runner.run(asked.job)]

    @operation(ListJobRuns, effect="read")
    def log(self, asked: ListJobRuns) -> _Runs:
        return self._query(job_runs, asked)

    def _scheduled(self, name: str, schedule: "Schedule | None", now: str) -> Job:
        last = next(iter(self._read(lambda db: job_runs(db, job=name, limit=1))), None)
        job = Job(name=name, due="off")
        if schedule is not None:
            slot = schedule.latest(now)
            is_due = self._read(lambda db: is_job_due(db, name, slot.period, slot.ts))
            job.due, job.next = schedule.words, slot.ts if is_due else schedule.next(now).ts
        if last is not None:
            job.last, job.period, job.steps = last.ts, last.period, last.steps
        return job


def runner_of(
    engine: Engine,
    *,
    lock_timeout: float,
    is_asked: bool = False,
    retry: bool = False,
    go_on: Callable[[], None] = lambda: None,
    notify: Callable[[str], None] = lambda _: None,
) -> "JobRunner":
    """What runs the jobs of a store.

    lock_timeout: seconds to wait for another process. is_asked: whether a person wants it now.
    notify: called with a line for each request to the language model.
    retry: also what was set aside today.
    """
    # Imported here, as in the store: most processes run no job.
    from memlog.service.extraction.facade import extractor_of, questions_of, rules_of, why_no_model
    from memlog.service.jobs.runner import JobRunner
    from memlog.service.jobs.steps import Steps

    why = why_no_model(engine)
    has_model = why is None
    steps = Steps(
        engine,
        extractor_of(engine, is_patient=is_asked, retry=retry) if has_model else None,
        questions_of(engine, is_patient=is_asked, retry=retry) if has_model else None,
        room=rules_of(engine).tokens,
        why_no_model=None if why is None else why.message,
        lock_timeout=lock_timeout,
        is_asked=is_asked,
        go_on=go_on,
        notify=notify,
    )
    return JobRunner(
        engine, _rules(engine), steps, has_model=has_model, lock_timeout=lock_timeout, go_on=go_on
    )


def _rules(engine: Engine) -> "JobRules":
    from memlog.service.jobs.schedule import JobRules

    return engine.job_rules or JobRules()
