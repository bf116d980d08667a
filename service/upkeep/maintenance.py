"""The operations of `store.maintenance`."""

import threading
from collections.abc import Callable
from functools import partial
from os.path import lexists
from typing import TYPE_CHECKING, Annotated, Any, Self

import msgspec
from msgspec import Meta

from memlog.eventlog.errors import BadInput, DatabaseError
from memlog.eventlog.fields import Local
from memlog.eventlog.files.folders import check_store_exists
from memlog.eventlog.files.locks import holding_lock_if_file_exists
from memlog.eventlog.integrity.seal_close import accept_losses, find_all_losses, seal_unsealed_segments
from memlog.eventlog.integrity.seal_format import Seal
from memlog.eventlog.integrity.seal_losses import Loss
from memlog.eventlog.integrity.verify import check_log
from memlog.eventlog.log.layout import CURRENT, SCRUB_LOCK, SegmentRecord
from memlog.eventlog.log.streams import list_segments
from memlog.eventlog.log.watermarks import OpenLoss
from memlog.eventlog.log.writer import Log
from memlog.projector import catchup
from memlog.projector.catchup import Progress
from memlog.projector.embedding import EMBED_BATCH
from memlog.projector.embedding.cache import check_cache, count_unused_texts
from memlog.projector.passages import index
from memlog.projector.sqlite import converting_errors
from memlog.projector.verify import Verification, hash_dump, verify_read_model
from memlog.query import provenance
from memlog.query.provenance import QuarantinedLine
from memlog.service.engine.operation import OperationGroup, operation
from memlog.service.engine.read_model import ReadModel
from memlog.service.engine.requests import ProgressField
from memlog.service.upkeep.project import EmbedReport, ProjectReport, embed_pending_passages, project_log
from memlog.service.upkeep.status import Stats, Status, read_stats, read_status

if TYPE_CHECKING:
    from memlog.service.upkeep.doctor import Finding
    from memlog.service.upkeep.worker import WatchStep
else:  # few watch
    WatchStep = Any

# Some imports are local: a process only pays for what it uses.


