"""The operations of `store.jobs`, and the runner of the jobs."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
from msgspec import Meta

from memlog.eventlog import timestamps
from memlog.eventlog.errors import BadInput, ProviderError
from memlog.eventlog.events import JobCompleted, JobStep
from memlog.eventlog.files.folders import check_store
from memlog.eventlog.files.locks import locked
from memlog.eventlog.limits import MOST
from memlog.eventlog.log.layout import JOBS_LOCK
from memlog.eventlog.settings import DEFAULTS, JobRules
from memlog.projector.sqlite import Connection
from memlog.query.records import (
    JobRun,
    is_job_due,
    job_runs,
    last_extraction_time,
    last_summary_time,
    skipped_steps,
    why_clock_is_doubted,
)
from memlog.service.engine.engine import Engine
from memlog.service.engine.operation import OperationGroup, operation
from memlog.service.engine.requests import PRUNED, Retry
from memlog.service.llm.task import Outcome, set_aside_note
from memlog.service.llm.tasks.merge import Merger
from memlog.service.memory import fading

if TYPE_CHECKING:
    from memlog.eventlog.schedules import Schedule
    from memlog.service.llm.task import Questions
    from memlog.service.llm.tasks.extract import ExtractionReport, Extractor

_Jobs = list["Job"]
"""An alias, because inside the class `list` is a method."""
_Runs = list[JobRun]
_Reports = list["JobReport"]


JobName = Literal["extraction", "summaries", "daily", "weekly"]


class Job(msgspec.Struct, kw_only=True):
    """A job of a store.

    due: when it runs, in words. next: when it runs next, or the run it missed; None for a job without a
        schedule, or one that is off.
    last: when it last ran; None if never. period: the local day of that run. steps: of that run.
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
        """List the jobs of a store: when each is due, when it ran last, and what became of it.

        `memlog watch` and `memlog serve` run the jobs. After missed runs, a job runs once.
        """
        from memlog.service.llm.extraction import rules_of

        rules, now = rules_of(self._engine), timestamps.now()
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
        check_store(self._engine.path)
        if self._engine.read_model.is_off:
            raise BadInput("memory.enabled is false: no job runs", hint="set memory.enabled to true")
        timeout = self._engine.lock_timeout
        runner = runner_of(self._engine, lock_timeout=timeout, is_requested=job is not None, retry=retry)
        return [*runner.run_due()] if job is None else [runner.run(job)]

    @operation("read")
    def log(
        self,
        job: Annotated[Literal["daily", "weekly"] | None, "Only runs of this job."] = None,
        *,
        limit: Annotated[int | None, Meta(ge=1, le=MOST), "The most runs to list; all by default."] = None,
    ) -> _Runs:
        """List the runs of the daily and the weekly job, newest first, with the outcome of each step."""
        return self._read(lambda db: job_runs(db, job=job, limit=limit))

    def _scheduled_job(self, name: str, schedule: "Schedule | None", now: str) -> Job:
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
    is_requested: bool = False,
    retry: bool = False,
    heartbeat: Callable[[], None] = lambda: None,
    notify: Callable[[str], None] = lambda _: None,
) -> "JobRunner":
    """Return the job runner of a store.

    lock_timeout: seconds to wait for another process. is_requested: whether a person requested the run.
    retry: include what was set aside today. notify: called with a line per request to the language model.
    """
    # Imported here: most processes run no job.
    from memlog.service.llm.extraction import create_extractor, create_questions, rules_of, why_no_model

    why = why_no_model(engine)
    has_model = why is None
    steps = Steps(
        engine,
        create_extractor(engine, is_patient=is_requested, retry=retry) if has_model else None,
        create_questions(engine, is_patient=is_requested, retry=retry) if has_model else None,
        room=rules_of(engine).tokens,
        why_no_model=None if why is None else why.message,
        lock_timeout=lock_timeout,
        is_requested=is_requested,
        heartbeat=heartbeat,
        notify=notify,
    )
    return JobRunner(
        engine, _job_rules(engine), steps, has_model=has_model, lock_timeout=lock_timeout, heartbeat=heartbeat
    )


