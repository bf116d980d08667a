"""The acknowledgement of a stored event: its position, and warnings for its writer."""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import msgspec

Durability = Literal["fsync", "os"]
"""`fsync`: an acknowledged event survives a power cut. `os`: it survives the process."""


class AppendWarning(msgspec.Struct, frozen=True):
    """Something about a stored event that its writer probably did not intend.

    code: `unknown_member`, `chat_form`, `conflict` or `forgotten`.
    member: the member of the event that it is about.
    message: what is odd, and what would be right.
    """

    code: str
    member: str
    message: str


class IdHolder(msgspec.Struct, frozen=True):
    """Where the event stands that has an id: its stream, segment, and the offset of its line in bytes."""

    stream: str
    segment: str
    offset: int


class Position(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Where an event stands: the stream, the segment's file name, the offset of its line in bytes.

    memory_id: of the memory that the event saves or changes.
    conflict: the event that already had this id, with other content. That one counts; this one is stored in
        the log, and no read shows it.
    duplicate: whether the same event was stored before under this id; the two count as one.
    warnings: what the writer should know.
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


class KnownId(msgspec.Struct, frozen=True):
    """What is known of an id in a stream.

    holder: None where the id was forgotten. content: the hash of what the holder says.
    """

    holder: IdHolder | None = None
    content: bytes = b""


LookUp = Callable[[str, Sequence[str]], Mapping[str, KnownId]]
"""Returns, for a stream and ids of events that were just appended to it, those ids that were known before."""

OnStored = Callable[[Sequence[Position]], None]
"""Called with events that have become durable."""


def compared(position: Position, content: bytes, known: KnownId | None) -> Position:
    """`position` with what follows for the event from what is known of its id.

    content: the hash of what the event says.
    """
    if known is None:
        return position
    if known.holder is None:
        return _warned(position, "forgotten", f"the id {position.id} was forgotten: no read shows this event")
    here = IdHolder(position.stream, position.segment, position.offset)
    if known.holder == here:
        return position
    if known.content == content:
        return msgspec.structs.replace(position, duplicate=True)
    message = (
        f"the id {position.id} already names another event ({_shown(known.holder)}): that one counts, and no"
        " read shows this one; append it again with an id of its own"
    )
    return msgspec.structs.replace(_warned(position, "conflict", message), conflict=known.holder)


def _warned(position: Position, code: str, message: str) -> Position:
    warning = AppendWarning(code, "id", message)
    return msgspec.structs.replace(position, warnings=(*position.warnings, warning))


def _shown(holder: IdHolder) -> str:
    return f"{holder.stream}/{holder.segment}, byte {holder.offset}"
