"""Merges memories that mean the same, within one partition: a chat, a topic and a category.

While several people talk to the agent, the chat of a memory is also the one that it comes from. What comes
from several chats is of no partition.

A comparison is one append: the merged memory, the archived ones, and last the line that closes it.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Container
from functools import partial
from itertools import chain
from typing import NamedTuple

import msgspec

from memlog.eventlog.content_ids import folded, with_quantities
from memlog.eventlog.encode import new_id
from memlog.eventlog.envelope import Event
from memlog.eventlog.events import MemoriesMerged, MemoryArchived, MemoryUpdated
from memlog.eventlog.extraction import Extraction
from memlog.eventlog.outgoing import is_private
from memlog.projector.sqlite import Connection
from memlog.query.conflicts import MOST_OPEN, compared, open_conflicts, proposed_memories
from memlog.query.context.scope import automatic_scope
from memlog.query.context.sources import chats_of
from memlog.query.memories import Memory, memories
from memlog.query.merges import parted, worded_by_somebody
from memlog.query.search.alike import alike
from memlog.query.sendable import masked_memories
from memlog.service.engine import Engine
from memlog.service.extraction.answers import LONGEST
from memlog.service.extraction.fitting import FRAME, size_of
from memlog.service.extraction.prompts import MERGE, prompt
from memlog.service.extraction.questions import Items, Questions
from memlog.service.jobs.merge_groups import (
    SCHEMA,
    decided,
    decision_of,
    read_groups,
    shown_memory,
    tags_of,
)
from memlog.service.jobs.outcome import Outcome, kept_note, set_aside_note

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
        """Archive memories whose texts differ in white space, case and compatible forms alone. Of each the
        oldest stays that somebody saved, with the greatest importance and the tags of all."""
        archived = 0
        parts, partitions = self._engine.decide(lambda db: (parted(db), self._partitions(db)))
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
        """The first memories, with room in the request for those that are compared with them. One that leaves
        no such room is compared with none."""
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
        """`batch` and the memories that are compared with it, the oldest first."""
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
        """Return those of `others` that words and meaning find for the new ones."""
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
        asked = [
            shown_memory(number, memory, text)
            for number, (memory, text) in enumerate(zip(shown, masked_memories(shown), strict=True), 1)
        ]
        answer, took = self._questions.ask(
            used.text, msgspec.json.encode(asked).decode(), SCHEMA, read_groups
        )
        members, open_now, own, apart = self._engine.decide(
            lambda db: (
                self._partition(db, partition),
                open_conflicts(db),
                worded_by_somebody(db),
                parted(db),
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
    """Return when its content was saved, and where in the log: times have milliseconds."""
    return memory.updated_at, memory.position.segment, memory.position.offset
