"""Maintenance as programs use it: `store.maintenance`."""

import threading
from functools import partial
from typing import TYPE_CHECKING

from memlog.eventlog.folders import check_store
from memlog.projector.digest import digest
from memlog.query import provenance
from memlog.query.provenance import QuarantinedLine
from memlog.service.engine import OperationGroup
from memlog.service.maintenance.project import EmbedReport, ProjectReport, embed, project
from memlog.service.maintenance.stats import Stats, stats_of
from memlog.service.maintenance.status import Status, status_of
from memlog.service.operations import operation
from memlog.service.read_model import ReadModel
from memlog.service.requests.maintenance import (
    CountStats,
    Digest,
    Embed,
    Examine,
    ListQuarantine,
    Replay,
    SealLog,
    ShowStatus,
    Verify,
    Watch,
)

if TYPE_CHECKING:
    from memlog.projector.verify import Verification
    from memlog.service.maintenance.findings import Finding
    from memlog.service.maintenance.seal import SealReport


# What only some calls need is imported by them: a process that asks one thing pays for that alone.


class Maintenance(OperationGroup):
    """Catches the read model up with the log, and checks both."""

    @operation(Replay, effect="maintain")
    def project(self, asked: Replay) -> ProjectReport:
        return project(self._engine.reads.maintenance, asked)

    @operation(Embed, effect="maintain")
    def embed(self, asked: Embed) -> EmbedReport:
        return embed(self._engine.reads.maintenance, asked)

    @operation(Watch, effect="maintain", is_endless=True)
    def watch(self, asked: Watch) -> None:
        from memlog.service.documents.facade import Documents
        from memlog.service.jobs.facade import runner_of
        from memlog.service.watching.threads import bring_up, watch

        engine, tell = self._engine, asked.tell or (lambda _: None)
        if asked.once:
            check_store(engine.path)
            bring_up(engine.reads.maintenance, Documents(engine), tell=tell, progress=asked.progress)
            return
        watch(
            engine.read_model,
            lambda read_model, on_wait: Documents(engine.for_thread(read_model, on_wait)),
            lambda read_model, go_on, notify: runner_of(
                engine.for_thread(read_model, lambda: None), lock_timeout=0.0, go_on=go_on, notify=notify
            ),
            stop=asked.stop or threading.Event(),
            tell=tell,
            progress=asked.progress,
        )

    @operation(Verify, effect="read")
    def verify(self, asked: Verify) -> "Verification":
        from memlog.service.maintenance.verify import verify_store

        check_store(self._engine.path)
        self._engine.record_sizes()
        read_model = self._engine.reads.maintenance
        with read_model.mutex:
            return verify_store(read_model, asked.progress)

    @operation(Examine, effect="maintain")
    def examine(self, asked: Examine) -> "list[Finding]":
        from memlog.service.maintenance.doctor import examine

        self._engine.record_sizes()
        read_model = self._engine.reads.maintenance
        with read_model.mutex:
            return examine(read_model, self._engine.language_model, fix=asked.fix)

    @operation(SealLog, effect="maintain")
    def seal(self, asked: SealLog) -> "SealReport":
        from memlog.service.maintenance.seal import seal

        return seal(self._engine.log, accept_loss=asked.accept_loss)

    @operation(Digest, effect="read")
    def digest(self, asked: Digest) -> str:
        def taken(read_model: ReadModel) -> str:
            return digest(read_model.latest()[0], content=asked.content)

        return self._engine.reads.healed(taken)

    @operation(ShowStatus, effect="read")
    def status(self, _: ShowStatus) -> Status:
        return self._engine.reads.healed(partial(status_of, self._engine.language_model))

    @operation(CountStats, effect="read")
    def stats(self, _: CountStats) -> Stats:
        return self._engine.reads.healed(stats_of)

    @operation(ListQuarantine, effect="read")
    def quarantine(self, _: ListQuarantine) -> list[QuarantinedLine]:
        return self._read(provenance.quarantine)

    def explain(self, line: QuarantinedLine) -> str:
        """Tell why a line is quarantined, and what can be done about it."""
        return provenance.explanation(self._engine.log_path, line)
