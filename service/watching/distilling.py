"""The thread of a watch that has a language model distil conversations, in the way of nothing else."""

from collections.abc import Callable

from memlog.eventlog import timestamps
from memlog.eventlog.errors import Busy
from memlog.service.extraction.extractor import Extractor
from memlog.service.read_model import ReadModel
from memlog.service.watching.worker import Shared, Worker

_DAY = 24 * 60 * 60 * 1000

_TICK = 15.0
"""Seconds between two looks: no message has to be distilled at once."""

_UNTIL_THERE = 0.5
"""Seconds until the next look where there is no read model yet."""

ExtractorBy = Callable[[ReadModel], Extractor]
"""Makes the extractor of the store, with another read model of it."""


class Distilling(Worker):
    """Distils the buffers that are due."""

    def __init__(self, shared: Shared, read_model: ReadModel, extractor_by: ExtractorBy) -> None:
        super().__init__(shared, read_model)
        self._extractor = extractor_by(self._read_model)

    def _work(self) -> None:
        pause = 0.0
        while not self._shared.stop.wait(pause):
            is_there = self._shared.lock.holds() and self._read_model.projector.generations.current()
            if is_there:
                self._try(self._look)
            pause = _TICK if is_there else _UNTIL_THERE

    def _look(self) -> bool:
        done = False
        try:
            for _ in self._extractor.run(None, None, lock_timeout=0.0, is_due=self._extractor.is_due):
                done = True
                self._go_on()
            yesterday = timestamps.shifted(timestamps.now(), -_DAY)[:10]
            for _ in self._extractor.run_days(yesterday, lock_timeout=0.0, is_asked=False):
                done = True
                self._go_on()
        except Busy:  # another process distils
            return done
        return done
