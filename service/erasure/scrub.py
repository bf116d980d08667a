"""Scrubbing: overwrites forgotten events in the log, and removes everything that was made of them.

The log first, then seals, then a new read model, then the cache. If a run is killed, the next one goes on:
the redactions name what is left to erase.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from memlog.eventlog import log_format, scrub
from memlog.eventlog.copy_identity import Writer
from memlog.eventlog.errors import LogError
from memlog.eventlog.layout import SCRUB_LOCK
from memlog.eventlog.locks import locked
from memlog.eventlog.reader import redacted_keys, segments_about
from memlog.eventlog.scrub import Erased
from memlog.eventlog.seals.file import SealFiles
from memlog.eventlog.streams import Segment
from memlog.eventlog.watermarks import Watermarks
from memlog.projector import checkpoints
from memlog.projector.catchup import Progress
from memlog.projector.embedding.cache import keep_only
from memlog.projector.passages import index
from memlog.projector.sqlite import Connection
from memlog.service.documents.records import forget_all
from memlog.service.erasure.reports import ScrubReport
from memlog.service.read_model import ReadModel
from memlog.service.requests.erasure import Scrub

OUT_OF_REACH = (
    "out of reach: backups, snapshots, git's history and other copies of the store; old copies that the disk"
    " may keep in freed or relocated blocks, such as on an SSD or a copy-on-write file system"
)
"""For people: the copies that no program of this user can overwrite."""


def scrub_store(read_model: ReadModel, lock_timeout: float, asked: Scrub) -> ScrubReport:
    """See `Scrub`."""
    log_format.check_writable(read_model.projector.log)
    if not asked.dry_run:
        # Imported here: most stores have no provider.
        from memlog.service.providers.breaker import forget_words

        forget_words(read_model.path)
    segments = segments_about(read_model.projector.log)
    redacted = redacted_keys(segments)
    # Afterwards, so that the read model has all of them before a byte is erased. A damaged one is replaced:
    # its content is unknown. A shared catch-up would not look at one that is up to the log.
    read_model.check_writable()
    read_model.healed(lambda: read_model.noted(read_model.projector.catch_up()))
    due = dict(scrub.due_lines(segments, redacted))
    found = ScrubReport(
        lines=sum(map(len, due.values())),
        bytes=sum(line.length for lines in due.values() for line in lines),
        segments=len(due),
    )
    if not redacted:
        found.notes = ["nothing was forgotten"]
        return found
    if asked.dry_run:
        return found
    seals = SealFiles(read_model.projector.log, Writer(read_model.path).name())
    watermarks = Watermarks(read_model.path)

    def erase(segment: Segment) -> Erased:
        with _finished_by_the_next_run(segment):
            return read_model.projector.in_turn(
                lambda db: scrub.erase(
                    segment,
                    due[segment],
                    redacted,
                    seals=seals,
                    lock_timeout=lock_timeout,
                    around=lambda fd: _followed(db, watermarks, segment, fd),
                )
            )

    def renew_seals(segments: list[Segment]) -> None:
        for segment in segments:
            with _finished_by_the_next_run(segment):
                seals.reseal(*segment.key, lock_timeout=lock_timeout)

    with locked(read_model.path / SCRUB_LOCK, "the scrub", lock_timeout):
        erased = list(map(erase, due))
        renewed = [each.segment for each in erased if each.seal == "renewed"]
        renew_seals([*scrub.unfinished(segments), *renewed])
        found.vectors = _remade(read_model, asked.progress)
        # A process that sealed a segment while its bytes changed has sealed bytes that are gone.
        renew_seals(renewed)
    return _completed(found, read_model, erased)


@contextmanager
def _followed(db: Connection, watermarks: Watermarks, segment: Segment, fd: int) -> Iterator[None]:
    """A context in which bytes of an open segment are erased; watermarks and checkpoints follow."""
    with watermarks.erasing(segment, fd), checkpoints.following(db, segment, fd):
        yield


def _remade(read_model: ReadModel, progress: Progress | None) -> int:
    """Build a new generation, remove the others, and shrink the cache; return how many vectors it lost."""
    projector = read_model.projector
    projector.rebuild("scrubbed", progress=progress)
    projector.leave_no_other()
    projector.core_view.leave_no_older(projector.live())
    forget_all(read_model.path)
    return keep_only(read_model.path, index.texts(projector.live()), vacuum=True)


def _completed(report: ScrubReport, read_model: ReadModel, erased: list[Erased]) -> ScrubReport:
    current = read_model.projector.generations.current()
    report.lines = sum(each.lines for each in erased)
    report.bytes = sum(each.bytes for each in erased)
    report.done = True
    report.generation = None if current is None else current.name
    unlike = ["/".join(each.segment.key) for each in erased if each.seal == "unlike"]
    report.notes = [f"{place} was not as it was sealed: its seal stays" for place in unlike] + [OUT_OF_REACH]
    return report


@contextmanager
def _finished_by_the_next_run(segment: Segment) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise LogError(
            f"{'/'.join(segment.key)}: {error.strerror or error}: what was forgotten may still be there",
            hint="store.erasure.scrub() goes on where it stopped",
        ) from error
