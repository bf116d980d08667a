"""Runs jobs: what is due, each period once.

A run ends with the line `job_completed`. A process that is killed before it leaves the run due.
"""

from collections.abc import Callable, Iterator, Sequence

import msgspec

from memlog.eventlog import timestamps
from memlog.eventlog.errors import BadInput, ProviderError
from memlog.eventlog.events import JobCompleted
from memlog.eventlog.extraction import JobStep
from memlog.eventlog.layout import JOBS_LOCK
from memlog.eventlog.locks import locked
from memlog.projector.sqlite import Connection
from memlog.query.jobs import is_job_due, skipped_steps
from memlog.service.engine import Engine
from memlog.service.jobs.schedule import JobRules
from memlog.service.jobs.steps import STEPS, Steps


class JobReport(msgspec.Struct, kw_only=True):
    """What a job did. period: the local day for which it was due; None for one that has no hours."""

    job: str
    period: str | None
    steps: list[JobStep]


class JobRunner:
    """Runs the jobs of a store. lock_timeout: seconds to wait for another process that runs some.

    go_on: called between two steps; an exception of it ends the run, which stays due.
    """

    def __init__(
        self,
        engine: Engine,
        rules: JobRules,
        steps: Steps,
        *,
        has_model: bool,
        lock_timeout: float,
        go_on: Callable[[], None],
    ) -> None:
        self._engine, self._steps, self._has_model = engine, steps, has_model
        self._lock_timeout, self._go_on = lock_timeout, go_on
        self._schedules = rules.schedules()

    def may_be_due(self, db: Connection) -> bool:
        """Whether there may be something to do, by a read model that may be behind the log. Where there is
        not, a watch leaves catching up to the thread that reports it."""
        now = timestamps.now()
        slots = ((job, schedule.latest(now)) for job, schedule in self._schedules.items() if schedule)
        return self._has_model or any(is_job_due(db, job, slot.period, slot.ts) for job, slot in slots)

    def run_due(self) -> Iterator[JobReport]:
        """Run what is due, and report each job that did something.

        Raises:
            Busy: another process runs jobs. ProviderError: the language model fails: the run stays due.
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
        """Run a job now, whether it is due or not. Raises as `run_due`."""
        with locked(self._engine.path / JOBS_LOCK, "running jobs", self._lock_timeout):
            if job not in self._schedules:
                return self._run(job)
            now, schedule = timestamps.now(), self._schedules[job]
            return self._run_for(job, now[:10] if schedule is None else schedule.latest(now).period)

    def _run_if_due(self, job: str) -> JobReport | None:
        if job not in self._schedules:
            report = self._run(job) if self._has_model else None
            return report if report and any(step.count for step in report.steps) else None
        schedule = self._schedules[job]
        if schedule is None:
            return None
        slot = schedule.latest(timestamps.now())
        if self._engine.decide(lambda db: is_job_due(db, job, slot.period, slot.ts)):
            return self._run_for(job, slot.period)
        skipped = self._engine.decide(lambda db: skipped_steps(db, job, slot.period))
        left = [step for step in skipped if self._steps.why_skipped(job, step) is None]
        return self._run_for(job, slot.period, left) if left else None

    def _run_for(self, job: str, period: str, steps: Sequence[str] | None = None) -> JobReport:
        report = self._run(job, steps)
        report.period = period
        self._engine.append([JobCompleted(job=job, period=period, steps=report.steps)])
        return report

    def _run(self, job: str, steps: Sequence[str] | None = None) -> JobReport:
        """Do the steps of a job, or some of them. One that fails keeps no other from being done.

        Raises:
            ProviderError: the language model could not be asked.
        """
        done: list[JobStep] = []
        failed: ProviderError | None = None
        for step in STEPS[job] if steps is None else steps:
            self._go_on()
            if why := self._steps.why_skipped(job, step):
                done.append(JobStep(step, "skipped", why=why))
                continue
            try:
                outcome = self._steps.do(job, step)
                done.append(JobStep(step, "done", outcome.count, outcome.note))
            except BadInput as error:  # such as an event of today's decay that was forgotten
                done.append(JobStep(step, "failed", why=error.message))
            except ProviderError as error:
                done.append(JobStep(step, "skipped" if error.is_of_budget else "failed", why=error.message))
                if error.is_of_budget:
                    continue
                failed = failed if error.is_of_answer else error
        if failed is not None:
            raise failed
        return JobReport(job=job, period=None, steps=done)
