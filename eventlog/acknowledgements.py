"""The acknowledgement of a stored event: its position, and warnings for its writer."""

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from memlog.eventlog.errors import MemlogError
from memlog.eventlog.limits import Durability as Durability


class AppendWarning(msgspec.Struct, frozen=True):
    """Something about a stored event that its writer probably did not intend.

    code: `unknown_member`, `chat_form`, `key`, `conflict` or `forgotten`.
    member: the member in question.
    message: the problem and its remedy.
    """

    code: str
    member: str
    message: str


class IdHolder(msgspec.Struct, frozen=True):
    """The position of the event that has an id; offset in bytes."""

    stream: str
    segment: str
    offset: int


class Position(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """The position of a stored event: stream, segment's file name, offset of its line in bytes.

    memory_id: the memory that the event saves or changes.
    conflict: an earlier event with this id and other content. It counts; the new one stays in the log unread.
    duplicate: the same event was stored before under this id; the two count as one.
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
    """A line that may not be stored. id: its event's id, if the line or memlog gave one."""

    error: MemlogError
    id: str | None


class KnownId(msgspec.Struct, frozen=True):
    """An id in use in a stream: its holder, None for a forgotten id, and the holder's content hash."""

    holder: IdHolder | None = None
    content: bytes = b""


LookUp = Callable[[str, Sequence[str]], Mapping[str, KnownId]]
"""Given a stream and ids just appended to it, returns the ids that were in use before."""


def warnings_of(positions: Iterable[Position]) -> list[AppendWarning]:
    """Return what is to be told of stored events, as the answer of an operation has it."""
    return [warning for position in positions for warning in position.warnings]


OnStored = Callable[[Sequence[Position]], None]
"""Called with stored events, once they are durable."""


def compared(position: Position, content: bytes, known: KnownId | None) -> Position:
    """`position` with what follows from an id in use. content: the event's content hash."""
    if known is None:
        return position
    if known.holder is None:
        return _warned(position, "forgotten", f"the id {position.id} was forgotten: no read shows this event")
    holder = known.holder
    if holder == IdHolder(position.stream, position.segment, position.offset):
        return position
    if known.content == content:
        return msgspec.structs.replace(position, duplicate=True)
    message = (
        f"the id {position.id} already names another event ({holder.stream}/{holder.segment}, byte"
        f" {holder.offset}): that one counts, and no read shows this one; append it again with an id of its"
        " own"
    )
    return msgspec.structs.replace(_warned(position, "conflict", message), conflict=holder)


def _warned(position: Position, code: str, message: str) -> Position:
    warning = AppendWarning(code, "id", message)
    return msgspec.structs.replace(position, warnings=(*position.warnings, warning))
