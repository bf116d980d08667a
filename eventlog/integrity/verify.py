"""Checks all lines, seals and sealed bytes of the log without the read model, and changes nothing."""

from collections import Counter
from collections.abc import Container
from dataclasses import dataclass, field
from pathlib import Path

from memlog.eventlog.integrity.seal_file import read_seals
from memlog.eventlog.integrity.seal_format import Seals
from memlog.eventlog.integrity.seal_losses import LOSS_REMEDY, Ownership, find_differing_segments
from memlog.eventlog.log.quarantine import DAMAGE, BadLine
from memlog.eventlog.log.reader import (
    Bounds,
    Key,
    read_entries_in_log_order,
    read_redacted_keys,
    why_excluded_or_remember,
)
from memlog.eventlog.log.streams import Segment, group_segments_by_writer, list_segments
from memlog.eventlog.log.tail import advise_on_unread_file, is_conflict_copy, why_not_read
from memlog.eventlog.log.watermarks import OpenLoss, ReturnedText, Watermarks


@dataclass
class Lines:
    """Counts of the lines in a log.

    quarantined: the number of lines that hold no event, keyed by reason.
    by_memlog: segments with at least one line written by memlog.
    """

    events: int = 0
    duplicates: int = 0
    conflicts: int = 0
    redacted: int = 0
    quarantined: Counter[str] = field(default_factory=Counter)
    by_memlog: set[tuple[str, str]] = field(default_factory=set)

    @property
    def damaged_count(self) -> int:
        """The number of lines that were altered after memlog wrote them."""
        return sum(self.quarantined[reason] for reason in DAMAGE)


@dataclass
class LogCheck:
    """The result of a check.

    seals: the number of sealed segments. torn_seals: fragments left by killed writers.
    accepted_losses: the number of seals that accept a loss.
    problems: damaged lines, and files that are not read.
    notes: unfinished erasures, erased text that came back, and segments of other writers that are still
      arriving.
    tampered: damaged seals, segments that differ from their seals, losses, and conflict copies.
    """

    lines: Lines
    seals: int
    torn_seals: int
    accepted_losses: int
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    tampered: list[str] = field(default_factory=list)


def check_log(log: Path) -> LogCheck:
    """Read all of `log`, and compare sealed segments with their seals. Raises OSError."""
    # In this order: a segment is sealed before it gets a successor, so seals read later include every segment
    # with a successor in this listing.
    segments, strangers = list_segments(log)
    lines = count_lines(log)
    seals = read_seals(log)
    check = LogCheck(
        lines,
        seals=len(seals.valid_seals),
        torn_seals=sum(line.damage == "torn" for line in seals.lines),
        accepted_losses=sum(line.seal is not None and line.seal.lost is not None for line in seals.lines),
    )
    differences = Watermarks(log.parent).find_differences()
    losses = {loss.name: loss for loss in differences if isinstance(loss, OpenLoss)}
    _add_line_problems(check)
    _add_seal_findings(check, seals)
    sealed_otherwise = _add_segment_findings(check, log, _find_unsealed_segments(segments, seals), losses)
    for path in strangers:
        found = check.tampered if is_conflict_copy(path.name) else check.problems
        found.append(f"{why_not_read(log, path)}; {advise_on_unread_file(log, path)}")
    check.tampered += [f"{loss.stream}/{loss.description}; {LOSS_REMEDY}" for loss in losses.values()]
    check.notes += [
        f"{text.stream}/{text.description}: store.erasure.scrub()"
        for text in differences
        if isinstance(text, ReturnedText) and text.name not in sealed_otherwise
    ]
    return check


def count_lines(log: Path, bounds: Bounds | None = None) -> Lines:
    """Count the lines of `log` up to `bounds`; the first of several with equal ids counts. Raises OSError."""
    segments = list_segments(log)[0]
    counts = Lines()
    known: dict[Key, bytes] = {}
    redacted = read_redacted_keys(segments, bounds)
    for entry in read_entries_in_log_order(segments, bounds=bounds):
        if entry.append_time:
            counts.by_memlog.add(entry.segment.stream_and_filename)
        match why_excluded_or_remember(entry, known, redacted):
            case None:
                counts.events += 1
            case "redacted":
                counts.redacted += 1
            case "duplicate":
                counts.duplicates += 1
            case "conflict":
                counts.conflicts += 1
            case _ if isinstance(entry.event, BadLine):
                counts.quarantined[entry.event.reason] += 1
    return counts


def _add_line_problems(check: LogCheck) -> None:
    damaged = check.lines.damaged_count
    if damaged:
        are, them = ("1 line is", "it") if damaged == 1 else (f"{damaged} lines are", "them")
        check.problems.append(f"{are} not as memlog wrote {them}: store.maintenance.quarantine() lists where")


def _add_seal_findings(check: LogCheck, seals: Seals) -> None:
    for line in seals.damaged_lines:
        if line.damage == "no_file":
            check.tampered.append(f"not a regular file: {line.file}")
        elif line.damage != "torn":
            check.tampered.append(f"{line.position}: {line.damage}")
    for seal in seals.valid_seals.values():
        if seal.is_blank:
            where = f"{seal.stream}/{seal.segment}"
            check.notes.append(f"{where}: an erasure was not finished: run store.erasure.scrub()")


def _find_unsealed_segments(segments: list[Segment], seals: Seals) -> list[tuple[str, str]]:
    """Return the segments that have a successor but no seal."""
    finished = (
        segment.stream_and_filename
        for made in group_segments_by_writer(segments).values()
        for segment in made[:-1]
    )
    return [name for name in finished if name not in seals.last]


def _add_segment_findings(
    check: LogCheck, log: Path, unsealed: list[tuple[str, str]], losses: Container[tuple[str, str]]
) -> set[tuple[str, str]]:
    """Add missing seals and differing segments to `check`; return the keys of the differing segments."""
    unlike, owner = find_differing_segments(log), Ownership(log)
    arriving = [name for name in unsealed if owner.is_foreign(name[1])]
    for name in unsealed:
        # memlog seals its segments before it creates the successor; foreign ones need no seal.
        if name in check.lines.by_memlog and name not in arriving:
            check.tampered.append(f"{'/'.join(name)}: its seal is missing")
    for segment in unlike:
        if segment.state == "changed":
            check.tampered.append(f"{'/'.join(segment.seal.name)}: {segment.description}; {segment.remedy}")
        elif segment.seal.name not in losses:
            check.notes.append(f"{'/'.join(segment.seal.name)}: {segment.note}")
    check.notes += [f"{'/'.join(name)}: its seal has not arrived" for name in arriving]
    return {segment.seal.name for segment in unlike}
