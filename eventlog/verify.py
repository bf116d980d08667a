"""Checks the log without the read model: all lines, seals and sealed bytes. Changes nothing."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from memlog.eventlog.errors import LogError
from memlog.eventlog.quarantine import DAMAGE, BadLine
from memlog.eventlog.reader import Bounds, Key, LogEntry, entry_of, lines_of, redacted_keys, why_left_out
from memlog.eventlog.seals.file import read_seals
from memlog.eventlog.seals.format import Seals
from memlog.eventlog.seals.losses import LOSS_REMEDY, Ownership, Unlike, differing
from memlog.eventlog.streams import Segment, by_writer, segments_of, shown
from memlog.eventlog.unread_files import is_conflict_copy, remedy, why_not_read
from memlog.eventlog.watermarks import OpenLoss, ReturnedText, Watermarks


@dataclass
class Lines:
    """Counts of a log's lines.

    quarantined: lines without an event, by reason. by_memlog: segments with a line that memlog wrote.
    """

    events: int = 0
    duplicates: int = 0
    conflicts: int = 0
    redacted: int = 0
    quarantined: Counter[str] = field(default_factory=Counter)
    by_memlog: set[tuple[str, str]] = field(default_factory=set)

    @property
    def damaged(self) -> int:
        """The number of lines that changed after memlog wrote them."""
        return sum(self.quarantined[reason] for reason in DAMAGE)


@dataclass
class LogCheck:
    """The result of a check.

    seals: the number of sealed segments. torn_seals: fragments that killed writers left.
    accepted_losses: the number of seals with which a person accepted a loss.
    problems: damaged lines and unread files.
    notes: unfinished erasures, erased text that came back, segments of other writers still arriving.
    tampered: damaged seals, segments that differ from them, losses, conflict copies.
    """

    lines: Lines
    seals: int
    torn_seals: int
    accepted_losses: int
    problems: list[str]
    notes: list[str]
    tampered: list[str]


def check_log(log: Path) -> LogCheck:
    """Read all of `log`, and compare sealed segments with their seals.

    Raises:
        LogError: it cannot be read.
    """
    try:
        # In this order: a segment is sealed before it has a successor, so seals that are read later include
        # every segment with a successor in this listing.
        segments, strangers = segments_of(log)
        lines = count_lines(log)
        seals = read_seals(log)
        unlike, owner = differing(log), Ownership(log)
        unlike_read = Watermarks(log.parent).differences()
        unsealed = list(_unsealed(segments, seals))
        copies = [path for path in strangers if is_conflict_copy(path.name)]
        others = [path for path in strangers if not is_conflict_copy(path.name)]
        return LogCheck(
            lines=lines,
            seals=len(seals.valid),
            torn_seals=sum(line.damage == "torn" for line in seals.lines),
            accepted_losses=sum(line.seal is not None and line.seal.lost is not None for line in seals.lines),
            problems=[*_line_problems(lines), *_not_read(log, others)],
            notes=[
                *_unfinished(seals),
                *_arriving(unlike, unsealed, owner, unlike_read),
                *_returned(unlike_read, unlike),
            ],
            tampered=[
                *_broken(seals),
                *_missing(unsealed, lines, owner),
                *_unlike(unlike),
                *_not_read(log, copies),
                *_lost_unsealed(unlike_read),
            ],
        )
    except OSError as error:
        message = f"{error.filename or log.name}: {error.strerror or error}"
        raise LogError(shown(message), hint="make the log readable") from error


def count_lines(log: Path, bounds: Bounds | None = None) -> Lines:
    """Count the lines of `log`, up to `bounds`. The first line with an id is its event. Raises OSError."""
    segments = segments_of(log)[0]
    counts = Lines()
    known: dict[Key, bytes] = {}
    redacted = redacted_keys(segments, bounds)
    for segment in segments:
        for entry in filter(None, (entry_of(segment, line) for line in lines_of(segment, bounds))):
            if entry.at:
                counts.by_memlog.add(segment.key)
            _count(counts, entry, why_left_out(entry, known, redacted))
    return counts


def _count(counts: Lines, entry: LogEntry, why: str | None) -> None:
    if why == "redacted":
        counts.redacted += 1
    elif isinstance(entry.event, BadLine):
        counts.quarantined[entry.event.reason] += 1
    elif why is None:
        counts.events += 1
    elif why == "duplicate":
        counts.duplicates += 1
    else:
        counts.conflicts += 1


def _line_problems(lines: Lines) -> Iterator[str]:
    if lines.damaged:
        is_one = lines.damaged == 1
        count = "1 line is" if is_one else f"{lines.damaged} lines are"
        yield f"{count} not as memlog wrote {'it' if is_one else 'them'}: memlog quarantine lists where"


def _unfinished(seals: Seals) -> Iterator[str]:
    for seal in seals.valid.values():
        if seal.is_blank:
            yield f"{seal.stream}/{seal.segment}: an erasure was begun and not finished: memlog scrub"


def _broken(seals: Seals) -> Iterator[str]:
    for line in seals.damaged:
        if line.damage == "no_file":
            yield f"{line.file} is no regular file"
        elif line.damage != "torn":
            yield f"{line.position}: {line.damage}"


def _unsealed(segments: list[Segment], seals: Seals) -> Iterator[tuple[str, str]]:
    """The segments without a seal whose writer has made a later one."""
    for made in by_writer(segments).values():
        for segment in made[:-1]:
            name = segment.key
            if name not in seals.last:
                yield name


def _missing(unsealed: list[tuple[str, str]], lines: Lines, owner: Ownership) -> Iterator[str]:
    """memlog seals what it wrote before it makes the successor; foreign segments need no seal."""
    for name in unsealed:
        if name in lines.by_memlog and not owner.is_foreign(name[1]):
            yield f"{'/'.join(name)}: its seal is missing"


def _not_read(log: Path, paths: list[Path]) -> Iterator[str]:
    for path in paths:
        yield f"{why_not_read(log, path)}; {remedy(log, path)}"


def _unlike(unlike: list[Unlike]) -> Iterator[str]:
    for segment in unlike:
        if segment.state == "changed":
            yield f"{'/'.join(segment.seal.name)}: {segment.why}; {segment.remedy}"


def _arriving(
    unlike: list[Unlike],
    unsealed: list[tuple[str, str]],
    owner: Ownership,
    unlike_read: list[OpenLoss | ReturnedText],
) -> Iterator[str]:
    """Segments of other writers and erasures that have arrived in part, without losses."""
    lost = {loss.name for loss in unlike_read if isinstance(loss, OpenLoss)}
    for segment in unlike:
        if segment.state != "changed" and segment.seal.name not in lost:
            yield f"{'/'.join(segment.seal.name)}: {segment.note}"
    for name in unsealed:
        if owner.is_foreign(name[1]):
            yield f"{'/'.join(name)}: its seal has not arrived"


def _lost_unsealed(unlike_read: list[OpenLoss | ReturnedText]) -> Iterator[str]:
    for loss in unlike_read:
        if isinstance(loss, OpenLoss):
            yield f"{loss.stream}/{loss.why}; {LOSS_REMEDY}"


def _returned(unlike_read: list[OpenLoss | ReturnedText], unlike: list[Unlike]) -> Iterator[str]:
    """Erased text that came back, unless a seal already shows it."""
    shown_by_seals = {segment.seal.name for segment in unlike}
    for text in unlike_read:
        if isinstance(text, ReturnedText) and text.name not in shown_by_seals:
            yield f"{text.stream}/{text.why}: memlog scrub"