def _job_rules(engine: Engine) -> JobRules:
    return engine.job_rules or JobRules()


Work = Callable[[], Outcome]
"""Runs a step."""

STEPS: dict[str, tuple[str, ...]] = {
    "extraction": ("messages",),
    "summaries": ("messages",),
    "daily": ("decay", "daily events"),
    "weekly": ("duplicates", "merge", "profile", "prune"),
}
"""The jobs, and the steps of each in order."""

_WITHOUT_MODEL = {("daily", "decay"), ("weekly", "duplicates"), ("weekly", "prune")}


class Steps:
    """The steps of the jobs of a store.

    extractor, questions: None if no language model is used; why_no_model: why not.
    room: how many tokens a request may have.
    lock_timeout: seconds to wait for another process that distils.
    is_requested: whether a person requested the run, so that buffers need not be due.
    heartbeat: called while work goes on; raising in it ends the step. notify: called with a line per request
        to the language model.
    """

    def __init__(
        self,
        engine: Engine,
        extractor: "Extractor | None",
        questions: "Questions | None",
        *,
        room: int,
        why_no_model: str | None,
        lock_timeout: float,
        is_requested: bool,
        heartbeat: Callable[[], None],
        notify: Callable[[str], None],
    ) -> None:
        self._engine, self._heartbeat, self._notify = engine, heartbeat, notify
        self._questions, self._why_no_model = questions, why_no_model
        merger = Merger(engine, questions, room)
        self._works: dict[tuple[str, str], Work] = {
            ("daily", "decay"): lambda: Outcome(fading.decay(engine.append, engine.decide, None).changed),
            ("weekly", "duplicates"): merger.merge_exact,
            ("weekly", "prune"): self._prune,
        }
        if extractor is not None and questions is not None:
            # Imported here: most stores have no language model.
            from memlog.service.llm.extraction import yesterday
            from memlog.service.llm.tasks.profile import Profile
            from memlog.service.llm.tasks.summarise import Summariser

            summariser = Summariser(engine, questions, room)
            self._works |= {
                ("extraction", "messages"): lambda: self._sum_up(
                    extractor.run(None, None, lock_timeout=lock_timeout, is_requested=is_requested)
                ),
                ("summaries", "messages"): lambda: summariser.run(self._report_summarised),
                ("daily", "daily events"): lambda: self._sum_up(
                    extractor.run_days(yesterday(engine), lock_timeout=lock_timeout)
                ),
                ("weekly", "merge"): lambda: merger.merge(self._report_compared),
                ("weekly", "profile"): Profile(engine, questions, room).refresh,
            }

    def why_skipped(self, job: str, step: str) -> str | None:
        """Return why a step that needs the language model is skipped; None if it can run."""
        if (job, step) not in self._works:
            return self._why_no_model
        if self._questions is None or (job, step) in _WITHOUT_MODEL:
            return None
        return self._questions.why_over_budget()

    def do(self, job: str, step: str) -> Outcome:
        """Run a step for which `why_skipped` is None.

        Raises:
            BadInput, Busy, LogError: as `Store.append`. ProviderError: the language model fails.
        """
        return self._works[job, step]()

    def _prune(self) -> Outcome:
        now = timestamps.now()
        if why := self._engine.decide(lambda db: why_clock_is_doubted(db, now, PRUNED)):
            return Outcome(0, why)
        append, decide, least = self._engine.append, self._engine.decide, DEFAULTS.archive_threshold
        return Outcome(fading.prune(append, decide, PRUNED, least, dry_run=False).archived)

    def _sum_up(self, reports: "Iterable[ExtractionReport]") -> Outcome:
        done, whys = 0, []
        for report in reports:
            if report.set_aside is None:
                done += report.messages
                self._notify(
                    f"distilled {report.messages} of {report.chat or report.date}: {report.saved} saved,"
                    f" {report.tokens_in + report.tokens_out:,} tokens"
                )
            else:
                whys.append(report.set_aside)
            self._heartbeat()
        return Outcome(done, set_aside_note(whys))

    def _report_summarised(self, count: int) -> None:
        self._notify(f"summarised {count} messages")
        self._heartbeat()

    def _report_compared(self, count: int) -> None:
        if count > 1:
            self._notify(f"compared {count} memories")
        self._heartbeat()


