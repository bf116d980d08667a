"""The operations of `store.jobs`, and the job runner."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
from msgspec import Meta

from memlog.eventlog import timestamps
from memlog.eventlog.errors import BadInput, ProviderError
from memlog.eventlog.events import JobCompleted, JobStep
from memlog.eventlog.files.folders import check_store_exists
from memlog.eventlog.files.locks import holding_lock
from memlog.eventlog.log.layout import JOBS_LOCK
from memlog.eventlog.sections import JobRules
from memlog.eventlog.settings import DEFAULTS, MOST
from memlog.projector.sqlite import Connection
from memlog.query.records import (
    JobRun,
    is_job_due,
    last_extraction_time,
    last_summary_time,
    list_job_runs,
    skipped_steps,
    why_clock_is_doubted,
)
from memlog.service.engine.engine import Engine
from memlog.service.engine.operation import OperationGroup, operation
from memlog.service.engine.requests import PRUNED, Retry
from memlog.service.llm.task import Outcome
from memlog.service.llm.tasks import load_tasks
from memlog.service.llm.tasks.merge import archive_exact_duplicates
from memlog.service.memory import fading

if TYPE_CHECKING:
    from memlog.eventlog.schedules import Schedule

_Jobs = list["Job"]
"""An alias for use in the class, where `list` is a method."""
_Runs = list[JobRun]
_Reports = list["JobReport"]


JobName = Literal["extraction", "summaries", "daily", "weekly"]


class Job(msgspec.Struct, kw_only=True):
    """A job of a store.

    due: its schedule in words. next: its next run, or the run it missed; None if it has no schedule or
        is off.
    last: its last run; None if it never ran. period: the local day of that run. steps: its steps.
    """

    name: str
    due: str
    next: str | None = None
    last: str | None = None
    period: str | None = None
    steps: list[JobStep] = []


class Jobs(OperationGroup):
    """Lists, runs and logs the daily, weekly and continuous jobs of a store."""

    @operation("read")
    def list(self) -> _Jobs:
        """List the jobs of a store: when each is due, when it last ran, and the outcome.

        `memlog watch` and `memlog serve` run the jobs. Missed runs are coalesced into one run.
        """
        rules, now = self._engine.extraction_rules, timestamps.now()
        extraction = Job(
            name="extraction",
            due=f"{rules.quiet_minutes:g} minutes after the last message, at {rules.tokens:,} tokens, the"
            " next day",
            last=self._read(last_extraction_time),
        )
        summaries = Job(
            name="summaries",
            due=f"the older part of a session beyond {rules.tokens:,} tokens, and sessions that end",
            last=self._read(last_summary_time),
        )
        schedules = _job_rules(self._engine).schedules().items()
        scheduled = (self._scheduled_job(name, schedule, now) for name, schedule in schedules)
        jobs = [extraction, summaries, *scheduled]
        if self._engine.read_model.is_off:
            for job in jobs:
                job.due, job.next = "off: memory.enabled is false", None
        return jobs

    @operation("append")
    def run(
        self,
        job: Annotated[JobName | None, "Only this job, now."] = None,
        *,
        retry: Retry = False,
    ) -> _Reports:
        """Run the jobs that are due, each once per period; or run one job now, whether it is due or not.

        Steps that need a language model are skipped if none is configured.

        Raises:
            Busy: another process runs jobs, or distils.
            ProviderError: the language model failed; the run stays due, and no step is done twice.
        """
        check_store_exists(self._engine.path)
        if self._engine.read_model.is_off:
            raise BadInput("memory.enabled is false: no jobs run", hint="set memory.enabled to true")
        timeout = self._engine.lock_timeout
        runner = JobRunner(self._engine, lock_timeout=timeout, is_requested=job is not None, retry=retry)
        return [*runner.run_due_jobs()] if job is None else [runner.run(job)]

    @operation("read")
    def log(
        self,
        job: Annotated[Literal["daily", "weekly"] | None, "Only runs of this job."] = None,
        *,
        limit: Annotated[int | None, Meta(ge=1, le=MOST), "The most runs to list; all by default."] = None,
    ) -> _Runs:
        """List the runs of the daily and the weekly job, newest first, with the outcome of each step."""
        return self._read(lambda db: list_job_runs(db, job=job, limit=limit))

    def _scheduled_job(self, name: str, schedule: "Schedule | None", now: str) -> Job:
        last = next(iter(self._read(lambda db: list_job_runs(db, job=name, limit=1))), None)
        job = Job(name=name, due="off")
        if schedule is not None:
            slot = schedule.latest_slot(now)
            is_due = self._read(lambda db: is_job_due(db, name, slot.period, slot.ts))
            job.due, job.next = schedule.description, slot.ts if is_due else schedule.next_slot(now).ts
        if last is not None:
            job.last, job.period, job.steps = last.ts, last.period, last.steps
        return job


def _job_rules(engine: Engine) -> JobRules:
    return engine.job_rules or JobRules()


JOBS: dict[str, tuple[str, ...]] = {
    "extraction": (),
    "summaries": (),
    "daily": ("decay",),
    "weekly": ("duplicates", "prune"),
}
"""The jobs, each with its steps that need no language model."""


def list_steps_of_job(job: str) -> list[str]:
    """Return a job's steps in order: language model steps come after the first other step."""
    own = JOBS[job]
    return [*own[:1], *(task.step for task in load_tasks() if task.job == job), *own[1:]]


