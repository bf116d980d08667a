"""What a language model may find of memories, and the events that follow from it."""

from collections.abc import Container, Sequence
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from memlog.eventlog.content_ids import folded, with_quantities
from memlog.eventlog.encode import draft, new_id
from memlog.eventlog.errors import BadInput
from memlog.eventlog.events import MemoryArchived, MemorySaved, MemoryUpdated
from memlog.eventlog.extraction import Extraction, MergeDecision
from memlog.eventlog.secrets import kinds_in
from memlog.query.memories import Memory
from memlog.query.merges import MERGED
from memlog.service.extraction.answers import Listed, listed, usable_text
from memlog.service.jobs.losses import loss

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
Relation = Literal["same", "update", "contradiction"]


class MergeGroup(msgspec.Struct):
    """Memories that the model has found, by their numbers in the question."""

    relation: Relation
    numbers: list[int]
    content: str = ""


def shown_memory(number: int, memory: Memory, text: str) -> dict[str, Any]:
    """Return a memory as the model is shown it."""
    return {"number": number, "date": memory.updated_at[:10], "text": text}


def read_groups(text: str) -> Listed[MergeGroup] | None:
    """What is usable of an answer; None where it has no such JSON."""
    return listed(text, member="groups", kind=MergeGroup)


class MergeFindings(msgspec.Struct):
    """What a comparison gives. refused: why, for each group that is left as it is."""

    events: list[Made] = []
    decisions: list[MergeDecision] = []
    refused: list[str] = []


def decided(
    groups: list[MergeGroup],
    batch: list[Memory],
    shown: list[Memory],
    chat: str | None,
    origin: Extraction,
    *,
    own: Container[str],
    room: int,
    apart: Sequence[frozenset[str]],
) -> MergeFindings:
    """Return what the usable groups give. A memory is in one group, and each group has a new one.

    chat: that of all of them. own: the memories that somebody saved: a model does not overrule them.
    room: for conflicts; the text of a further one is a memory until it is one.
    apart: the events with the contents of memories that a person has parted again.
    """
    new = {memory.memory_id for memory in batch}
    left = dict(enumerate(shown, 1))
    found = MergeFindings()
    for group in groups:
        numbers = sorted({*group.numbers})
        members = [left[number] for number in numbers if number in left]
        if not (len(members) == len(numbers) > 1 and any(each.memory_id in new for each in members)):
            found.refused.append("no group")
            continue
        said = {memory.event_id for memory in members}
        if any(len(said & each) > 1 for each in apart):
            found.refused.append("what was parted")
            continue
        made = _made(group, members, chat, origin, own, has_room=room > 0)
        if isinstance(made, str):
            found.refused.append(made)
            continue
        events, decision = made
        found.events += events
        found.decisions.append(decision)
        room -= decision.memory_id is None
        for number in numbers:
            del left[number]
    return found


def _made(
    group: MergeGroup,
    members: list[Memory],
    chat: str | None,
    origin: Extraction,
    own: Container[str],
    *,
    has_room: bool,
) -> tuple[list[Made], MergeDecision] | str:
    """The events that a group gives, and the decision; or why it is refused."""
    origin = replace(origin, memory_ids=[memory.memory_id for memory in members])
    content = usable_text(group.content)
    if content is not None and kinds_in(content):  # the model was given none, and may make one up
        content = None
    if group.relation != "contradiction":
        if content is None:
            return "no text"
        if what := loss(_texts(members), content):
            return what
    kept, made = _standing(group.relation, members, content, chat, origin, own)
    if kept is None:
        proposed = content if content is not None and _naming(members, content) is None else None
        made = [] if proposed is None else [_merged(new_id(), None, proposed, members, chat, origin)]
    try:
        for event in made:
            draft(event)
    except BadInput:
        return "no text"
    if kept is not None:
        others = (memory.memory_id for memory in members if memory.memory_id != kept)
        made += [MemoryArchived(memory_id=name, extraction=origin) for name in others]
        return made, decision_of(group.relation, members, kept)
    proposal = next((event.memory_id for event in made), None)
    if proposal is not None and has_room:
        made.append(MemoryArchived(memory_id=proposal, extraction=origin))
    return made, decision_of(group.relation, members, None, proposal)


def _standing(
    relation: Relation,
    members: list[Memory],
    content: str | None,
    chat: str | None,
    origin: Extraction,
    own: Container[str],
) -> tuple[str | None, list[Made]]:
    """The memory that stands for all, with what makes it; None where one that somebody saved would change."""
    said = [memory for memory in members if memory.memory_id in own]
    if relation == "contradiction":
        if content is None or any(memory is not members[-1] for memory in said):
            return None, []
        if said:  # what somebody said last holds as it is
            return members[-1].memory_id, []
        kept = members[0].memory_id
        return kept, [
            MemoryUpdated(id=new_id(), memory_id=kept, content=content, title="", extraction=origin)
        ]
    assert content is not None
    same = _naming(said or members, content)
    if said and same is None and relation == "same" and loss(_texts(members), said[0].content) is None:
        same = said[0].memory_id
    if len(said) > 1 or (said and same is None):
        return None, []
    if same is not None:
        return same, []
    # No id of the text: another memory may have it, and say something else by now.
    name = new_id()
    return name, [_merged(name, members[-1].updated_at, content, members, chat, origin)]


def _naming(members: list[Memory], content: str) -> str | None:
    """The id of the memory that has this text."""
    said = folded(with_quantities(content))
    same = (memory.memory_id for memory in members if folded(with_quantities(memory.content)) == said)
    return next(same, None)


def _texts(members: list[Memory]) -> list[str]:
    return [memory.content for memory in members]


def _merged(
    name: str,
    ts: str | None,
    content: str,
    members: list[Memory],
    chat: str | None,
    origin: Extraction,
) -> MemorySaved:
    """A memory in the place of `members`. ts: of the newest one, which it replaces; None for now."""
    weightiest = max(members, key=lambda memory: memory.importance)
    return MemorySaved(
        id=name,
        ts=ts,
        memory_id=name,
        content=content,
        category=weightiest.category,
        kind=weightiest.kind,
        importance=weightiest.importance,
        source=MERGED,
        topic=weightiest.topic,
        chat_id=chat,
        tags=tags_of(members) or None,
        extraction=origin,
    )


def tags_of(members: Sequence[Memory]) -> list[str]:
    """The tags of all."""
    return [*dict.fromkeys(tag for memory in members for tag in memory.tags)]


def decision_of(
    relation: Relation, members: Sequence[Memory], kept: str | None, proposal: str | None = None
) -> MergeDecision:
    """The decision about some memories. kept: the one that stands for all; None: a person is to decide.
    proposal: of the memory with the text that the model proposes.
    """
    ids = [memory.memory_id for memory in members]
    return MergeDecision(relation, ids, [memory.event_id for memory in members], kept, proposal)
