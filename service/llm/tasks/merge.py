"""Merges memories that mean the same, within one partition: a chat, a topic and a category.

While several people talk to the agent, the chat of a memory is also the one that it comes from. What comes
from several chats is of no partition.

A comparison is one append: the merged memory, the archived ones, and last the line that closes it.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Container, Sequence
from functools import partial
from itertools import chain
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec.structs import replace

from memlog.eventlog.codec.content_ids import folded, with_quantities
from memlog.eventlog.codec.encode import draft, new_id
from memlog.eventlog.errors import BadInput
from memlog.eventlog.events import (
    Event,
    Extraction,
    MemoriesMerged,
    MemoryArchived,
    MemorySaved,
    MemoryUpdated,
    MergeDecision,
)
from memlog.eventlog.secrets.detection import kinds_in
from memlog.eventlog.secrets.outgoing import is_private
from memlog.projector.sqlite import Connection
from memlog.query.conflicts import (
    MERGED,
    MOST_OPEN,
    compared,
    open_conflicts,
    proposed_memories,
    undone_merges,
    worded_by_somebody,
)
from memlog.query.context.scope import automatic_scope, chats_of
from memlog.query.memories import Memory, memories
from memlog.query.search.alike import alike
from memlog.query.sendable import masked_memories
from memlog.service.engine.engine import Engine
from memlog.service.engine.prompts import MERGE, prompt
from memlog.service.llm.answers import LONGEST, Listed, listed, usable_text
from memlog.service.llm.task import FRAME, Items, Outcome, Questions, kept_note, set_aside_note, size_of
from memlog.service.llm.tasks.losses import loss, made_up

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
    """Return the usable groups of an answer; None where it has no such JSON."""
    return listed(text, member="groups", kind=MergeGroup)


class MergeFindings(msgspec.Struct):
    """The result of a comparison.

    refused: why, for each group that is left as it is.
    """

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
    """Return the decisions for the usable groups.

    A memory is in one group, and each group has a new one.

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
        event_ids = {memory.event_id for memory in members}
        if any(len(event_ids & each) > 1 for each in apart):
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
    """Return the events that a group gives, and the decision; or why it is refused."""
    origin = replace(origin, memory_ids=[memory.memory_id for memory in members])
    content = usable_text(group.content)
    if content is not None and kinds_in(content):  # the model was given none, and may make one up
        content = None
    what = None
    if group.relation != "contradiction":
        what = "no text" if content is None else loss(_texts(members), content)
    elif content is not None and (what := made_up(_texts(members), content)):
        content = None
        # Where somebody has saved one of them, a person decides without the text.
        what = None if any(memory.memory_id in own for memory in members) else what
    if what is not None:
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
    """Return the memory that replaces a group, and its origin; None if that changes a person's memory."""
    own_members = [memory for memory in members if memory.memory_id in own]
    if relation == "contradiction":
        if content is None or any(memory is not members[-1] for memory in own_members):
            return None, []
        if own_members:  # what a person wrote last is kept as is
            return members[-1].memory_id, []
        kept = members[0].memory_id
        return kept, [MemoryUpdated(id=new_id(), memory_id=kept, content=content, extraction=origin)]
    assert content is not None
    same = _naming(own_members or members, content)
    if (
        own_members
        and same is None
        and relation == "same"
        and loss(_texts(members), own_members[0].content) is None
    ):
        same = own_members[0].memory_id
    if len(own_members) > 1 or (own_members and same is None):
        return None, []
    if same is not None:
        return same, []
    # No id of the text: another memory may have it, and say something else by now.
    name = new_id()
    return name, [_merged(name, members[-1].updated_at, content, members, chat, origin)]


def _naming(members: list[Memory], content: str) -> str | None:
    """Return the id of the memory that has this text."""
    folded_text = folded(with_quantities(content))
    same = (memory.memory_id for memory in members if folded(with_quantities(memory.content)) == folded_text)
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
    """Return a memory that replaces `members`.

    ts: of the newest one, which it replaces; None for now.
    """
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
    """Return the tags of all."""
    return [*dict.fromkeys(tag for memory in members for tag in memory.tags)]


def decision_of(
    relation: Relation, members: Sequence[Memory], kept: str | None, proposal: str | None = None
) -> MergeDecision:
    """Return the decision about some memories.

    kept: the one that replaces the others; None: a person is to decide. proposal: the memory with the text
        that the model proposes.
    """
    ids = [memory.memory_id for memory in members]
    return MergeDecision(relation, ids, [memory.event_id for memory in members], kept, proposal)


_CANDIDATES = 5
"""Memories that words find for a new one, and as many by meaning, where a partition does not fit into a
request."""


class _Partition(NamedTuple):
    chat: str | None
    topic: str | None
    category: str


