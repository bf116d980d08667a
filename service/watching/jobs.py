"""The thread of a watch that runs jobs, in the way of nothing else."""

from collections.abc import Callable

from memlog.eventlog.errors import Busy
from memlog.service.jobs.runner import JobRunner
from memlog.service.read_model import ReadModel
from memlog.service.watching.worker import Shared, Worker

_TICK = 15.0
"""Seconds between two looks: no job has to run at once."""

_UNTIL_THERE = 0.5
"""Seconds until the next look where there is no read model yet."""

RunnerBy = Callable[[ReadModel, Callable[[], None], Callable[[str], None]], JobRunner]
"""Makes what runs the jobs of the store, with another read model of it, what ends a run, and what
tells of each request to a language model."""


class DueJobs(Worker):
    """Runs the jobs that are due."""

    def __init__(self, shared: Shared, read_model: ReadModel, runner_by: RunnerBy) -> None:
        super().__init__(shared, read_model)
        self._runner = runner_by(self._read_model, self._go_on, self._notify)

    def _work(self) -> None:
        pause = 0.0
        while not self._shared.stop.wait(pause):
            is_there = self._shared.lock.holds() and self._read_model.projector.generations.current()
            if is_there:
                self._try(self._look)
            pause = _TICK if is_there else _UNTIL_THERE

    def _look(self) -> bool:
        if not self._runner.may_be_due(self._read_model.projector.live()):
            return False
        done = False
        try:
            for report in self._runner.run_due():
                done = True
                if report.period is not None:
                    self._notes.append(f"ran the {report.job} job of {report.period}")
                self._go_on()
        except Busy:  # another process runs jobs
            return done
        return done
