"""Runs jobs: what is due, each period once.

A run ends with the line `job_completed`. A process that is killed before it leaves the run due; each step
does nothing that was done before.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import msgspec

from memlog.eventlog import timestamps
from memlog.eventlog.errors import ProviderError
from memlog.eventlog.events import JobCompleted
from memlog.eventlog.extraction import JobStep
from memlog.eventlog.layout import JOBS_LOCK
from memlog.eventlog.limits import ARCHIVE_THRESHOLD
from memlog.eventlog.locks import locked
from memlog.projector.sqlite import Connection
from memlog.query.jobs import began_before, has_run
from memlog.service.engine import Engine
from memlog.service.jobs.schedule import JobRules, Slot
from memlog.service.memories import fading

if TYPE_CHECKING:
    from memlog.service.extraction.extractor import Extractor
    from memlog.service.extraction.reports import ExtractionReport

DAILY, WEEKLY, EXTRACTION = "daily", "weekly", "extraction"

NO_MODEL = "no language model is configured"

_DAY = 24 * 60 * 60 * 1000


class JobReport(msgspec.Struct, kw_only=True):
    """What a job did. period: the local day for which it was due; None for one that has no hours."""

    job: str
    period: str | None
    steps: list[JobStep]


class _Step:
    """A step of a job. work: does it, and returns how many things it changed."""

    def __init__(self, name: str, work: "Callable[[], int] | None") -> None:
        self.name, self.work = name, work


class JobRunner:
    """Runs the jobs of a store. extractor: None where no language model is configured.

    go_on: called between two steps; an exception of it ends the run, which stays due.
    """

    def __init__(
        self,
        engine: Engine,
        rules: JobRules,
        extractor: "Extractor | None",
        go_on: Callable[[], None] = lambda: None,
    ) -> None:
        self._engine, self._extractor, self._go_on = engine, extractor, go_on
        self._schedules = rules.schedules()

    def may_be_due(self, db: Connection) -> bool:
        """Whether there may be something to do, by a read model that may be behind the log. Where there is
        not, a watch leaves catching up to the thread that reports it."""
        now = timestamps.now()
        slots = ((job, schedule.latest(now)) for job, schedule in self._schedules.items() if schedule)
        return self._extractor is not None or any(_is_due(db, job, slot) for job, slot in slots)

    def run_due(self, *, lock_timeout: float) -> Iterator[JobReport]:
        """Run what is due, and report each job that ran.

        Raises:
            Busy: another process runs jobs. ProviderError: the language model fails: the run stays due.
        """
        with locked(self._engine.path / JOBS_LOCK, "running jobs", lock_timeout):
            failed: ProviderError | None = None
            for job in (EXTRACTION, *self._schedules):
                try:
                    report = self._due(job, lock_timeout)
                except ProviderError as error:
                    failed = error
                else:
                    if report is not None:
                        yield report
            if failed is not None:
                raise failed

    def run(self, job: str, *, lock_timeout: float) -> JobReport:
        """Run a job now, whether it is due or not. Raises as `run_due`."""
        with locked(self._engine.path / JOBS_LOCK, "running jobs", lock_timeout):
            if job == EXTRACTION:
                return self._extraction(lock_timeout, is_asked=True)
            now = timestamps.now()
            schedule = self._schedules[job]
            period = now[:10] if schedule is None else schedule.latest(now).period
            return self._run(job, period, None, lock_timeout)

    def _due(self, job: str, lock_timeout: float) -> JobReport | None:
        if job == EXTRACTION:
            report = self._extraction(lock_timeout, is_asked=False)
            return report if any(step.count for step in report.steps) else None
        schedule = self._schedules[job]
        if schedule is None:
            return None
        slot = schedule.latest(timestamps.now())
        is_due = self._engine.decide(lambda db: _is_due(db, job, slot))
        return self._run(job, slot.period, f"{job}-{slot.period}", lock_timeout) if is_due else None

    def _run(self, job: str, period: str, event_id: str | None, lock_timeout: float) -> JobReport:
        steps = self._done(self._steps(job, lock_timeout))
        self._engine.append([JobCompleted(id=event_id, job=job, period=period, steps=steps)])
        return JobReport(job=job, period=period, steps=steps)

    def _extraction(self, lock_timeout: float, *, is_asked: bool) -> JobReport:
        extractor = self._extractor
        work = None

        def distil() -> int:
            assert extractor is not None
            is_due = (lambda _: True) if is_asked else extractor.is_due
            return self._count(extractor.run(None, None, lock_timeout=lock_timeout, is_due=is_due))

        if extractor is not None:
            work = distil
        return JobReport(job=EXTRACTION, period=None, steps=self._done([_Step("messages", work)]))

    def _done(self, steps: list[_Step]) -> list[JobStep]:
        """What became of steps. One that fails keeps no other from being done.

        Raises:
            ProviderError: the language model could not be asked.
        """
        done: list[JobStep] = []
        failed: ProviderError | None = None
        for step in steps:
            self._go_on()
            if step.work is None:
                done.append(JobStep(step.name, "skipped", why=NO_MODEL))
                continue
            try:
                done.append(JobStep(step.name, "done", step.work()))
            except ProviderError as error:
                done.append(JobStep(step.name, "failed", why=error.message))
                failed = failed if error.is_of_answer else error
        if failed is not None:
            raise failed
        return done

    def _steps(self, job: str, lock_timeout: float) -> list[_Step]:
        append, decide, extractor = self._engine.append, self._engine.decide, self._extractor

        def decay() -> int:
            return fading.decay(append, decide, None).changed

        def days() -> int:
            assert extractor is not None
            yesterday = timestamps.shifted(timestamps.now(), -_DAY)[:10]
            return self._count(extractor.run_days(yesterday, lock_timeout=lock_timeout, is_asked=False))

        def prune() -> int:
            least = ARCHIVE_THRESHOLD.default
            return fading.prune(append, decide, fading.PRUNED, least, dry_run=False).archived

        if job == DAILY:
            return [_Step("decay", decay), _Step("daily events", days if extractor else None)]
        return [_Step("prune", prune)]

    def _count(self, reports: "Iterator[ExtractionReport]") -> int:
        done = 0
        for report in reports:
            done += report.messages
            self._go_on()
        return done


def _is_due(db: Connection, job: str, slot: Slot) -> bool:
    """Whether a job has not run for a slot. Before anything happened, nothing was missed."""
    return not has_run(db, job, slot.period) and began_before(db, slot.ts)
