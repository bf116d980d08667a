"""What is odd about the log: its tails, its seals, its days, and files that are not read."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from memlog.eventlog import disk, log_format
from memlog.eventlog.errors import LogError
from memlog.eventlog.file_io import ends_with_newline
from memlog.eventlog.reader import reading
from memlog.eventlog.seals.file import read_seals
from memlog.eventlog.seals.format import Seals
from memlog.eventlog.seals.losses import LOSS_REMEDY, Loss, Ownership, arriving, grown, losses
from memlog.eventlog.streams import Segment, by_writer, segments_of
from memlog.eventlog.unread_files import remedy as remedy_of
from memlog.eventlog.unread_files import why_not_read
from memlog.eventlog.watermarks import OpenLoss, ReturnedText, Watermarks
from memlog.service.maintenance.findings import Finding, numbered, or_ok


def examine_log(log: Path) -> list[Finding]:
    """Look at the ends of segments, their seals and names; no line is read.

    Raises:
        OSError: the log cannot be read.
    """
    segments, strangers = segments_of(log)
    seals = read_seals(log)
    sealed = numbered(len(seals.last), "segment is sealed", "segments are sealed")
    unread = (
        Finding("unread files", "problem", why_not_read(log, path), remedy_of(log, path))
        for path in strangers
    )
    return [
        _format(log),
        *or_ok("tail", _tails(segments), "every segment ends with a newline"),
        *or_ok("seals", _seals(log, segments, seals), sealed),
        *or_ok("days", _days(segments), "the days of each writer's segments follow each other"),
        *or_ok("unread files", unread, "everything below log/ is read"),
    ]


def _format(log: Path) -> Finding:
    try:
        has_format = log_format.check_writable(log)
    except LogError as error:
        return Finding("log format", "problem", error.message, error.hint)
    said = f"format {log_format.NUMBER}" if has_format else "the next append names it"
    return Finding("log format", "ok", said)


def _tails(segments: list[Segment]) -> Iterator[Finding]:
    for segment in segments:
        if segment.is_newest and _has_tail(segment):
            said = f"{_name(segment)} does not end with a newline: a writer is at it, or was killed"
            yield Finding("tail", "warning", said, "nothing; the next append to it ends it")


def _has_tail(segment: Segment) -> bool:
    with reading(segment) as fd:
        return not ends_with_newline(fd, disk.status(fd).st_size)


def _seals(log: Path, segments: list[Segment], seals: Seals) -> Iterator[Finding]:
    if broken := [line for line in seals.damaged if line.damage != "torn"]:
        files = ", ".join(sorted({line.file for line in broken}))
        said = numbered(len(broken), f"line of {files} is damaged", f"lines of {files} are damaged")
        yield Finding(
            "seals", "problem", said, "store.maintenance.verify() says which; put back a copy of the log"
        )
    unlike_read = Watermarks(log.parent).differences()
    lost: list[Loss | OpenLoss] = [*losses(log)]
    for loss in lost + [each for each in unlike_read if isinstance(each, OpenLoss)]:
        yield Finding("seals", "problem", f"{loss.stream}/{loss.why}", LOSS_REMEDY)
    for longer in grown(log):
        yield Finding("seals", "problem", f"{'/'.join(longer.seal.name)}: {longer.why}", longer.remedy)
    for text in unlike_read:
        if isinstance(text, ReturnedText):
            yield Finding("erasures", "warning", f"{text.stream}/{text.why}", "store.erasure.scrub()")
    yield from _unsealed(log, segments, seals)


def _unsealed(log: Path, segments: list[Segment], seals: Seals) -> Iterator[Finding]:
    unsealed = [
        segment
        for made in by_writer(segments).values()
        for segment in made[:-1]
        if (segment.stream, segment.name.filename) not in seals.last
    ]
    owner = Ownership(log)
    foreign = sum(owner.is_foreign(segment.name.filename) for segment in unsealed)
    if own := len(unsealed) - foreign:
        said = numbered(own, "older segment has no seal", "older segments have no seal")
        yield Finding("seals", "warning", said, "store.maintenance.seal()")
    if coming := foreign + len(arriving(log)):
        one = "segment of another writer has not arrived whole"
        said = numbered(coming, one, "segments of other writers have not arrived whole")
        remedy = "copy the log of the other store again; store.maintenance.verify() lists them"
        yield Finding("seals", "warning", said, remedy)


def _days(segments: list[Segment]) -> Iterator[Finding]:
    """A writer numbers its segments as it makes them, so a day that goes back comes from a wrong clock."""
    written = [made for (_, writer), made in by_writer(segments).items() if writer]
    for old, new in (pair for made in written for pair in pairwise(made)):
        if new.name.day < old.name.day:
            yield Finding(
                "days",
                "warning",
                f"{_name(old)} has a later day than its successor, {new.name.filename}: the clock went back",
                "nothing is lost, and later changes hold; set the clock of the machine that wrote them right",
            )


def _name(segment: Segment) -> str:
    return f"{segment.stream}/{segment.name.filename}"