class Maintenance(OperationGroup):
    """Keeps the read model up to date, and checks the log and the read model."""

    @operation("maintain")
    def project(
        self,
        *,
        from_scratch: Annotated[
            bool, "Build a new read model from the whole log, then replace the live one with it."
        ] = False,
        embed: Annotated[bool, "Also compute missing embeddings; text is searchable before that."] = True,
        progress: ProgressField = None,
    ) -> ProjectReport:
        """Replay the log into the read model, then compute missing embeddings.

        After an interruption, the next run continues. Reads catch up automatically; use this for long logs,
        to rebuild, or to compute all embeddings.

        Raises:
            Busy: another projector held the lock for too long.
            DatabaseError: the read model cannot be written.
        """
        return project_log(self._engine.reads.maintenance, progress, from_scratch=from_scratch, embed=embed)

    @operation("maintain")
    def embed(
        self,
        *,
        batch: Annotated[
            int, Meta(ge=1, le=4096), "How many passages to embed between two writes."
        ] = EMBED_BATCH,
        progress: ProgressField = None,
    ) -> EmbedReport:
        """Compute missing embeddings, after catching up with the log.

        After an interruption, the next run continues.

        Raises:
            EmbeddingError: no model works here, or it failed.
            Busy, DatabaseError: as `project`.
        """
        read_model = self._engine.reads.maintenance
        return read_model.run_with_repair(lambda: embed_pending_passages(read_model, progress, batch))

    @operation("maintain", is_endless=True)
    def watch(
        self,
        *,
        once: Annotated[bool, "Catch up once, then end."] = False,
        stop: Annotated[
            threading.Event | None,
            Local(is_callback=False),
            "An event that another thread sets to end the watch; set when the watch returns.",
        ] = None,
        tell: Annotated[
            Callable[[WatchStep], None] | None,
            Local(),
            "Called with each step that did something, and with the first step.",
        ] = None,
        progress: ProgressField = None,
    ) -> None:
        """Keep the read model current with the log, documents with their files, and compute embeddings.

        An event that any process appends is in the read model within 250 ms; a changed file in a folder of
        documents is found within a second. Embeddings follow in the background. Jobs run when they are due:
        decay, merges, and distillation by a language model. An error is reported to `notify` once, and the
        work is retried. One process watches a store at a time.

        Raises:
            Busy: another process watches this store.
            NotFound: with `once`, there is no store.
            LogError: the store cannot be created or written; with `once`, also as `project`.
            DatabaseError: with `once`, as `project`.
        """
        from memlog.service.documents.documents import Documents
        from memlog.service.upkeep.jobs import JobRunner
        from memlog.service.upkeep.watch import run_single_watch_pass, watch_store

        engine, tell = self._engine, tell or (lambda _: None)
        if engine.read_model.is_off:
            raise BadInput("memory.enabled is false: nothing is watched", hint="set memory.enabled to true")
        if once:
            check_store_exists(engine.path)
            run_single_watch_pass(engine.reads.maintenance, Documents(engine), tell=tell, progress=progress)
            return
        watch_store(
            engine.read_model,
            lambda read_model, on_wait: Documents(engine.copy_for_thread(read_model, on_wait)),
            lambda read_model, heartbeat, notify: JobRunner(
                engine.copy_for_thread(read_model, lambda: None),
                lock_timeout=0.0,
                heartbeat=heartbeat,
                notify=notify,
            ),
            stop=stop or threading.Event(),
            tell=tell,
            progress=progress,
        )

    @operation("read")
    def verify(self, *, progress: ProgressField = None) -> Verification:
        """Check the log, its seals and the cache, and compare the read model with a replay. Changes nothing.

        The replay covers what the read model has read so far, in an unnamed temporary file in model/.
        Problems are checked again once no scrub is running.

        Raises:
            LogError: the log cannot be read.
        """
        check_store_exists(self._engine.path)
        self._engine.record_sizes()
        read_model = self._engine.reads.maintenance
        with read_model.mutex:
            return verify_store(read_model, progress)

    @operation("maintain")
    def examine(
        self,
        *,
        fix: Annotated[
            bool, "Rebuild damaged read models and caches, and take permissions from others."
        ] = False,
    ) -> "list[Finding]":
        """Examine the store and this machine, and suggest a remedy for each problem.

        Checks SQLite, the vector extension, the model, the file system, free space, permissions, the read
        model, the cache, and the log's tails, seals, days and unread files. What cannot be read is a problem.
        The log never changes.
        """
        from memlog.service.upkeep.doctor import examine_store

        self._engine.record_sizes()
        read_model = self._engine.reads.maintenance
        with read_model.mutex:
            return examine_store(read_model, self._engine.language_model, fix=fix)

    @operation("maintain")
    def seal(
        self,
        *,
        accept_loss: Annotated[
            bool, "Accept that missing or changed bytes are lost: seal the bytes that are there now."
        ] = False,
    ) -> "SealReport":
        """Close and seal every segment of the log, including the newest of each stream.

        A seal records the length of a segment and a hash of its bytes, so that `verify` detects any change.
        Segments with a successor are sealed automatically; this seals the rest, for example before a backup.
        The next append begins a new segment.
        """
        return seal_all_segments(self._engine.log, accept_loss=accept_loss)

    @operation("read")
    def digest(
        self,
        *,
        content: Annotated[
            bool, "Omit positions and times of appending: equal for logs with the same events."
        ] = False,
    ) -> str:
        """Compute a SHA-256 digest over all rows of the read model, in hex, after catching up with the log.

        Read models of the same log have the same digest on every machine, whatever their history.
        """
        return self._engine.reads.run_with_repair(
            lambda model: hash_dump(model.connect_to_latest()[0], content=content)
        )

    @operation("read")
    def status(self) -> Status:
        """Show the state of the store and its read model, and which parts work here. Does not catch up."""
        return self._engine.reads.run_with_repair(partial(read_status, self._engine.language_model))

    @operation("read")
    def stats(self) -> Stats:
        """Count events, messages, memories, vectors and bytes, and report how far the read model lagged."""
        return self._engine.reads.run_with_repair(read_stats)

    @operation("read")
    def quarantine(self) -> list[QuarantinedLine]:
        """List the lines of the log that could not be replayed, each with its position and the reason.

        Their bytes stay in the log as they are.
        """
        return self._read(provenance.quarantined_lines)

    def explain(self, line: QuarantinedLine) -> str:
        """Explain why a line is quarantined, and what to do about it."""
        return provenance.explain_quarantined_line(self._engine.log_path, line)


class SegmentLoss(SegmentRecord, frozen=True, omit_defaults=True):
    """A segment that has lost or changed bytes.

    bytes: its current size; None, or 0 in its new seal, if the file is missing. sealed: the size in its
    seal, if any. read: its size when memlog last read it, if it has no seal. why: the reason in words.
    """

    bytes: int | None
    why: str
    sealed: int | None = None
    read: int | None = None

    @classmethod
    def of(cls, loss: Seal | Loss | OpenLoss) -> Self:
        """Convert any kind of loss; the new seal of a segment stands for its accepted loss."""
        if isinstance(loss, Seal):
            lost = loss.lost or 0
            why = f"{loss.segment}: {lost} bytes lost, {loss.bytes} left"
            return cls(*loss.name, loss.bytes, why, sealed=loss.bytes + lost)
        sizes: dict[str, Any] = {"read": loss.read} if isinstance(loss, OpenLoss) else {"sealed": loss.sealed}
        return cls(*loss.name, loss.bytes, loss.description, **sizes)


