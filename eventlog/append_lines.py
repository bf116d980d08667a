"""Appends lines of JSON, and stores or refuses each on its own."""

from collections.abc import Iterator, Sequence

import msgspec

from memlog.eventlog.acknowledgements import Position
from memlog.eventlog.acknowledgements import RefusedLine as RefusedLine
from memlog.eventlog.decode import without_bom
from memlog.eventlog.encode import Draft
from memlog.eventlog.encoding import decoded
from memlog.eventlog.errors import MemlogError
from memlog.eventlog.quarantine import TOO_LONG
from memlog.eventlog.writer import Log

NumberedLine = tuple[int, bytes | None]
"""A line's number, from 1, and its bytes; None if it was too long to keep."""


def append_lines(log: Log, lines: Sequence[NumberedLine]) -> Iterator[tuple[int, Position | RefusedLine]]:
    """Append `lines` without blank ones; yields each outcome in order, once all are durable."""
    checked = [(number, _checked(log, line)) for number, line in _without_blank(lines)]
    stored = iter(log.append_each([item for _, item in checked if isinstance(item, Draft)]))
    for number, item in checked:
        if isinstance(item, RefusedLine):
            yield number, item
            continue
        outcome = next(stored)
        yield number, outcome if isinstance(outcome, Position) else RefusedLine(outcome, item.id)


def _without_blank(lines: Sequence[NumberedLine]) -> Iterator[NumberedLine]:
    for number, line in lines:
        whole = None if line is None else without_bom(line)
        if whole is None or whole.strip():
            yield number, whole


def _checked(log: Log, line: bytes | None) -> Draft | RefusedLine:
    if line is None:
        return RefusedLine(TOO_LONG, None)
    try:
        return log.draft(line)
    except MemlogError as error:
        return RefusedLine(error, _given_id(line))


class _Identified(msgspec.Struct):
    id: str | None = None


def _given_id(line: bytes) -> str | None:
    """The event id in a refused line, if it can be read."""
    # Imported here: most lines are valid.
    from memlog.eventlog.secrets import masked

    given = decoded(line, _Identified)
    return None if given is None or given.id is None else masked(given.id)
