"""The results of an append: event positions, refused lines, and warnings."""

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from memlog.eventlog.errors import MemlogError
from memlog.eventlog.fields import Durability


class AppendWarning(msgspec.Struct, frozen=True):
    """A warning about a stored event that is probably not what the caller meant.

    code: `unknown_member`, `chat_form`, `key`, `conflict`, `forgotten` or `undone`.
    member: the member in question. message: the problem and how to fix it.
    """

    code: str
    member: str
    message: str


class IdHolder(msgspec.Struct, frozen=True):
    """The position of the event that already has an id; `offset` is in bytes."""

    stream: str
    segment: str
    offset: int


class Position(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """The position of a stored event: its stream, the segment's file name, and the line's offset in bytes.

    memory_id: the memory that the event saves or changes.
    conflict: an earlier event with the same id and different content; the earlier one counts, and no read
      returns the new one.
    duplicate: the same event was already stored under this id; the two count as one.
    """

    id: str
    stream: str
    segment: str
    offset: int
    durability: Durability
    memory_id: str | None = None
    conflict: IdHolder | None = None
    duplicate: bool = False
    warnings: tuple[AppendWarning, ...] = ()


class RefusedLine(msgspec.Struct, frozen=True):
    """A line that was not stored. id: the event's id, if known."""

    error: MemlogError
    id: str | None


class KnownId(msgspec.Struct, frozen=True):
    """An id in use in a stream. holder: its event's position; None if forgotten. content: the content hash.

    is_undone: whether the import of its event was undone.
    """

    holder: IdHolder | None = None
    content: bytes = b""
    is_undone: bool = False


LookUp = Callable[[str, Sequence[str]], Mapping[str, KnownId]]
"""Takes a stream and the ids just appended to it; returns the ids that were already in use."""


def collect_warnings(positions: Iterable[Position]) -> list[AppendWarning]:
    """Return the warnings about all stored events, for an operation's result."""
    return [warning for position in positions for warning in position.warnings]


OnStored = Callable[[Sequence[Position]], None]
"""Called with the positions of stored events once they are durable."""


def mark_position_if_id_known(position: Position, content: bytes, known: KnownId | None) -> Position:
    """Mark `position` if `known` shows that its id is in use. content: the content hash of the new event."""
    if known is None:
        return position
    if known.holder is None:
        return _add_warning(
            position, "forgotten", f"the id {position.id} was forgotten: reads will not show this event"
        )
    holder = known.holder
    if holder == IdHolder(position.stream, position.segment, position.offset):
        return position
    if known.is_undone:
        position = _add_warning(
            position,
            "undone",
            f"the id {position.id} belongs to an event of an import that was undone: reads will not show this"
            " event; append it again with an id of its own",
        )
    if known.content == content:
        return msgspec.structs.replace(position, duplicate=True)
    message = (
        f"the id {position.id} already belongs to another event ({holder.stream}/{holder.segment}, byte"
        f" {holder.offset}): reads show only that one; append this one again with an id of its own"
    )
    return msgspec.structs.replace(_add_warning(position, "conflict", message), conflict=holder)


def _add_warning(position: Position, code: str, message: str) -> Position:
    warning = AppendWarning(code, "id", message)
    return msgspec.structs.replace(position, warnings=(*position.warnings, warning))