# A run ends with the event `job_completed`. If the process is killed before, the run stays due.


class JobReport(msgspec.Struct, kw_only=True):
    """The steps of a job run. period: the local day when the run was due; None without a schedule."""

    job: str
    period: str | None
    steps: list[JobStep]


class JobRunner:
    """Runs a store's jobs.

    lock_timeout: seconds to wait for another process. is_requested: whether a person requested the run.
    retry: include items set aside today. heartbeat: called during the work; raising in it ends the run, which
    stays due. notify: called with a line per request to the language model.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        lock_timeout: float,
        is_requested: bool = False,
        retry: bool = False,
        heartbeat: Callable[[], None] = lambda: None,
        notify: Callable[[str], None] = lambda _: None,
    ) -> None:
        # Imported here: most processes run no job.
        from memlog.service.llm.extraction import create_questions, why_no_model

        self._engine, self._lock_timeout = engine, lock_timeout
        self._heartbeat, self._notify = heartbeat, notify
        self._schedules = _job_rules(engine).schedules()
        self._works: dict[tuple[str, str], Callable[[], Outcome]] = {
            ("daily", "decay"): self._decay_memories,
            ("weekly", "duplicates"): lambda: archive_exact_duplicates(engine),
            ("weekly", "prune"): self._prune_memories,
        }
        self._why_no_model = why_no_model(engine)
        if self._why_no_model is None:
            self._questions = create_questions(
                engine,
                lock_timeout=lock_timeout,
                is_patient=is_requested,
                retry=retry,
                is_requested=is_requested,
            )
            for task in load_tasks():
                self._works[task.job, task.step] = partial(
                    task(engine, self._questions).run_as_job_step, self._report_line
                )

    def may_be_due(self, db: Connection) -> bool:
        """Whether a job may be due, judged by a read model that may lag behind the log.

        If not, a watch need not catch up here, and its rows thread reports the new events.
        """
        now = timestamps.now()
        slots = ((job, schedule.latest_slot(now)) for job, schedule in self._schedules.items() if schedule)
        return self._why_no_model is None or any(
            is_job_due(db, job, slot.period, slot.ts) for job, slot in slots
        )

    def run_due_jobs(self) -> Iterator[JobReport]:
        """Run all jobs that are due, and yield a report of each job that did something.

        Raises:
            Busy: another process runs jobs. ProviderError: the language model failed; the run stays due.
        """
        with holding_lock(self._engine.path / JOBS_LOCK, "running jobs", self._lock_timeout):
            failed: ProviderError | None = None
            for job in JOBS:
                try:
                    report = self._run_if_due(job)
                except ProviderError as error:
                    failed = error
                else:
                    if report is not None:
                        yield report
            if failed is not None:
                raise failed

    def run(self, job: str) -> JobReport:
        """Run a job now, whether it is due or not.

        Raises the errors of `run_due_jobs`.
        """
        with holding_lock(self._engine.path / JOBS_LOCK, "running jobs", self._lock_timeout):
            if job not in self._schedules:
                return self._run_steps(job)
            now, schedule = timestamps.now(), self._schedules[job]
            return self._run_and_record(
                job, now[:10] if schedule is None else schedule.latest_slot(now).period
            )

    def _run_if_due(self, job: str) -> JobReport | None:
        if job not in self._schedules:
            report = self._run_steps(job) if self._why_no_model is None else None
            return report if report and any(step.count for step in report.steps) else None
        schedule = self._schedules[job]
        if schedule is None:
            return None
        slot = schedule.latest_slot(timestamps.now())
        if self._engine.decide(lambda db: is_job_due(db, job, slot.period, slot.ts)):
            return self._run_and_record(job, slot.period)
        skipped = self._engine.decide(lambda db: skipped_steps(db, job, slot.period))
        left = [step for step in skipped if self._why_skipped(job, step) is None]
        return self._run_and_record(job, slot.period, left) if left else None

    def _run_and_record(self, job: str, period: str, steps: Sequence[str] | None = None) -> JobReport:
        report = self._run_steps(job, steps)
        report.period = period
        self._engine.append([JobCompleted(job=job, period=period, steps=report.steps)])
        return report

    def _run_steps(self, job: str, steps: Sequence[str] | None = None) -> JobReport:
        """Run `steps` of a job, or all of them. A failed step does not stop later ones.

        Raises:
            ProviderError: the language model could not be reached.
        """
        done: list[JobStep] = []
        failed: ProviderError | None = None
        for step in list_steps_of_job(job) if steps is None else steps:
            self._heartbeat()
            if why := self._why_skipped(job, step):
                done.append(JobStep(step, "skipped", why=why))
                continue
            try:
                outcome = self._works[job, step]()
                done.append(JobStep(step, "done", outcome.count, outcome.note))
            except BadInput as error:  # such as for a forgotten event of today's decay
                done.append(JobStep(step, "failed", why=error.message))
            except ProviderError as error:
                done.append(JobStep(step, "skipped" if error.is_of_budget else "failed", why=error.message))
                if error.is_of_budget:
                    continue
                failed = failed if error.is_of_answer else error
        if failed is not None:
            raise failed
        return JobReport(job=job, period=None, steps=done)

    def _why_skipped(self, job: str, step: str) -> str | None:
        """Return why a step that needs the language model is skipped; None if it can run."""
        if step in JOBS[job]:
            return None
        why = self._why_no_model
        return self._questions.why_over_budget() if why is None else why.message

    def _decay_memories(self) -> Outcome:
        engine = self._engine
        return Outcome(
            fading.append_todays_decay(engine.append, engine.decide, engine.decay_rules.all_rates()).changed
        )

    def _prune_memories(self) -> Outcome:
        now = timestamps.now()
        if why := self._engine.decide(lambda db: why_clock_is_doubted(db, now, PRUNED)):
            return Outcome(0, why)
        append, decide, least = self._engine.append, self._engine.decide, DEFAULTS.archive_threshold
        return Outcome(fading.archive_faded_memories(append, decide, PRUNED, least, dry_run=False).archived)

    def _report_line(self, line: str | None) -> None:
        if line is not None:
            self._notify(line)
        self._heartbeat()
