"""Maintenance as programs use it: `store.maintenance`."""

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from memlog.eventlog.folders import check_store
from memlog.eventlog.writer import Log
from memlog.projector.digest import digest
from memlog.query import provenance
from memlog.query.provenance import QuarantinedLine
from memlog.service.maintenance import project
from memlog.service.maintenance.project import EmbedReport, ProjectReport
from memlog.service.maintenance.stats import Stats, stats_of
from memlog.service.maintenance.status import Status, status_of
from memlog.service.operations import operation
from memlog.service.read_model import ReadModel
from memlog.service.read_pool import ReadPool
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
    from memlog.service.documents.facade import Documents
    from memlog.service.maintenance.findings import Finding
    from memlog.service.maintenance.seal import SealReport

# What only some calls need is imported by them: a process that asks one thing pays for that alone.


class Maintenance:
    """Keeps the read model up to the log, and checks both.

    documents_by: makes the documents of a thread of a watch.
    """

    def __init__(
        self,
        log: Log,
        read_model: ReadModel,
        reads: ReadPool,
        documents_by: "Callable[[ReadModel, Callable[[], None]], Documents]",
    ) -> None:
        self._log = log
        self._read_model = read_model
        self._reads = reads
        self._documents_by = documents_by

    @operation(Replay)
    def project(self, asked: Replay) -> ProjectReport:
        return self._read_model.healed(
            lambda: project.project(
                self._read_model, from_scratch=asked.from_scratch, embed=asked.embed, progress=asked.progress
            )
        )

    @operation(Embed)
    def embed(self, asked: Embed) -> EmbedReport:
        return self._read_model.healed(
            lambda: project.embed(self._read_model, batch=asked.batch, progress=asked.progress)
        )

    @operation(Watch)
    def watch(self, asked: Watch) -> None:
        from memlog.service.watching.threads import bring_up, watch

        tell = asked.tell or (lambda _: None)
        if asked.once:
            self._read_model.check_store()
            documents = self._documents_by(self._read_model, lambda: None)
            bring_up(self._read_model, documents, tell=tell, progress=asked.progress)
            return
        stop = asked.stop or threading.Event()
        watch(self._read_model, self._documents_by, stop=stop, tell=tell, progress=asked.progress)

    @operation(Verify)
    def verify(self, asked: Verify) -> "Verification":
        from memlog.service.maintenance.verify import verify_store

        check_store(self._read_model.path)
        with self._read_model.mutex:
            return verify_store(self._read_model, asked.progress)

    @operation(Examine)
    def examine(self, asked: Examine) -> "list[Finding]":
        from memlog.service.maintenance.doctor import examine

        with self._read_model.mutex:
            return examine(self._read_model, fix=asked.fix)

    @operation(SealLog)
    def seal(self, asked: SealLog) -> "SealReport":
        from memlog.service.maintenance.seal import seal

        return seal(self._log, accept_loss=asked.accept_loss)

    @operation(Digest)
    def digest(self, asked: Digest) -> str:
        def taken(read_model: ReadModel) -> str:
            db, synced = read_model.latest()
            if not synced:
                read_model.notify("the read model may be behind the log")
            return digest(db, content=asked.content)

        return self._reads.healed(taken)

    @operation(ShowStatus)
    def status(self, _: ShowStatus) -> Status:
        return self._reads.healed(status_of)

    @operation(CountStats)
    def stats(self, _: CountStats) -> Stats:
        return self._reads.healed(stats_of)

    @operation(ListQuarantine)
    def quarantine(self, _: ListQuarantine) -> list[QuarantinedLine]:
        return self._reads.read(provenance.quarantine)

    def explain(self, line: QuarantinedLine) -> str:
        """Tell why a line is quarantined, and what can be done about it."""
        return provenance.explanation(self._log.path, line)
