"""Merges memories that mean the same, within one partition: a chat, a topic and a category.

If several people talk to the agent, a memory's chat is the chat from which it comes. A memory that comes from
several chats belongs to no partition.

The events of a comparison are appended together: merged memories, archivals, and last the closing event.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Literal, NamedTuple

import msgspec
from msgspec.structs import replace

from memlog.eventlog.codec.content_ids import fold_content, mark_quantities
from memlog.eventlog.codec.encode import make_event_id
from memlog.eventlog.events import (
    Event,
    Extraction,
    MemoriesMerged,
    MemoryArchived,
    MemorySaved,
    MemoryUpdated,
    MergeDecision,
)
from memlog.eventlog.secrets.detection import list_key_kinds
from memlog.eventlog.secrets.outgoing import is_private_category
from memlog.eventlog.sections import People
from memlog.projector.sqlite import Connection
from memlog.query.conflicts import (
    MERGED,
    MOST_OPEN,
    content_events_of_undone_merges,
    count_open_conflicts,
    ids_of_compared_or_profiled_events,
    ids_of_memories_worded_by_hand,
    ids_of_proposed_memories,
)
from memlog.query.context.scope import chats_of_memories, choose_automatic_scope
from memlog.query.memories import Memory, find_memories
from memlog.query.search.alike import find_similar_memories
from memlog.service.engine.engine import Engine
from memlog.service.llm import task
from memlog.service.llm.answers import LONGEST, read_usable_text
from memlog.service.llm.task import Batch, ModelReply, Outcome, Questions, Task
from memlog.service.memory.losses import describe_additions, describe_loss

Made = MemorySaved | MemoryUpdated | MemoryArchived
Relation = Literal["same", "update", "contradiction"]


class MergeGroup(msgspec.Struct):
    """Related memories that the model found, by their numbers in the question."""

    relation: Relation
    numbers: list[int]
    content: str = ""


class MergeAnswer(msgspec.Struct):
    """The groups in an answer."""

    groups: list[MergeGroup]


class _RelatedMemories(NamedTuple):
    """Memories that belong together according to the model.

    content: the model's text for them. members: the memories, oldest first. own: the members that a person
    saved, which no model overrules. chat: the chat of all members. origin: the origin of the events.
    """

    relation: Relation
    content: str | None
    members: list[Memory]
    own: list[Memory]
    chat: str | None
    origin: Extraction

    def decide_merge(self, *, has_room: bool) -> tuple[list[Made], MergeDecision] | str:
        """Return the events and the decision, or the reason why the group is refused.

        has_room: whether a conflict may be opened; if not, a proposed text stays active as a memory.
        """
        content, what = self.content, None
        texts = [memory.content for memory in self.members]
        if self.relation != "contradiction":
            what = "no text" if content is None else describe_loss(texts, content)
        elif content is not None and (what := describe_additions(texts, content)):
            content = None
            # If a person saved one of them, a person decides, without the proposed text.
            what = None if self.own else what
        if what is not None:
            return what
        kept, made = self._choose_survivor(content)
        if kept is None and content is not None and _find_same_text(self.members, content) is None:
            made = [self._merged_memory(None, content)]
        if not all(map(task.is_storable, made)):
            return "no text"
        proposal = next((event.memory_id for event in made), None) if kept is None else None
        archived = [memory.memory_id for memory in self.members if kept not in (None, memory.memory_id)]
        archived += [proposal] if proposal is not None and has_room else []
        made += [MemoryArchived(memory_id=name, extraction=self.origin) for name in archived]
        return made, make_decision(self.relation, self.members, kept, proposal)

    def _choose_survivor(self, content: str | None) -> tuple[str | None, list[Made]]:
        """Return the memory that replaces the group, and its events; None if a person has to decide."""
        members, own = self.members, self.own
        if self.relation == "contradiction":
            if content is None or any(memory is not members[-1] for memory in own):
                return None, []
            if own:  # a person's latest words stay unchanged
                return members[-1].memory_id, []
            kept = members[0].memory_id
            return kept, [
                MemoryUpdated(id=make_event_id(), memory_id=kept, content=content, extraction=self.origin)
            ]
        assert content is not None
        same = _find_same_text(own or members, content)
        if own and same is None and self.relation == "same":
            is_lossless = describe_loss([memory.content for memory in members], own[0].content) is None
            same = own[0].memory_id if is_lossless else None
        if len(own) > 1 or (own and same is None):
            return None, []
        if same is not None:
            return same, []
        merged = self._merged_memory(members[-1].updated_at, content)
        return merged.memory_id, [merged]

    def _merged_memory(self, ts: str | None, content: str) -> MemorySaved:
        """Return a memory that replaces the group.

        ts: the time of the newest member; None for now.
        """
        weightiest = max(self.members, key=lambda memory: memory.importance)
        # Not the content hash: another memory may have that id, with other content by now.
        name = make_event_id()
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
            chat_id=self.chat,
            tags=union_tags_of_members(self.members) or None,
            extraction=self.origin,
        )


def _find_same_text(members: list[Memory], content: str) -> str | None:
    """Return the id of the member that already has this text; None if no member has it."""
    text = _fold_text(content)
    return next((memory.memory_id for memory in members if _fold_text(memory.content) == text), None)


def _fold_text(content: str) -> str:
    """Fold a text so that texts that count as equal become identical."""
    return fold_content(mark_quantities(content))


def union_tags_of_members(members: Sequence[Memory]) -> list[str]:
    """Return the tags of all members, without repetition."""
    return [*dict.fromkeys(tag for memory in members for tag in memory.tags)]


def make_decision(
    relation: Relation, members: Sequence[Memory], kept: str | None, proposal: str | None = None
) -> MergeDecision:
    """Return the record of a decision about some memories.

    kept: the memory that replaces the others; None if a person has to decide. proposal: the memory with the
        text that the model proposes.
    """
    ids = [memory.memory_id for memory in members]
    return MergeDecision(relation, ids, [memory.event_id for memory in members], kept, proposal)


_CANDIDATES = 5
"""How many candidates each of full-text and vector search gives for a new memory, if the partition exceeds a
request."""


class Partition(NamedTuple):
    """The properties that compared memories share."""

    chat_id: str | None
    topic: str | None
    category: str


def partition_memories(db: Connection, people: People) -> dict[Partition, list[Memory]]:
    """Return the active memories, except long ones, sorted by last change and keyed by partition."""
    proposed = ids_of_proposed_memories(db)
    found = (memory for memory in find_memories(db) if memory.memory_id not in proposed)
    known = [memory for memory in found if len(memory.content) <= LONGEST]
    is_shared = choose_automatic_scope(db, people).scope == "store"
    sources = {} if is_shared else chats_of_memories(db, [memory.memory_id for memory in known])
    by_partition: defaultdict[Partition, list[Memory]] = defaultdict(list)
    # Within the same millisecond, they are sorted by log position.
    for memory in sorted(known, key=lambda m: (m.updated_at, m.position.segment, m.position.offset)):
        chats = [*sources.get(memory.memory_id, ())] or [memory.chat]
        if len(chats) == 1:
            by_partition[Partition(chats[0], memory.topic, memory.category)].append(memory)
    return by_partition


class MergeBatch(Batch):
    """Memories of a partition: new ones, and the ones to compare them with.

    shown: all of them, oldest first. waiting: the number of conflicts that wait for a person.
    refused: why groups in the answer are refused. malformed: the number of malformed groups.
    """

    partition: Partition
    new: list[Memory]
    shown: list[Memory]
    waiting: int = 0
    refused: list[str] = msgspec.field(default_factory=list)
    malformed: int = 0


class MergeTask(Task[MergeAnswer, MergeBatch]):
    """Compares new memories with the rest of their partition."""

    name, job, step = "merge", "weekly", "merge"
    prompt = "merge-2"
    answer = MergeAnswer

    def __init__(self, engine: Engine, questions: Questions) -> None:
        super().__init__(engine, questions)
        self._room -= task.FRAME
        self._sizes: dict[str, int] = {}
        """The number of tokens in each memory, keyed by its content event."""
        self._withheld: set[str] = set()
        self._made: list[MergeBatch] = []

    def find_batches(self) -> Iterator[MergeBatch]:
        """Yield each partition's new memories, with the memories to compare them with."""
        self._withheld.clear()
        self._made.clear()
        known, partitions = self._decide(
            lambda db: (ids_of_compared_or_profiled_events(db, "memory"), self._partitions(db))
        )
        for partition, members in partitions.items():
            if is_private_category(partition.category):
                continue
            found = self._filter_sendable(partition, members)
            new = [memory.event_id for memory in found if memory.event_id not in known]
            while new and len(found) > 1:
                batch = self._choose_batch([memory for memory in found if memory.event_id in new])
                if not batch:
                    break
                shown = self._add_candidates(batch, found)
                if len(shown) > 1:
                    made = MergeBatch(
                        chat=partition.chat_id,
                        event_ids=[memory.event_id for memory in batch],
                        requests=[task.make_entries_of_memories(shown)],
                        line=f"compared {len(shown)} memories",
                        partition=partition,
                        new=batch,
                        shown=shown,
                    )
                    self._made.append(made)
                    yield made
                tried = {memory.event_id for memory in batch}
                new = [event_id for event_id in new if event_id not in tried]
                if new:
                    # The request may have changed some of them.
                    found = self._filter_sendable(
                        partition, self._decide(self._partitions).get(partition, [])
                    )

    def events_of_reply(
        self, db: Connection, batch: MergeBatch, reply: ModelReply[MergeAnswer]
    ) -> list[Event] | None:
        """Return the merged memories and the archived ones."""
        partition, shown = batch.partition, batch.shown
        now = {memory.event_id for memory in self._partitions(db).get(partition, [])}
        if not now.issuperset(memory.event_id for memory in shown):
            # One of the memories has changed or been forgotten meanwhile: the next run compares them again.
            return None
        events: list[Event] = []
        decisions: list[MergeDecision] = []
        batch.refused = []
        for made in self._resolve_groups(db, batch, reply):
            if isinstance(made, str):
                batch.refused.append(made)
            else:
                events += made[0]
                decisions.append(made[1])
        batch.malformed = reply.refused
        batch.waiting = sum(decision.memory_id is None for decision in decisions)
        batch.count = len(decisions) - batch.waiting
        made_ids = [str(event.id) for event in events if not isinstance(event, MemoryArchived)]
        closing = reply.closing_event(
            MemoriesMerged,
            len(batch.refused),
            **partition._asdict(),
            event_ids=[*batch.event_ids, *made_ids],
            decisions=decisions,
        )
        return [*events, closing]

    def _resolve_groups(
        self, db: Connection, batch: MergeBatch, reply: ModelReply[MergeAnswer]
    ) -> Iterator[tuple[list[Made], MergeDecision] | str]:
        """Yield the events and the decision for each group, or the reason why it is refused.

        A memory belongs to at most one group, and each group includes a new memory.
        """
        by_hand, separated = ids_of_memories_worded_by_hand(db), content_events_of_undone_merges(db)
        room = MOST_OPEN - count_open_conflicts(db)
        new = {memory.memory_id for memory in batch.new}
        left = dict(enumerate(batch.shown, 1))
        for group in reply.answer.groups:
            numbers = sorted({*group.numbers})
            members = [left[number] for number in numbers if number in left]
            if not (len(members) == len(numbers) > 1 and any(each.memory_id in new for each in members)):
                yield "no group"
                continue
            event_ids = {memory.event_id for memory in members}
            if any(len(event_ids & each) > 1 for each in separated):
                yield "unmerged before"
                continue
            content = read_usable_text(group.content)
            made = _RelatedMemories(
                group.relation,
                None if content is None or list_key_kinds(content) else content,  # a model may invent a key
                members,
                [memory for memory in members if memory.memory_id in by_hand],
                batch.chat,
                replace(reply.origin, memory_ids=[memory.memory_id for memory in members]),
            ).decide_merge(has_room=room > 0)
            yield made
            if not isinstance(made, str):
                room -= made[1].memory_id is None
                for number in numbers:
                    del left[number]

    def _notes_on_run(self) -> Iterator[str]:
        if waiting := sum(batch.waiting for batch in self._made):
            yield f"conflicts that wait for a person: {waiting}"
        whys = Counter(chain.from_iterable(batch.refused for batch in self._made))
        if refused := whys.total() + sum(batch.malformed for batch in self._made):
            named = ", ".join(f"{why} {count}" for why, count in sorted(whys.items()))
            yield f"groups refused: {refused}" + (f" (lost or made up: {named})" if named else "")

    def _count_withheld(self) -> int:
        return len(self._withheld)

    def _partitions(self, db: Connection) -> dict[Partition, list[Memory]]:
        return partition_memories(db, self._engine.read_model.people)

    def _count_tokens_of_shown_memories(self, memory: Memory) -> int:
        if memory.event_id not in self._sizes:
            self._sizes[memory.event_id] = task.count_tokens_of_entry(
                task.make_entry_of_memory(len(self._sizes), memory, memory.content)
            )
        return self._sizes[memory.event_id]

    def _choose_batch(self, waiting: list[Memory]) -> list[Memory]:
        """Return the first memories that fit into half a request; the other half is for their candidates.

        A memory that is longer than half a request is never compared.
        """
        half = self._room // 2
        short = (memory for memory in waiting if self._count_tokens_of_shown_memories(memory) <= half)
        return task.take_items_that_fit(short, self._count_tokens_of_shown_memories, half)

    def _add_candidates(self, batch: list[Memory], found: list[Memory]) -> list[Memory]:
        """Return `batch` and the memories to compare it with, in the order of `found`."""
        room = self._room - sum(self._count_tokens_of_shown_memories(memory) for memory in batch)
        chosen = {memory.memory_id for memory in batch}
        others = [memory for memory in found if memory.memory_id not in chosen]
        if sum(self._count_tokens_of_shown_memories(memory) for memory in others) > room:
            # Only those that match the new ones by words or meaning.
            similar = self._decide(
                partial(find_similar_memories, wanted=batch, others=others, limit=_CANDIDATES)
            )
            by_id = {memory.memory_id: memory for memory in others}
            others = [by_id[name] for name in dict.fromkeys(chain.from_iterable(similar.values()))]
        chosen |= {
            memory.memory_id
            for memory in task.take_items_that_fit(
                others, self._count_tokens_of_shown_memories, room, skips=True
            )
        }
        return [memory for memory in found if memory.memory_id in chosen]

    def _filter_sendable(self, partition: Partition, members: list[Memory]) -> list[Memory]:
        """Return the memories that may be sent and are not set aside."""
        kept = self._decide(partial(self._questions.withheld_memories, memories=members))
        self._withheld |= kept
        return [
            memory
            for memory in members
            if memory.memory_id not in kept and not self._is_set_aside(partition.chat_id, [memory.event_id])
        ]