# A run ends with the event `job_completed`. If the process is killed before, the run stays due.


class JobReport(msgspec.Struct, kw_only=True):
    """The steps of a job run. period: the local day when the run was due; None without a schedule."""

    job: str
    period: str | None
    steps: list[JobStep]


class JobRunner:
    """Runs the jobs of a store.

    lock_timeout: seconds to wait for another process that runs jobs.
    heartbeat: called between steps; raising in it ends the run, which stays due.
    """

    def __init__(
        self,
        engine: Engine,
        rules: JobRules,
        steps: Steps,
        *,
        has_model: bool,
        lock_timeout: float,
        heartbeat: Callable[[], None],
    ) -> None:
        self._engine, self._steps, self._has_model = engine, steps, has_model
        self._lock_timeout, self._heartbeat = lock_timeout, heartbeat
        self._schedules = rules.schedules()

    def may_be_due(self, db: Connection) -> bool:
        """Whether jobs may have something to do, judged by a read model that may lag behind the log.

        If not, a watch need not catch up here, and its rows thread reports the new events.
        """
        now = timestamps.now()
        slots = ((job, schedule.latest(now)) for job, schedule in self._schedules.items() if schedule)
        return self._has_model or any(is_job_due(db, job, slot.period, slot.ts) for job, slot in slots)

    def run_due(self) -> Iterator[JobReport]:
        """Run the jobs that are due; yield a report of each job that did something.

        Raises:
            Busy: another process runs jobs. ProviderError: the language model failed; the run stays due.
        """
        with locked(self._engine.path / JOBS_LOCK, "running jobs", self._lock_timeout):
            failed: ProviderError | None = None
            for job in STEPS:
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

        Raises the errors of `run_due`.
        """
        with locked(self._engine.path / JOBS_LOCK, "running jobs", self._lock_timeout):
            if job not in self._schedules:
                return self._run_steps(job)
            now, schedule = timestamps.now(), self._schedules[job]
            return self._run_and_record(job, now[:10] if schedule is None else schedule.latest(now).period)

    def _run_if_due(self, job: str) -> JobReport | None:
        if job not in self._schedules:
            report = self._run_steps(job) if self._has_model else None
            return report if report and any(step.count for step in report.steps) else None
        schedule = self._schedules[job]
        if schedule is None:
            return None
        slot = schedule.latest(timestamps.now())
        if self._engine.decide(lambda db: is_job_due(db, job, slot.period, slot.ts)):
            return self._run_and_record(job, slot.period)
        skipped = self._engine.decide(lambda db: skipped_steps(db, job, slot.period))
        left = [step for step in skipped if self._steps.why_skipped(job, step) is None]
        return self._run_and_record(job, slot.period, left) if left else None

    def _run_and_record(self, job: str, period: str, steps: Sequence[str] | None = None) -> JobReport:
        report = self._run_steps(job, steps)
        report.period = period
        self._engine.append([JobCompleted(job=job, period=period, steps=report.steps)])
        return report

    def _run_steps(self, job: str, steps: Sequence[str] | None = None) -> JobReport:
        """Run the steps of a job, or some of them. A step runs even if an earlier one failed.

        Raises:
            ProviderError: the language model could not be reached.
        """
        done: list[JobStep] = []
        failed: ProviderError | None = None
        for step in STEPS[job] if steps is None else steps:
            self._heartbeat()
            if why := self._steps.why_skipped(job, step):
                done.append(JobStep(step, "skipped", why=why))
                continue
            try:
                outcome = self._steps.do(job, step)
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
