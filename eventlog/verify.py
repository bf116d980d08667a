"""Checks the log by itself: every line, every seal, and every byte of what is sealed. Changes nothing."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from memlog.eventlog.errors import LogError
from memlog.eventlog.quarantine import DAMAGE, BadLine
from memlog.eventlog.reader import Key, LogEntry, entry_of, reading, redactions_in, why_left_out
from memlog.eventlog.seals.file import read_seals
from memlog.eventlog.seals.format import Seals
from memlog.eventlog.seals.losses import LOSS_REMEDY, Ownership, Unlike, differing
from memlog.eventlog.segment import Line, read_lines
from memlog.eventlog.streams import Segment, by_writer, segments_of, shown
from memlog.eventlog.unread_files import is_conflict_copy, remedy, why_not_read
from memlog.eventlog.watermarks import OpenLoss, ReturnedText, differences

Bounds = Mapping[tuple[str, str], int]
"""How far to look in each (stream, segment), in bytes; not at all in one that is not named."""


@dataclass
class Lines:
    """What the lines of a log are.

    quarantined: those that hold no event, by reason. by_memlog: segments with a line that memlog wrote.
    """

    events: int = 0
    duplicates: int = 0
    conflicts: int = 0
    redacted: int = 0
    quarantined: Counter[str] = field(default_factory=Counter)
    by_memlog: set[tuple[str, str]] = field(default_factory=set)

    @property
    def damaged(self) -> int:
        """Lines whose bytes are not those that memlog wrote."""
        return sum(self.quarantined[reason] for reason in DAMAGE)


@dataclass
class LogCheck:
    """What was found. seals: how many hold. torn_seals: fragments that killed writers left.

    accepted_losses: seals with which a person accepted a loss.
    problems: what is wrong with lines, and files that are not read.
    notes: erasures that wait to be finished, erased text that has come back, and segments of other writers
        that have not arrived whole.
    tampered: what is wrong with seals, or with what they speak of; what was read and is lost; conflict copies
        of files of the log.
    """

    lines: Lines
    seals: int
    torn_seals: int
    accepted_losses: int
    problems: list[str]
    notes: list[str]
    tampered: list[str]


def check_log(log: Path) -> LogCheck:
    """Read all of `log`, and compare what is sealed with its seals.

    Raises:
        LogError: it cannot be read.
    """
    try:
        # In this order: a segment is sealed before it gets a successor, so the seals that are read later
        # know of every segment that has one here.
        segments, strangers = segments_of(log)
        lines = count_lines(log)
        found = read_seals(log)
        unlike, owner = differing(log), Ownership(log)
        unlike_read = differences(log.parent)
        unsealed = list(_unsealed(segments, found))
        copies = [path for path in strangers if is_conflict_copy(path.name)]
        others = [path for path in strangers if not is_conflict_copy(path.name)]
        return LogCheck(
            lines=lines,
            seals=len(found.standing),
            torn_seals=sum(line.damage == "torn" for line in found.lines),
            accepted_losses=sum(line.seal is not None and line.seal.lost is not None for line in found.lines),
            problems=[*_line_problems(lines), *_not_read(log, others)],
            notes=[
                *_unfinished(found),
                *_arriving(unlike, unsealed, owner, unlike_read),
                *_returned(unlike_read, unlike),
            ],
            tampered=[
                *_broken(found),
                *_missing(unsealed, lines, owner),
                *_unlike(unlike),
                *_not_read(log, copies),
                *_lost_unsealed(unlike_read),
            ],
        )
    except OSError as error:
        message = f"{error.filename or log.name}: {error.strerror or error}"
        raise LogError(shown(message), hint="see that the log can be read") from error


def count_lines(log: Path, bounds: Bounds | None = None) -> Lines:
    """What the lines of `log` are, or those up to `bounds`. Of an id, the earliest position is the event.

    Raises:
        OSError: a segment cannot be read.
    """
    segments = segments_of(log)[0]
    found = Lines()
    known: dict[Key, bytes] = {}
    redacted = _redacted(segments, bounds)
    for segment in segments:
        for entry in _entries(segment, bounds):
            if entry.at:
                found.by_memlog.add((segment.stream, segment.name.filename))
            _count(found, entry, why_left_out(entry, known, redacted))
    return found


def _redacted(segments: list[Segment], bounds: Bounds | None) -> set[Key]:
    """The streams and ids of the events that are to be gone."""
    return {
        (segment.stream, target)
        for segment in segments
        for _, event in redactions_in(segment, _lines(segment, bounds))
        for target in event.targets
    }


def _entries(segment: Segment, bounds: Bounds | None) -> Iterator[LogEntry]:
    return filter(None, (entry_of(segment, line) for line in _lines(segment, bounds)))


def _lines(segment: Segment, bounds: Bounds | None) -> Iterator[Line]:
    end = None if bounds is None else bounds.get((segment.stream, segment.name.filename), 0)
    with reading(segment) as fd:
        # What was read up to there ended there, with a newline or without.
        yield from read_lines(fd, end=end, tail_is_a_line=end is not None or not segment.is_newest)


def _count(found: Lines, entry: LogEntry, why: str | None) -> None:
    if why == "redacted":
        found.redacted += 1
    elif isinstance(entry.event, BadLine):
        found.quarantined[entry.event.reason] += 1
    elif why is None:
        found.events += 1
    elif why == "duplicate":
        found.duplicates += 1
    else:
        found.conflicts += 1


def _line_problems(lines: Lines) -> Iterator[str]:
    if lines.damaged:
        are = (
            "1 line is not as memlog wrote it"
            if lines.damaged == 1
            else (f"{lines.damaged} lines are not as memlog wrote them")
        )
        yield f"{are}: memlog quarantine lists where"


def _unfinished(found: Seals) -> Iterator[str]:
    for said in found.standing.values():
        if said.is_blank:
            yield f"{said.stream}/{said.segment}: an erasure was begun and not finished: memlog scrub"


def _broken(found: Seals) -> Iterator[str]:
    for line in found.damaged:
        if line.damage == "no_file":
            yield f"{line.file} is no regular file"
        elif line.damage != "torn":
            yield f"{line.position}: {line.damage}"


def _unsealed(segments: list[Segment], found: Seals) -> Iterator[tuple[str, str]]:
    """The segments that have no seal though their writer has made a later one."""
    for made in by_writer(segments).values():
        for segment in made[:-1]:
            name = (segment.stream, segment.name.filename)
            if name not in found.last:
                yield name


def _missing(unsealed: list[tuple[str, str]], lines: Lines, owner: Ownership) -> Iterator[str]:
    """What memlog has written is sealed before it has a successor; what others write need not be."""
    for name in unsealed:
        if name in lines.by_memlog and not owner.is_foreign(name[1]):
            yield f"{'/'.join(name)}: its seal is missing"


def _not_read(log: Path, paths: list[Path]) -> Iterator[str]:
    for path in paths:
        yield f"{why_not_read(log, path)}; {remedy(log, path)}"


def _unlike(found: list[Unlike]) -> Iterator[str]:
    for each in found:
        if each.state == "changed":
            yield f"{'/'.join(each.seal.name)}: {each.why}; {each.remedy}"


def _arriving(
    found: list[Unlike],
    unsealed: list[tuple[str, str]],
    owner: Ownership,
    unlike_read: list[OpenLoss | ReturnedText],
) -> Iterator[str]:
    """What another copy of the store has sent a part of, and erasures that some files have and others not;
    without what was here and is lost."""
    lost = {(each.stream, each.segment) for each in unlike_read if isinstance(each, OpenLoss)}
    for each in found:
        if each.state != "changed" and each.seal.name not in lost:
            yield f"{'/'.join(each.seal.name)}: {each.note}"
    for name in unsealed:
        if owner.is_foreign(name[1]):
            yield f"{'/'.join(name)}: its seal has not arrived"


def _lost_unsealed(found: list[OpenLoss | ReturnedText]) -> Iterator[str]:
    for each in found:
        if isinstance(each, OpenLoss):
            yield f"{each.stream}/{each.why}; {LOSS_REMEDY}"


def _returned(found: list[OpenLoss | ReturnedText], unlike_seals: list[Unlike]) -> Iterator[str]:
    """Without those that their seals tell."""
    told = {each.seal.name for each in unlike_seals}
    for each in found:
        if isinstance(each, ReturnedText) and (each.stream, each.segment) not in told:
            yield f"{each.stream}/{each.why}: memlog scrub"