def archive_exact_duplicates(engine: Engine) -> Outcome:
    """Archive memories whose texts differ only in white space, case and compatibility forms (NFKC).

    Of equal memories, the oldest that a person saved stays, with the greatest importance and all tags.
    """
    archived = 0
    sets, partitions = engine.decide(
        lambda db: (content_events_of_undone_merges(db), partition_memories(db, engine.read_model.people))
    )
    separated = {event_id for each in sets for event_id in each}
    for partition, found in partitions.items():
        by_text: defaultdict[str, list[Memory]] = defaultdict(list)
        for memory in found:
            if memory.event_id not in separated:
                by_text[_fold_text(memory.content)].append(memory)
        groups = [group for group in by_text.values() if len(group) > 1]
        if groups:
            archived += _archive_exact_duplicates_in(engine, partition, groups)
    return Outcome(archived)


def _archive_exact_duplicates_in(engine: Engine, partition: Partition, groups: list[list[Memory]]) -> int:
    own = engine.decide(ids_of_memories_worded_by_hand)
    events: list[Event] = []
    archived: list[Memory] = []
    decisions: list[MergeDecision] = []
    origin = Extraction(make_event_id(), "memlog", "duplicates")
    for group in groups:
        kept = next((memory for memory in group if memory.memory_id in own), group[0])
        others = [memory for memory in group if memory is not kept]
        importance, tags = (
            max(each.importance for each in (kept, *others)),
            union_tags_of_members([kept, *others]),
        )
        if (importance, tags) != (kept.importance, kept.tags):
            events.append(
                MemoryUpdated(memory_id=kept.memory_id, importance=importance, tags=tags, extraction=origin)
            )
        archived += others
        decisions.append(make_decision("same", group, kept.memory_id))
    events += [MemoryArchived(memory_id=memory.memory_id, extraction=origin) for memory in archived]
    closing = MemoriesMerged(
        id=origin.id,
        **partition._asdict(),
        event_ids=[memory.event_id for memory in archived],
        decisions=decisions,
    )
    engine.append([*events, closing])
    return len(archived)


TASK = MergeTask
