"""What is odd about the log: its tails, its seals, its days, and files that are not read."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from memlog.eventlog import disk, log_format
from memlog.eventlog.errors import LogError
from memlog.eventlog.reader import reading
from memlog.eventlog.seals.file import read_seals
from memlog.eventlog.seals.losses import LOSS_REMEDY, Loss, Ownership, arriving, grown, losses
from memlog.eventlog.streams import Segment, by_writer, segments_of
from memlog.eventlog.unread_files import remedy, why_not_read
from memlog.eventlog.watermarks import OpenLoss, ReturnedText, Watermarks
from memlog.service.maintenance.findings import Finding, numbered


def examine_log(log: Path) -> Iterator[Finding]:
    """Look at the ends of segments, their seals and names; no line is read.

    Raises:
        OSError: the log cannot be read.
    """
    segments, strangers = segments_of(log)
    yield from _format(log)
    yield from _tails(segments)
    yield from _seals(log, segments)
    yield from _days(segments)
    yield from _unread_files(log, strangers)


def _format(log: Path) -> Iterator[Finding]:
    try:
        has_format = log_format.check_writable(log)
    except LogError as error:
        yield Finding("log format", "problem", error.message, error.hint)
    else:
        said = f"format {log_format.NUMBER}" if has_format else "the next append names it"
        yield Finding("log format", "ok", said)


def _tails(segments: list[Segment]) -> Iterator[Finding]:
    pending = [segment for segment in segments if segment.is_newest and _has_tail(segment)]
    for segment in pending:
        yield Finding(
            "tail",
            "warning",
            f"{_name(segment)} does not end with a newline: a writer is at it, or was killed",
            "nothing; the next append to it ends it",
        )
    if not pending:
        yield Finding("tail", "ok", "every segment ends with a newline")


def _has_tail(segment: Segment) -> bool:
    with reading(segment) as fd:
        size = disk.status(fd).st_size
        return size > 0 and disk.read(fd, 1, size - 1) != b"\n"


def _seals(log: Path, segments: list[Segment]) -> Iterator[Finding]:
    found = read_seals(log)
    broken = [line for line in found.damaged if line.damage != "torn"]
    unlike_read = Watermarks(log.parent).differences()
    lost_unsealed = [each for each in unlike_read if isinstance(each, OpenLoss)]
    lost: list[Loss | OpenLoss] = [*losses(log), *lost_unsealed]
    longer = grown(log)
    returned = [each for each in unlike_read if isinstance(each, ReturnedText)]
    unsealed = [
        segment
        for made in by_writer(segments).values()
        for segment in made[:-1]
        if (segment.stream, segment.name.filename) not in found.last
    ]
    owner = Ownership(log)
    own = [segment for segment in unsealed if not owner.is_foreign(segment.name.filename)]
    coming = len(unsealed) - len(own) + len(arriving(log))
    if broken:
        files = ", ".join(sorted({line.file for line in broken}))
        said = numbered(len(broken), f"line of {files} is damaged", f"lines of {files} are damaged")
        yield Finding("seals", "problem", said, "memlog verify says which; put back a copy of the log")
    for loss in lost:
        yield Finding("seals", "problem", f"{loss.stream}/{loss.why}", LOSS_REMEDY)
    for each in longer:
        yield Finding("seals", "problem", f"{'/'.join(each.seal.name)}: {each.why}", each.remedy)
    for text in returned:
        yield Finding("erasures", "warning", f"{text.stream}/{text.why}", "memlog scrub")
    if own:
        said = numbered(len(own), "older segment has no seal", "older segments have no seal")
        yield Finding("seals", "warning", said, "memlog seal")
    if coming:
        said = numbered(
            coming,
            "segment of another writer has not arrived whole",
            "segments of other writers have not arrived whole",
        )
        yield Finding(
            "seals", "warning", said, "copy the log of the other store again; memlog verify lists them"
        )
    if not (broken or lost or longer or returned or own or coming):
        yield Finding("seals", "ok", numbered(len(found.last), "segment is sealed", "segments are sealed"))


def _days(segments: list[Segment]) -> Iterator[Finding]:
    """A writer numbers its segments as it makes them, so a day that goes back comes from a wrong clock."""
    written = [made for (_, writer), made in by_writer(segments).items() if writer]
    back = [(old, new) for made in written for old, new in pairwise(made) if new.name.day < old.name.day]
    for old, new in back:
        yield Finding(
            "days",
            "warning",
            f"{_name(old)} has a later day than its successor, {new.name.filename}: the clock went back",
            "nothing is lost, and later changes hold; set the clock of the machine that wrote them right",
        )
    if not back:
        yield Finding("days", "ok", "the days of each writer's segments follow each other")


def _unread_files(log: Path, strangers: list[Path]) -> Iterator[Finding]:
    for path in strangers:
        yield Finding("unread files", "problem", why_not_read(log, path), remedy(log, path))
    if not strangers:
        yield Finding("unread files", "ok", "everything below log/ is read")


def _name(segment: Segment) -> str:
    return f"{segment.stream}/{segment.name.filename}"
