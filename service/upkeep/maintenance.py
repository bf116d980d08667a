"""The operations of `store.maintenance`."""

import threading
from functools import partial
from os.path import lexists
from typing import TYPE_CHECKING, Any, Self

import msgspec

from memlog.eventlog.errors import BadInput, DatabaseError
from memlog.eventlog.files.folders import check_store
from memlog.eventlog.files.locks import locked_if_there
from memlog.eventlog.integrity.seal_close import accept_losses, all_losses, seal_all
from memlog.eventlog.integrity.seal_format import Seal
from memlog.eventlog.integrity.seal_losses import Loss
from memlog.eventlog.integrity.verify import check_log
from memlog.eventlog.log.layout import CURRENT, SCRUB_LOCK, SegmentRecord
from memlog.eventlog.log.streams import segments_of
from memlog.eventlog.log.watermarks import OpenLoss
from memlog.eventlog.log.writer import Log
from memlog.projector import catchup
from memlog.projector.catchup import Progress
from memlog.projector.embedding.cache import check_cache, count_unused
from memlog.projector.passages import index
from memlog.projector.sqlite import wrapped
from memlog.projector.verify import Verification, digest, verify
from memlog.query import provenance
from memlog.query.provenance import QuarantinedLine
from memlog.service.engine.engine import OperationGroup
from memlog.service.engine.operation import operation
from memlog.service.engine.read_model import ReadModel
from memlog.service.upkeep.project import EmbedReport, ProjectReport, embed, project
from memlog.service.upkeep.requests import (
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
from memlog.service.upkeep.status import Stats, Status, stats_of, status_of

if TYPE_CHECKING:
    from memlog.service.upkeep.doctor import Finding

# Some imports are local: a process only pays for what it uses.


class Maintenance(OperationGroup):
    """Catches the read model up with the log, and checks both."""

    @operation(Replay, effect="maintain")
    def project(self, request: Replay) -> ProjectReport:
        return project(self._engine.reads.maintenance, request)

    @operation(Embed, effect="maintain")
    def embed(self, request: Embed) -> EmbedReport:
        return embed(self._engine.reads.maintenance, request)

    @operation(Watch, effect="maintain", is_endless=True)
    def watch(self, request: Watch) -> None:
        from memlog.service.documents.documents import Documents
        from memlog.service.upkeep.jobs import runner_of
        from memlog.service.upkeep.watch import bring_up, watch

        engine, tell = self._engine, request.tell or (lambda _: None)
        if engine.read_model.is_off:
            raise BadInput("memory.enabled is false: nothing is watched", hint="set memory.enabled to true")
        if request.once:
            check_store(engine.path)
            bring_up(engine.reads.maintenance, Documents(engine), tell=tell, progress=request.progress)
            return
        watch(
            engine.read_model,
            lambda read_model, on_wait: Documents(engine.for_thread(read_model, on_wait)),
            lambda read_model, heartbeat, notify: runner_of(
                engine.for_thread(read_model, lambda: None),
                lock_timeout=0.0,
                heartbeat=heartbeat,
                notify=notify,
            ),
            stop=request.stop or threading.Event(),
            tell=tell,
            progress=request.progress,
        )

    @operation(Verify, effect="read")
    def verify(self, request: Verify) -> Verification:
        check_store(self._engine.path)
        self._engine.record_sizes()
        read_model = self._engine.reads.maintenance
        with read_model.mutex:
            return verify_store(read_model, request.progress)

    @operation(Examine, effect="maintain")
    def examine(self, request: Examine) -> "list[Finding]":
        from memlog.service.upkeep.doctor import examine

        self._engine.record_sizes()
        read_model = self._engine.reads.maintenance
        with read_model.mutex:
            return examine(read_model, self._engine.language_model, fix=request.fix)

    @operation(SealLog, effect="maintain")
    def seal(self, request: SealLog) -> "SealReport":
        return seal(self._engine.log, accept_loss=request.accept_loss)

    @operation(Digest, effect="read")
    def digest(self, request: Digest) -> str:
        return self._engine.reads.healed(lambda model: digest(model.latest()[0], content=request.content))

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
        """Explain why a line is quarantined, and what to do about it."""
        return provenance.explanation(self._engine.log_path, line)


class SegmentLoss(SegmentRecord, frozen=True, omit_defaults=True):
    """A segment that has lost or changed bytes.

    bytes: its current size; None if it is missing, 0 in its new seal. sealed: its size in its seal; None
    without a seal. read: its size when last read, without a seal. why: the reason in words.
    """

    bytes: int | None
    why: str
    sealed: int | None = None
    read: int | None = None

    @classmethod
    def of(cls, loss: Seal | Loss | OpenLoss) -> Self:
        """Convert a loss; an accepted one of a sealed segment comes as its new seal."""
        if isinstance(loss, Seal):
            lost = loss.lost or 0
            why = f"{loss.segment}: {lost} bytes lost, {loss.bytes} left"
            return cls(*loss.name, loss.bytes, why, sealed=loss.bytes + lost)
        sizes: dict[str, Any] = {"read": loss.read} if isinstance(loss, OpenLoss) else {"sealed": loss.sealed}
        return cls(*loss.name, loss.bytes, loss.why, **sizes)


class SealReport(msgspec.Struct, kw_only=True):
    """The result of sealing.

    sealed: new seals, one for each segment that had none.
    accepted: losses that this run has accepted.
    lost: losses that are not accepted.
    """

    sealed: list[Seal]
    accepted: list[SegmentLoss]
    lost: list[SegmentLoss]


def seal(log: Log, *, accept_loss: bool) -> SealReport:
    """Seal the older segments; see `SealLog`."""
    check_store(log.store)
    made = seal_all(log.store, lock_timeout=log.lock_timeout)
    accepted = accept_losses(log.store, lock_timeout=log.lock_timeout) if accept_loss else []
    return SealReport(
        sealed=made,
        accepted=[*map(SegmentLoss.of, accepted)],
        lost=[*map(SegmentLoss.of, all_losses(log.store))],
    )


_LONGEST_SCRUB, _STOPPED = 600.0, 10.0
"""Seconds to wait for a scrub, which is mostly a rebuild; and for one whose process is stopped."""

_IN_MEMORY = 200
"""MiB of log that are replayed in memory at most if no file can be created: a replay takes 4.6 bytes per byte
of log (measured), so at most 1 GB."""


def verify_store(read_model: ReadModel, progress: Progress | None) -> Verification:
    """See `Verify`."""
    found = _verify_once(read_model, progress)
    if found.ok:
        return found
    # A concurrent scrub changes lines between two reads, and leaves its lock file.
    lock = read_model.path / SCRUB_LOCK
    with locked_if_there(lock, "the log", _LONGEST_SCRUB, if_stopped=_STOPPED) as has_been_scrubbed:
        return _verify_once(read_model, progress) if has_been_scrubbed else found


def _verify_once(read_model: ReadModel, progress: Progress | None) -> Verification:
    log = check_log(read_model.projector.log)
    found = _compare_with_replay(read_model, progress)
    if found.digest is None:  # no read model has counts
        found = msgspec.structs.replace(
            found,
            events=log.lines.events,
            duplicates=log.lines.duplicates,
            conflicts=log.lines.conflicts,
            quarantined=dict(sorted(log.lines.quarantined.items())),
            damaged=log.lines.damaged,
        )
    cached, cache_problems = check_cache(read_model.path, read_only=read_model.is_only_read)
    unused = 0
    if found.digest is not None and not cache_problems:
        with wrapped("the read model"):
            texts = index.texts(read_model.projector.live(read_only=read_model.is_read_only))
            unused = count_unused(read_model.path, texts, read_only=read_model.is_only_read)
    return msgspec.structs.replace(
        found,
        cached_vectors=cached,
        unused_vectors=unused,
        seals=log.seals,
        torn_seals=log.torn_seals,
        accepted_losses=log.accepted_losses,
        problems=list(dict.fromkeys([*log.problems, *found.problems, *cache_problems])),
        tampered=log.tampered,
        notes=[*found.notes, *log.notes],
    )


def _compare_with_replay(read_model: ReadModel, progress: Progress | None) -> Verification:
    """Compare the read model with a replay up to the same point, or note why that is impossible."""
    projector = read_model.projector
    if projector.generations.current() is None:
        if lexists(read_model.path / CURRENT):
            return Verification(
                problems=["model/CURRENT names a read model that does not exist: store.maintenance.project()"]
            )
        return Verification(notes=["there is no read model: store.maintenance.project()"])
    try:
        db = projector.live(read_only=read_model.is_read_only)
        with wrapped("the read model"):
            standing = catchup.stored_projection_id(db)
        if standing != catchup.projection_id(projector.sizes):
            return Verification(
                notes=["the read model was built with other chunk sizes or by another memlog: not compared"]
            )
        if read_model.is_only_read:
            mebibytes = sum(segment.status().st_size for segment in segments_of(projector.log)[0]) >> 20
            if mebibytes > _IN_MEMORY:
                return Verification(notes=[_TOO_LONG.format(mebibytes)])
            return verify(db, projector.log, projector.sizes, read_only=True, progress=progress)
        scratch = projector.generations.scratch
        return verify(db, projector.log, projector.sizes, scratch=scratch, progress=progress)
    except DatabaseError as error:
        projector.close()
        return Verification(
            problems=[f"the read model could not be read ({error.message}): store.maintenance.project()"]
        )


_TOO_LONG = (
    "the store cannot be written, and its log of {} MiB is too long to be replayed in memory: not compared;"
    " verify a copy that can be written"
)
