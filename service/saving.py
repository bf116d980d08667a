"""Saving a memory. It does not look into the read model, so that it takes little longer than an append."""

from collections.abc import Callable
from typing import Literal, get_args

import msgspec

from memlog.eventlog.categories import known_category
from memlog.eventlog.errors import BadInput
from memlog.eventlog.events import Event, MemoryKind, MemorySaved
from memlog.eventlog.identity import derived_memory_id
from memlog.eventlog.log import Position

Append = Callable[[list[Event]], list[Position]]
"""Makes events durable and says where they stand; raises BadInput, Busy and LogError."""


class Saved(msgspec.Struct, kw_only=True):
    """What became of a memory that was saved.

    decision: `saved`: it stands in the log as a memory of its own, or as what its memory_id now says.
    """

    memory_id: str
    event_id: str
    decision: Literal["saved"]
    position: Position


def save(append: Append, event: MemorySaved) -> Saved:
    """Append `event`, with the memory_id that its chat and content give it where it names none.

    The id is written down, so that whoever looks for it in the log finds it. Raises as `Append`, and BadInput
    where there is no such category or kind.
    """
    check_kind(event.kind)
    category = known_category(event.category)
    memory_id = event.memory_id
    if memory_id is None:
        memory_id = derived_memory_id(event.chat_id, event.content)
    (position,) = append([msgspec.structs.replace(event, memory_id=memory_id, category=category)])
    return Saved(memory_id=memory_id, event_id=position.id, decision="saved", position=position)


def check_kind(kind: str | None) -> None:
    """Refuse a kind of memories that there is not; None is none to check.

    Raises:
        BadInput: there is none of this name; the message lists those that there are.
    """
    known = get_args(MemoryKind)
    if kind is not None and kind not in known:
        raise BadInput(f"kind is {kind!r}, not one of {', '.join(known)}", hint="fact fits all")
