"""Verifies a store: its log, its read model, its cache. Changes nothing."""

from os.path import lexists

import msgspec

from memlog.eventlog.errors import DatabaseError
from memlog.eventlog.layout import CURRENT, SCRUB_LOCK
from memlog.eventlog.locks import locked_if_there
from memlog.eventlog.streams import segments_of
from memlog.eventlog.verify import LogCheck, check_log
from memlog.projector import projection_id
from memlog.projector.catchup import Progress
from memlog.projector.embedding.cache import check_cache, count_unused
from memlog.projector.passages import index
from memlog.projector.sqlite import wrapped
from memlog.projector.verify import Verification, verify
from memlog.service.read_model import ReadModel

_LONGEST_SCRUB, _STOPPED = 600.0, 10.0
"""Seconds to wait for a scrub, which is mostly a rebuild; and if its process is stopped."""

_IN_MEMORY = 200
"""MiB of log that are replayed in memory if no file can be made: measured to take 4.6 bytes for each byte of
the log, so 1 GB at most."""


def verify_store(read_model: ReadModel, progress: Progress | None) -> Verification:
    """See `Verify`."""
    found = _verified(read_model, progress)
    if found.ok:
        return found
    # A scrub that ran beside this has changed lines between two looks at them, and left its lock file.
    lock = read_model.path / SCRUB_LOCK
    with locked_if_there(lock, "the log", _LONGEST_SCRUB, if_stopped=_STOPPED) as has_been_scrubbed:
        return _verified(read_model, progress) if has_been_scrubbed else found


def _verified(read_model: ReadModel, progress: Progress | None) -> Verification:
    log = check_log(read_model.projector.log)
    found = _compared(read_model, progress)
    if found.digest is None:
        found = _counted(found, log)
    cached, cache_problems = check_cache(read_model.path, read_only=read_model.is_only_read)
    return msgspec.structs.replace(
        found,
        cached_vectors=cached,
        unused_vectors=0 if found.digest is None or cache_problems else _count_unused(read_model),
        seals=log.seals,
        torn_seals=log.torn_seals,
        accepted_losses=log.accepted_losses,
        problems=list(dict.fromkeys([*log.problems, *found.problems, *cache_problems])),
        tampered=log.tampered,
        notes=[*found.notes, *log.notes],
    )


def _count_unused(read_model: ReadModel) -> int:
    with wrapped("the read model"):
        texts = index.texts(read_model.projector.live(read_only=read_model.is_read_only))
        return count_unused(read_model.path, texts, read_only=read_model.is_only_read)


def _compared(read_model: ReadModel, progress: Progress | None) -> Verification:
    """Compares the read model with a replay, as far as it has caught up; or says why it cannot."""
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
            standing = projection_id.stored_projection_id(db)
        if standing != projection_id.projection_id(projector.sizes):
            return Verification(
                notes=["the read model was made with other chunk sizes, or by another memlog: not compared"]
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


def _counted(found: Verification, log: LogCheck) -> Verification:
    """Takes the counts from the log, since no read model has them."""
    return msgspec.structs.replace(
        found,
        events=log.lines.events,
        duplicates=log.lines.duplicates,
        conflicts=log.lines.conflicts,
        quarantined=dict(sorted(log.lines.quarantined.items())),
        damaged=log.lines.damaged,
    )