class SealReport(msgspec.Struct, kw_only=True):
    """The result of sealing.

    sealed: new seals, one for each segment that had none.
    accepted: losses that this call accepted.
    lost: losses that have not been accepted.
    """

    sealed: list[Seal]
    accepted: list[SegmentLoss]
    lost: list[SegmentLoss]


def seal_all_segments(log: Log, *, accept_loss: bool) -> SealReport:
    """Seal all segments and, with `accept_loss`, accept losses; see `Maintenance.seal`."""
    check_store_exists(log.store)
    made = seal_unsealed_segments(log.store, lock_timeout=log.lock_timeout)
    accepted = accept_losses(log.store, lock_timeout=log.lock_timeout) if accept_loss else []
    return SealReport(
        sealed=made,
        accepted=[*map(SegmentLoss.of, accepted)],
        lost=[*map(SegmentLoss.of, find_all_losses(log.store))],
    )


_LONGEST_SCRUB, _STOPPED = 600.0, 10.0
"""Seconds to wait for a scrub, which is mostly a rebuild; and for one whose process is stopped."""

_IN_MEMORY = 200
"""The most MiB of log to replay in memory if no file can be created: a replay takes 4.6 bytes per byte of log
(measured), so at most 1 GB."""


def verify_store(read_model: ReadModel, progress: Progress | None) -> Verification:
    """Verify a store; see `Maintenance.verify`."""
    found = _verify_once(read_model, progress)
    if found.ok:
        return found
    # A concurrent scrub changes lines between two reads, and leaves its lock file.
    lock = read_model.path / SCRUB_LOCK
    with holding_lock_if_file_exists(
        lock, "the log", _LONGEST_SCRUB, if_stopped=_STOPPED
    ) as has_been_scrubbed:
        return _verify_once(read_model, progress) if has_been_scrubbed else found


def _verify_once(read_model: ReadModel, progress: Progress | None) -> Verification:
    log = check_log(read_model.projector.log)
    found = _compare_with_replay(read_model, progress)
    if found.digest is None:  # there is no read model to take the counts from
        found = msgspec.structs.replace(
            found,
            events=log.lines.events,
            duplicates=log.lines.duplicates,
            conflicts=log.lines.conflicts,
            quarantined=dict(sorted(log.lines.quarantined.items())),
            damaged=log.lines.damaged_count,
        )
    cached, cache_problems = check_cache(read_model.path, read_only=read_model.uses_databases_read_only)
    unused = 0
    if found.digest is not None and not cache_problems:
        with converting_errors("the read model"):
            texts = index.texts_to_embed(
                read_model.projector.connect_to_live(read_only=read_model.is_read_only)
            )
            unused = count_unused_texts(read_model.path, texts, read_only=read_model.uses_databases_read_only)
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
    """Compare the read model with a replay up to the same point, or explain why that is impossible."""
    projector = read_model.projector
    if projector.generations.find_live_file() is None:
        if lexists(read_model.path / CURRENT):
            return Verification(
                problems=[
                    "model/CURRENT points to a read model that does not exist: store.maintenance.project()"
                ]
            )
        return Verification(notes=["there is no read model: store.maintenance.project()"])
    try:
        db = projector.connect_to_live(read_only=read_model.is_read_only)
        with converting_errors("the read model"):
            standing = catchup.read_stored_projection_id(db)
        if standing != catchup.compute_projection_id(projector.sizes):
            return Verification(
                notes=["the read model was built with other chunk sizes or by another memlog: not compared"]
            )
        if read_model.uses_databases_read_only:
            mebibytes = (
                sum(segment.read_status().st_size for segment in list_segments(projector.log)[0]) >> 20
            )
            if mebibytes > _IN_MEMORY:
                return Verification(notes=[_TOO_LONG.format(mebibytes)])
            return verify_read_model(db, projector.log, projector.sizes, read_only=True, progress=progress)
        scratch = projector.generations.open_scratch_database
        return verify_read_model(db, projector.log, projector.sizes, scratch=scratch, progress=progress)
    except DatabaseError as error:
        projector.close()
        return Verification(
            problems=[f"the read model could not be read ({error.message}): store.maintenance.project()"]
        )


_TOO_LONG = (
    "the store cannot be written, and its log of {} MiB is too long to be replayed in memory: not compared;"
    " verify a copy that can be written"
)
