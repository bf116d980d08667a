"""The steps of the jobs. None does anything twice: a run that was killed is begun anew."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from memlog.eventlog import timestamps
from memlog.eventlog.limits import ARCHIVE_THRESHOLD
from memlog.query.jobs import why_clock_is_doubted
from memlog.service.engine import Engine
from memlog.service.jobs.merging import Merger
from memlog.service.jobs.outcome import Outcome, set_aside_note
from memlog.service.memories import fading

if TYPE_CHECKING:
    from memlog.service.extraction.extractor import Extractor
    from memlog.service.extraction.questions import Questions
    from memlog.service.extraction.reports import ExtractionReport

Work = Callable[[], Outcome]
"""Does a step."""

STEPS: dict[str, tuple[str, ...]] = {
    "extraction": ("messages",),
    "summaries": ("messages",),
    "daily": ("decay", "daily events"),
    "weekly": ("duplicates", "merge", "profile", "prune"),
}
"""The jobs, and the steps of each in their order."""

_WITHOUT_MODEL = {("daily", "decay"), ("weekly", "duplicates"), ("weekly", "prune")}

_NO_MODEL = "no language model is configured"

_DAY = 24 * 60 * 60 * 1000


class Steps:
    """What jobs do with a store.

    extractor, questions: None where no language model is configured. room: tokens of a request.
    lock_timeout: seconds to wait for another process that distils.
    is_asked: whether a person wants it: then nothing waits until it is due.
    go_on: called as work goes on; an exception of it ends the step. notify: called with a line for each
        request to the language model.
    """

    def __init__(
        self,
        engine: Engine,
        extractor: "Extractor | None",
        questions: "Questions | None",
        *,
        room: int,
        lock_timeout: float,
        is_asked: bool,
        go_on: Callable[[], None],
        notify: Callable[[str], None],
    ) -> None:
        self._engine, self._lock_timeout = engine, lock_timeout
        self._is_asked, self._go_on, self._notify = is_asked, go_on, notify
        self._questions = questions
        merger = Merger(engine, questions, room)
        self._works: dict[tuple[str, str], Work] = {
            ("daily", "decay"): self._decay,
            ("weekly", "duplicates"): merger.merge_exact,
            ("weekly", "prune"): self._prune,
        }
        if extractor is not None and questions is not None:
            # Imported here: most stores have no language model.
            from memlog.service.jobs.profile import Profile
            from memlog.service.jobs.summaries import Summariser

            summariser = Summariser(engine, questions, room)
            self._works |= {
                ("extraction", "messages"): lambda: self._messages(extractor),
                ("summaries", "messages"): lambda: summariser.run(self._summarised),
                ("daily", "daily events"): lambda: self._days(extractor),
                ("weekly", "merge"): lambda: merger.merge(self._compared),
                ("weekly", "profile"): Profile(engine, questions, room).refresh,
            }

    def why_skipped(self, job: str, step: str) -> str | None:
        """Why a step is left: it needs the language model. None where it can be done."""
        if (job, step) not in self._works:
            return _NO_MODEL
        needs_model = self._questions is not None and (job, step) not in _WITHOUT_MODEL
        return self._questions.why_spent() if self._questions is not None and needs_model else None

    def do(self, job: str, step: str) -> Outcome:
        """Do a step that nothing keeps from being done.

        Raises:
            BadInput, Busy, LogError: as `Store.append`. ProviderError: the language model fails.
        """
        return self._works[job, step]()

    def _decay(self) -> Outcome:
        return Outcome(fading.decay(self._engine.append, self._engine.decide, None).changed)

    def _prune(self) -> Outcome:
        now = timestamps.now()
        if why := self._engine.decide(lambda db: why_clock_is_doubted(db, now, fading.PRUNED)):
            return Outcome(0, why)
        append, decide, least = self._engine.append, self._engine.decide, ARCHIVE_THRESHOLD.default
        return Outcome(fading.prune(append, decide, fading.PRUNED, least, dry_run=False).archived)

    def _messages(self, extractor: "Extractor") -> Outcome:
        return self._count(
            extractor.run(None, None, lock_timeout=self._lock_timeout, is_asked=self._is_asked)
        )

    def _days(self, extractor: "Extractor") -> Outcome:
        yesterday = timestamps.shifted(timestamps.now(), -_DAY)[:10]
        return self._count(extractor.run_days(yesterday, lock_timeout=self._lock_timeout))

    def _count(self, reports: "Iterable[ExtractionReport]") -> Outcome:
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
            self._go_on()
        return Outcome(done, set_aside_note(whys))

    def _summarised(self, count: int) -> None:
        self._notify(f"summarised {count} messages")
        self._go_on()

    def _compared(self, count: int) -> None:
        if count > 1:
            self._notify(f"compared {count} memories")
        self._go_on()