class Merger:
    """Merges the memories of a store.

    questions: to the language model; None where none is configured. room: tokens of a request.
    """

    def __init__(self, engine: Engine, questions: Questions | None, room: int) -> None:
        self._engine, self._questions, self._room = engine, questions, room - FRAME
        self._sizes: dict[str, int] = {}
        """Tokens by the event with the content."""
        self._refused: list[str] = []
        """Why groups were refused in this run."""
        self._kept: set[str] = set()
        """Imported memories that this run has not sent."""

    def merge_exact(self) -> Outcome:
        """Archive memories whose texts differ only in white space, case and compatible forms.

        Of each, the oldest that somebody saved stays, with the greatest importance and the tags of all.
        """
        archived = 0
        parts, partitions = self._engine.decide(lambda db: (undone_merges(db), self._partitions(db)))
        apart = {event_id for each in parts for event_id in each}
        for partition, found in partitions.items():
            by_text: defaultdict[str, list[Memory]] = defaultdict(list)
            for memory in found:
                if memory.event_id not in apart:
                    by_text[folded(with_quantities(memory.content))].append(memory)
            groups = [group for group in by_text.values() if len(group) > 1]
            if groups:
                archived += self._close_exact(partition, groups)
        return Outcome(archived)

    def _close_exact(self, partition: _Partition, groups: list[list[Memory]]) -> int:
        own = self._engine.decide(worded_by_somebody)
        events: list[Event] = []
        archived: list[Memory] = []
        origin = Extraction(new_id(), "memlog", "duplicates")
        for group in groups:
            kept = _kept(group, own)
            others = [memory for memory in group if memory is not kept]
            importance, tags = max(each.importance for each in (kept, *others)), tags_of([kept, *others])
            if (importance, tags) != (kept.importance, kept.tags):
                events.append(
                    MemoryUpdated(
                        memory_id=kept.memory_id, importance=importance, tags=tags, extraction=origin
                    )
                )
            archived += others
        events += [MemoryArchived(memory_id=memory.memory_id, extraction=origin) for memory in archived]
        closing = MemoriesMerged(
            id=origin.id,
            chat_id=partition.chat,
            topic=partition.topic,
            category=partition.category,
            event_ids=[memory.event_id for memory in archived],
            decisions=[decision_of("same", group, _kept(group, own).memory_id) for group in groups],
        )
        self._engine.append([*events, closing])
        return len(archived)

    def merge(self, compared_some: Callable[[int], None]) -> Outcome:
        """Have the model compare what is new with the rest of its partition.

        compared_some: called after each request with the number of memories that it showed.

        Raises:
            ProviderError: the model fails; what was merged before stays.
        """
        assert self._questions is not None
        known, partitions = self._engine.decide(lambda db: (compared(db, "memory"), self._partitions(db)))
        items = self._questions.begin("merge")
        self._refused.clear()
        self._kept.clear()
        closed: list[MemoriesMerged] = []
        for partition, members in partitions.items():
            if is_private(partition.category):
                continue
            found = self._askable(items, partition, members)
            new = [memory.event_id for memory in found if memory.event_id not in known]
            while new and len(found) > 1:
                batch = self._batch([memory for memory in found if memory.event_id in new])
                tried = [memory.event_id for memory in batch]
                shown = self._shown(batch, found) if batch else []
                if len(shown) > 1:
                    made = items.tried(partition.chat, tried, partial(self._compare, partition, batch, shown))
                    closed += [made] if made is not None else []
                compared_some(len(shown))
                new = [event_id for event_id in new if event_id not in tried] if batch else []
                if new and shown:
                    # The request may have changed some of them.
                    members = self._engine.decide(partial(self._partition, partition=partition))
                    found = self._askable(items, partition, members)
        set_aside = set_aside_note([each.why for each in items.end()])
        decisions = [decision for closing in closed for decision in closing.decisions]
        waiting = sum(decision.memory_id is None for decision in decisions)
        refused = sum(closing.refused for closing in closed)
        whys = ", ".join(f"{why} {count}" for why, count in sorted(Counter(self._refused).items()))
        notes = [f"conflicts that wait for a person: {waiting}"] if waiting else []
        notes += (
            [f"groups refused: {refused}" + (f" (lost or made up: {whys})" if whys else "")]
            if refused
            else []
        )
        notes += [each for each in (set_aside, kept_note(len(self._kept))) if each is not None]
        return Outcome(len(decisions) - waiting, "; ".join(notes) or None)

    def _partitions(self, db: Connection) -> dict[_Partition, list[Memory]]:
        """Return the active memories by partition, those that changed last at the end; without long ones."""
        proposed = proposed_memories(db)
        found = (memory for memory in memories(db) if memory.memory_id not in proposed)
        known = [memory for memory in found if len(memory.content) <= LONGEST]
        is_shared = automatic_scope(db, self._engine.read_model.people).scope == "store"
        sources = {} if is_shared else chats_of(db, [memory.memory_id for memory in known])
        by_partition: defaultdict[_Partition, list[Memory]] = defaultdict(list)
        for memory in sorted(known, key=_when):
            chats = [*sources.get(memory.memory_id, ())] or [memory.chat]
            if len(chats) == 1:
                by_partition[_Partition(chats[0], memory.topic, memory.category)].append(memory)
        return by_partition

    def _partition(self, db: Connection, partition: _Partition) -> list[Memory]:
        """Return the memories of one partition, as `_partitions` has them."""
        return self._partitions(db).get(partition, [])

    def _size(self, memory: Memory) -> int:
        if memory.event_id not in self._sizes:
            self._sizes[memory.event_id] = size_of(shown_memory(len(self._sizes), memory, memory.content))
        return self._sizes[memory.event_id]

    def _batch(self, waiting: list[Memory]) -> list[Memory]:
        """Return the first memories that leave room in the request for those compared with them.

        One that leaves no such room is compared with none.
        """
        room = self._room // 2
        batch: list[Memory] = []
        for memory in waiting:
            size = self._size(memory)
            if size > room and size <= self._room // 2:
                break
            if size <= room:
                room -= size
                batch.append(memory)
        return batch

    def _shown(self, batch: list[Memory], found: list[Memory]) -> list[Memory]:
        """Return `batch` and the memories that are compared with it, the oldest first."""
        room = self._room - sum(self._size(memory) for memory in batch)
        chosen = {memory.memory_id for memory in batch}
        others = [memory for memory in found if memory.memory_id not in chosen]
        if sum(self._size(memory) for memory in others) > room:
            others = self._candidates(batch, others)
        for memory in others:
            if self._size(memory) <= room:
                room -= self._size(memory)
                chosen.add(memory.memory_id)
        return [memory for memory in found if memory.memory_id in chosen]

    def _candidates(self, batch: list[Memory], others: list[Memory]) -> list[Memory]:
        """Return the memories of `others` that match the new ones by words or meaning."""
        found = self._engine.decide(lambda db: alike(db, batch, others, _CANDIDATES))
        by_id = {memory.memory_id: memory for memory in others}
        return [by_id[name] for name in dict.fromkeys(chain.from_iterable(found.values()))]

    def _askable(self, items: Items, partition: _Partition, members: list[Memory]) -> list[Memory]:
        """Return the memories that are not set aside, and may be sent."""
        assert self._questions is not None
        kept = self._engine.decide(partial(self._questions.kept_memories, memories=members))
        self._kept |= kept
        return [
            memory
            for memory in members
            if memory.memory_id not in kept and not items.rests(partition.chat, [memory.event_id])
        ]

    def _compare(self, partition: _Partition, batch: list[Memory], shown: list[Memory]) -> MemoriesMerged:
        """Have the model compare memories, and append what it found."""
        assert self._questions is not None
        used = prompt(MERGE)
        request = [
            shown_memory(number, memory, text)
            for number, (memory, text) in enumerate(zip(shown, masked_memories(shown), strict=True), 1)
        ]
        answer, took = self._questions.ask(
            used.text, msgspec.json.encode(request).decode(), SCHEMA, read_groups
        )
        members, open_now, own, apart = self._engine.decide(
            lambda db: (
                self._partition(db, partition),
                open_conflicts(db),
                worded_by_somebody(db),
                undone_merges(db),
            )
        )
        now = {memory.event_id for memory in members}
        if not now.issuperset(memory.event_id for memory in shown):
            # One of them was changed or forgotten meanwhile: the next run compares them.
            return MemoriesMerged(event_ids=[memory.event_id for memory in shown])
        origin = Extraction(new_id(), self._questions.model, used.id)
        room = MOST_OPEN - open_now
        found = decided(answer.entries, batch, shown, partition.chat, origin, own=own, room=room, apart=apart)
        self._refused += found.refused
        made = [str(event.id) for event in found.events if not isinstance(event, MemoryArchived)]
        closing = MemoriesMerged(
            id=origin.id,
            chat_id=partition.chat,
            topic=partition.topic,
            category=partition.category,
            event_ids=[*(memory.event_id for memory in batch), *made],
            decisions=found.decisions,
            model=origin.model,
            prompt=origin.prompt,
            tokens_in=took.tokens_in,
            tokens_out=took.tokens_out,
            refused=answer.refused + len(found.refused),
        )
        self._questions.append([*found.events, closing])
        return closing


def _kept(group: list[Memory], own: Container[str]) -> Memory:
    return next((memory for memory in group if memory.memory_id in own), group[0])


def _when(memory: Memory) -> tuple[str, str, int]:
    """Return the time and log position of its content: times have only milliseconds."""
    return memory.updated_at, memory.position.segment, memory.position.offset
