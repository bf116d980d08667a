"""What somebody has removed from the core memory, or replaced: the log alone still has the values."""

from pathlib import Path
from typing import NamedTuple, cast

from memlog.eventlog.decode import decode
from memlog.eventlog.events import CoreMemoryDeleted, CoreMemoryUpdated
from memlog.eventlog.precedence import precedence
from memlog.eventlog.quarantine import BadLine
from memlog.eventlog.segment import line_at
from memlog.eventlog.streams import SegmentName
from memlog.eventlog.upcast import Place
from memlog.projector.handlers.core_memory import PROFILE
from memlog.projector.sqlite import Connection

_CHANGES = """
SELECT day, number, writer, offset, length, segment FROM events
WHERE stream = 'core' AND type IN ('core_memory_updated', 'core_memory_deleted')
ORDER BY day, number, writer, offset
"""
"""Without what was forgotten: a forgotten value is known no more."""


class RejectedValue(NamedTuple):
    """A value that a key of the core memory had until somebody removed it, or set another one."""

    key: str
    value: str


def rejected_values(db: Connection, log: Path, section: str) -> list[RejectedValue]:
    """Return the values of a section that somebody has removed or replaced, without those that somebody has
    set since, under any key. What memlog itself removes or replaces is not rejected."""
    changes = sorted(_changes(db, log, section), key=lambda change: change[0])
    last = {said.key: order for order, said in changes if said.source != PROFILE}
    held = {
        said.value
        for order, said in changes
        if isinstance(said, CoreMemoryUpdated) and order == last.get(said.key)
    }
    found = (
        RejectedValue(said.key, said.value)
        for order, said in changes
        if isinstance(said, CoreMemoryUpdated) and order < last.get(said.key, ()) and said.value not in held
    )
    return [*dict.fromkeys(found)]


def _changes(
    db: Connection, log: Path, section: str
) -> list[tuple[tuple[str | int, ...], CoreMemoryUpdated | CoreMemoryDeleted]]:
    """Return the changes of a section, each with its precedence."""
    found: list[tuple[tuple[str | int, ...], CoreMemoryUpdated | CoreMemoryDeleted]] = []
    for day, number, writer, offset, length, segment in db.execute(_CHANGES).fetchall():
        name = cast("SegmentName", SegmentName.parse(segment))
        try:
            said = decode(line_at(log, "core", segment, offset, length), Place("core", name, offset))
        except BadLine:  # overwritten meanwhile: it was forgotten
            continue
        if isinstance(said, CoreMemoryUpdated | CoreMemoryDeleted) and said.section == section:
            found.append(((precedence(said, name), day, number, writer, offset), said))
    return found
