"""Scrubbing: what was forgotten is overwritten in the log, and nothing that was made of it stays.

The log first, then seals, then a new read model, then the cache. Killed between, the next run goes on: the
redactions say what is to go.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec

from memlog.eventlog import log_format, scrub
from memlog.eventlog.copy_identity import Writer
from memlog.eventlog.errors import LogError
from memlog.eventlog.layout import SCRUB_LOCK
from memlog.eventlog.locks import locked
from memlog.eventlog.reader import Key, redacted_keys, segments_about
from memlog.eventlog.scrub import Erased
from memlog.eventlog.seals.file import SealFiles
from memlog.eventlog.segment import Line
from memlog.eventlog.streams import Segment
from memlog.eventlog.watermarks import Watermarks
from memlog.projector import checkpoints
from memlog.projector.catchup import Progress
from memlog.projector.embedding.cache import keep_only
from memlog.projector.passages import index
from memlog.projector.sqlite import Connection
from memlog.service.documents.records import forget_all
from memlog.service.read_model import ReadModel

OUT_OF_REACH = (
    "out of reach: backups, snapshots, git's history and other copies of the store; what the disk itself"
    " keeps of blocks that were given back or, on an SSD or a copy-on-write file system, written elsewhere"
)
"""For people: the copies that no program of this user can overwrite."""


class ScrubReport(msgspec.Struct, kw_only=True):
    """The bytes that were overwritten, or would be.

    lines, bytes, segments: how many hold forgotten events.
    done: whether it was done. generation: the file of the new read model.
    vectors: how many vectors were removed from the cache.
    notes: what a person should know.
    """

    lines: int
    bytes: int
    segments: int
    done: bool = False
    generation: str | None = None
    vectors: int = 0
    notes: list[str] = []


def scrub_store(
    read_model: ReadModel,
    lock_timeout: float,
    confirm: Callable[[ScrubReport], bool],
    progress: Progress | None,
) -> ScrubReport:
    """See `Scrub`."""
    log_format.check_writable(read_model.projector.log)
    segments = segments_about(read_model.projector.log)
    redacted = redacted_keys(segments)
    # Afterwards, so that all of these are in the read model before a byte goes; and it is whole: what stood
    # in a damaged one is unknown.
    read_model.decide(lambda _: None)
    due = dict(scrub.due_lines(segments, redacted))
    found = ScrubReport(
        lines=sum(map(len, due.values())),
        bytes=sum(line.length for lines in due.values() for line in lines),
        segments=len(due),
    )
    if not redacted:
        found.notes = ["nothing was forgotten"]
        return found
    if not confirm(found):
        return found
    seals = SealFiles(read_model.projector.log, Writer(read_model.path).name())
    watermarks = Watermarks(read_model.path)
    with locked(read_model.path / SCRUB_LOCK, "the scrub", lock_timeout):
        erased = [
            _erased(read_model, seals, watermarks, segment, due[segment], redacted, lock_timeout)
            for segment in due
        ]
        _renew_seals(seals, [*scrub.unfinished(segments), *_renewed(erased)], lock_timeout)
        found.vectors = _remade(read_model, progress)
        # A process that sealed a segment while its bytes changed has sealed bytes that are gone.
        _renew_seals(seals, _renewed(erased), lock_timeout)
    return _told(read_model, found, erased)


def _erased(
    read_model: ReadModel,
    seals: SealFiles,
    watermarks: Watermarks,
    segment: Segment,
    lines: list[Line],
    redacted: set[Key],
    lock_timeout: float,
) -> Erased:
    with _finished_by_the_next_run(segment):
        return read_model.projector.in_turn(
            lambda db: scrub.erase(
                segment,
                lines,
                redacted,
                seals=seals,
                lock_timeout=lock_timeout,
                around=lambda fd: _followed(db, watermarks, segment, fd),
            )
        )


@contextmanager
def _followed(db: Connection, watermarks: Watermarks, segment: Segment, fd: int) -> Iterator[None]:
    """Meanwhile bytes of the open segment are erased: what is known of them changes with them."""
    with watermarks.erasing(segment, fd), checkpoints.following(db, segment, fd):
        yield


def _renewed(erased: list[Erased]) -> list[Segment]:
    return [each.segment for each in erased if each.seal == "renewed"]


def _renew_seals(seals: SealFiles, segments: list[Segment], lock_timeout: float) -> None:
    for segment in segments:
        with _finished_by_the_next_run(segment):
            seals.reseal(*segment.key, lock_timeout=lock_timeout)


def _remade(read_model: ReadModel, progress: Progress | None) -> int:
    """A new generation and no other, and a cache without free pages; how many vectors have left it."""
    projector = read_model.projector
    projector.rebuild("scrubbed", progress=progress)
    projector.leave_no_other()
    projector.core_view.leave_no_older(projector.live())
    forget_all(read_model.path)
    return keep_only(read_model.path, index.texts(projector.live()), vacuum=True)


def _told(read_model: ReadModel, found: ScrubReport, erased: list[Erased]) -> ScrubReport:
    current = read_model.projector.generations.current()
    found.lines = sum(each.lines for each in erased)
    found.bytes = sum(each.bytes for each in erased)
    found.done = True
    found.generation = None if current is None else current.name
    found.notes = [
        f"{each.segment.stream}/{each.segment.name.filename} was not as it was sealed: its seal stays"
        for each in erased
        if each.seal == "unlike"
    ]
    found.notes.append(OUT_OF_REACH)
    return found


@contextmanager
def _finished_by_the_next_run(segment: Segment) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        place = f"{segment.stream}/{segment.name.filename}"
        raise LogError(
            f"{place}: {error.strerror or error}: what was forgotten may still be there",
            hint="memlog scrub goes on where it stopped",
        ) from error
