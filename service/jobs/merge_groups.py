"""What a language model may find of memories, and the events that follow from it."""

from collections.abc import Sequence
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from memlog.eventlog.content_ids import folded
from memlog.eventlog.encode import draft, new_id
from memlog.eventlog.errors import BadInput
from memlog.eventlog.events import MemoryArchived, MemorySaved, MemoryUpdated
from memlog.eventlog.extraction import Extraction, MergeDecision
from memlog.eventlog.secrets import kinds_in
from memlog.query.memories import Memory
from memlog.service.extraction.answers import Listed, listed, usable_text

SOURCE = "merge"
"""The source of memories that were merged of what a model distilled."""

_DISTILLED = ("extraction", SOURCE)
"""Sources of memories that nobody has saved: a model may overrule them."""

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "groups": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "relation": {"type": "string", "enum": ["same", "update", "contradiction"]},
                    "numbers": {"type": "array", "items": {"type": "integer"}},
                    "content": {"type": "string"},
                },
                "required": ["relation", "numbers", "content"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["groups"],
    "additionalProperties": False,
}


Made = MemorySaved | MemoryUpdated | MemoryArchived


class MergeGroup(msgspec.Struct):
    """Memories that the model has found, by their numbers in the question."""

    relation: Literal["same", "update", "contradiction"]
    numbers: list[int]
    content: str = ""


def shown_memory(number: int, memory: Memory, text: str) -> dict[str, Any]:
    """Return a memory as the model is shown it."""
    return {"number": number, "date": memory.updated_at[:10], "text": text}


def read_groups(text: str) -> Listed[MergeGroup] | None:
    """What is usable of an answer; None where it has no such JSON."""
    return listed(text, member="groups", kind=MergeGroup)


def decided(
    groups: list[MergeGroup],
    batch: list[Memory],
    shown: list[Memory],
    chat: str | None,
    origin: Extraction,
) -> tuple[list[Made], list[MergeDecision]]:
    """Return what the usable groups give. A memory is in one group, and each group has a new one.

    chat: that of all of them.
    """
    new = {memory.memory_id for memory in batch}
    left = dict(enumerate(shown, 1))
    events: list[Made] = []
    decisions: list[MergeDecision] = []
    for group in groups:
        numbers = sorted({*group.numbers})
        members = [left[number] for number in numbers if number in left]
        is_group = len(members) == len(numbers) > 1 and any(each.memory_id in new for each in members)
        made = _made(group, members, chat, origin) if is_group else None
        if made is not None:
            events += made[0]
            decisions.append(made[1])
            for number in numbers:
                del left[number]
    return events, decisions


def _made(
    group: MergeGroup, members: list[Memory], chat: str | None, origin: Extraction
) -> tuple[list[Made], MergeDecision] | None:
    """The events that a group gives, and the decision; None where its text cannot be used."""
    origin = replace(origin, memory_ids=[memory.memory_id for memory in members])
    content = usable_text(group.content)
    if content is not None and kinds_in(content):  # the model was given none, and may make one up
        content = None
    made: list[Made] = []
    if group.relation == "contradiction":
        if content is None or any(map(is_of_somebody, members[:-1])):
            return [], decision_of("contradiction", members, None)
        if is_of_somebody(members[-1]):  # what somebody said last holds as it is
            kept = members[-1].memory_id
        else:
            kept = members[0].memory_id
            made.append(
                MemoryUpdated(id=new_id(), memory_id=kept, content=content, title="", extraction=origin)
            )
    elif content is None:
        return None
    else:
        same = (memory.memory_id for memory in members if folded(memory.content) == folded(content))
        kept = next(same, "")
        if not kept:
            # No id of the text: another memory may have it, and say something else by now.
            kept = new_id()
            made.append(_merged(kept, content, members, chat, origin))
    try:
        for event in made:
            draft(event)
    except BadInput:
        return None
    for memory in members:
        if memory.memory_id != kept:
            made.append(MemoryArchived(memory_id=memory.memory_id, extraction=origin))
    return made, decision_of(group.relation, members, kept)


def _merged(
    name: str, content: str, members: list[Memory], chat: str | None, origin: Extraction
) -> MemorySaved:
    """The memory that replaces `members`. It has the time of the newest one."""
    weightiest = max(members, key=lambda memory: memory.importance)
    said_by = (memory.source for memory in members if is_of_somebody(memory))
    return MemorySaved(
        id=name,
        ts=members[-1].updated_at,
        memory_id=name,
        content=content,
        category=weightiest.category,
        kind=weightiest.kind,
        importance=weightiest.importance,
        source=next(said_by, SOURCE),
        topic=weightiest.topic,
        chat_id=chat,
        tags=tags_of(members) or None,
        extraction=origin,
    )


def is_of_somebody(memory: Memory) -> bool:
    """Whether a person or an agent has saved a memory: a model does not overrule it."""
    return memory.source not in _DISTILLED


def tags_of(members: Sequence[Memory]) -> list[str]:
    """The tags of all."""
    return [*dict.fromkeys(tag for memory in members for tag in memory.tags)]


def decision_of(
    relation: Literal["same", "update", "contradiction"], members: Sequence[Memory], kept: str | None
) -> MergeDecision:
    """The decision about some memories. kept: the one that stands for all."""
    ids = [memory.memory_id for memory in members]
    return MergeDecision(relation, ids, [memory.event_id for memory in members], kept)
