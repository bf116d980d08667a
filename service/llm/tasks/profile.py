"""Keeps the profiles: core memory that a language model derives from memories.

Each group of chats that share a scope has its own profile, derived only from the group's memories. Values
that a person has set or removed are left alone. A value names its source memories, and disappears with them.
"""

import re
from collections.abc import Iterator
from functools import partial
from typing import Literal

import msgspec
from msgspec.structs import replace

from memlog.eventlog.codec.encode import make_event_id
from memlog.eventlog.events import CoreMemoryDeleted, CoreMemoryUpdated, Event, ProfileRefreshed
from memlog.eventlog.secrets.detection import is_secret_name
from memlog.eventlog.secrets.outgoing import TextToCheck, is_private_category, mask_parts
from memlog.projector.sqlite import Connection
from memlog.projector.subjects.facts import PROFILE
from memlog.query.conflicts import ids_of_compared_or_profiled_events, ids_of_contested_memories
from memlog.query.context.scope import ChatGroup, chat_groups, chats_of_memories, chats_of_profiles
from memlog.query.memories import Memory, find_memories
from memlog.query.records import (
    CoreValueSource,
    find_sources_of_core_keys,
    list_rejected_values,
    profile_keys,
)
from memlog.service.engine.engine import Engine
from memlog.service.llm import task
from memlog.service.llm.task import Batch, ModelReply, Questions, Task
from memlog.service.memory.compared_text import negates_next_word
from memlog.service.memory.core_markdown import is_about_project, is_fact_of_project
from memlog.service.memory.placeholders import is_denial, is_placeholder
from memlog.service.memory.rejected_values import is_rejected

_Change = CoreMemoryUpdated | CoreMemoryDeleted

_SECTION: Literal["user"] = "user"
_LONGEST_KEY, _LONGEST_VALUE = 64, 500
_MOST = 40
"""The maximum number of values in a profile: every context contains all of them."""

_STEM = 5
"""How many leading letters the forms of a word share: smoker, smokes; allergies, allergic."""


class ProfileEntry(msgspec.Struct):
    """A value in an answer. numbers: the numbers of the memories from which it comes."""

    key: str
    value: str
    numbers: list[int]


class ProfileAnswer(msgspec.Struct):
    """The new and changed values in an answer."""

    entries: list[ProfileEntry]


class ProfileBatch(Batch):
    """The memories of a group of chats, from which its profile is refreshed.

    stale: keys of obsolete values. is_due: whether there are stale keys, or memories new to the model.
    refused: the number of refused entries.
    """

    shown: list[Memory]
    stale: set[str]
    is_due: bool
    refused: int = 0


class ProfileTask(Task[ProfileAnswer, ProfileBatch]):
    """Brings the profile of each group of chats up to date with its memories.

    Sends no request for a group whose memories have not changed.
    """

    name, job, step = "profile", "weekly", "profile"
    prompt = "profile-2"
    answer = ProfileAnswer

    def __init__(self, engine: Engine, questions: Questions) -> None:
        super().__init__(engine, questions)
        self._refused = 0

    def find_batches(self) -> Iterator[ProfileBatch]:
        """Yield the memories of each group that has new ones, or obsolete values."""
        self._refused = 0
        groups = self._decide(lambda db: chat_groups(db, self._engine.read_model.people))
        # The profiles of groups that no longer exist.
        chats = {group.chat for group in groups}
        keys = self._decide(lambda db: profile_keys(db, _SECTION))
        self._append_deletions([_deletion_event(chat, key) for chat, key in keys if chat not in chats])
        for group in groups:
            batch = self._decide(partial(self._read_batch, group=group))
            if not batch.shown:
                self._append_deletions([_deletion_event(group.chat, key) for key in sorted(batch.stale)])
            elif batch.is_due:
                yield batch
                self._refused += batch.refused

    def events_of_reply(
        self, db: Connection, batch: ProfileBatch, reply: ModelReply[ProfileAnswer]
    ) -> list[Event]:
        """Return the events that set and remove values."""
        # Read again: a person may have set a value while the model worked.
        values = find_sources_of_core_keys(db, _SECTION, batch.chat)
        rejected = list_rejected_values(db, self._engine.log_path, _SECTION)
        known = {key.casefold(): key for key in values}
        room = _MOST - sum(each.source == PROFILE for each in values.values())
        origin = replace(reply.origin, chat_id=batch.chat)
        made: dict[str, _Change] = {}
        refused = 0
        for entry in reply.answer.entries:
            bare = re.sub(r"\W+", "_", entry.key.casefold()).strip("_")
            key = known.get(entry.key.strip().casefold()) or known.get(bare) or bare
            value, there = entry.value.strip(), values.get(key)
            is_same = there is not None and there.value == value and key not in batch.stale
            if there is not None and (there.source != PROFILE or is_same):
                continue  # a person has set or removed it, or it is unchanged
            cited = [batch.shown[number - 1] for number in entry.numbers if 0 < number <= len(batch.shown)]
            event = CoreMemoryUpdated(
                id=make_event_id(),
                section=_SECTION,
                key=key,
                value=value,
                source=PROFILE,
                chat_id=batch.chat,
                extraction=replace(origin, memory_ids=[*dict.fromkeys(each.memory_id for each in cited)]),
            )
            is_new = there is None and key not in made
            is_told = bool(cited) and _is_usable_value(event) and _is_about_person(key, value, cited)
            if not is_told or is_rejected(key, value, rejected) or (is_new and room <= 0):
                refused += 1
                continue
            room -= is_new
            made[key] = event
        for key in batch.stale - made.keys():
            if values[key].source == PROFILE:
                made[key] = replace(_deletion_event(batch.chat, key), extraction=origin)
        batch.count, batch.refused = len(made), reply.refused + refused
        closing = reply.closing_event(
            ProfileRefreshed, refused, event_ids=batch.event_ids, chat_id=batch.chat
        )
        return [*made.values(), closing]

    def _notes_on_run(self) -> Iterator[str]:
        if self._refused:
            yield f"{self._refused} entries refused"

    def _count_withheld(self) -> int:
        return self._decide(lambda db: len(self._questions.withheld_memories(db, find_memories(db))))

    def _append_deletions(self, events: list[CoreMemoryDeleted]) -> None:
        if events:
            self._engine.append(events)
        self._count += len(events)

    def _read_batch(self, db: Connection, group: ChatGroup) -> ProfileBatch:
        values = find_sources_of_core_keys(db, _SECTION, group.chat)
        own = {key: each for key, each in values.items() if each.source == PROFILE}
        sources = chats_of_profiles(db, {each.extraction_id for each in own.values() if each.extraction_id})
        private = {each.memory_id for each in find_memories(db) if is_private_category(each.category)}
        stale = {
            key
            for key, each in own.items()
            # An older version used credentials.
            if each.is_stale
            or not private.isdisjoint(each.memory_ids)
            # It was derived under another scope, from chats outside the group; or its sources are unknown.
            or (
                group.chats is not None
                and (
                    (chats := sources.get(each.extraction_id or "")) is None
                    or not group.includes_chats(chats)
                )
            )
        }
        shown, kept = self._select_memories(db, group, values), self._keys_not_to_send(db, values)
        ids = [memory.event_id for memory in shown]
        standing = {
            key: each.value
            for key, each in values.items()
            if key not in stale | kept and each.value and not is_secret_name(key)
        }
        told = mask_parts([TextToCheck(value, (key,)) for key, value in standing.items()])
        profile = dict(zip(standing, told, strict=True))
        return ProfileBatch(
            chat=group.chat,
            event_ids=ids,
            requests=[{"profile": profile, "memories": task.make_entries_of_memories(shown)}],
            shown=shown,
            stale=stale,
            is_due=bool(stale)
            or not ids_of_compared_or_profiled_events(db, "core", group.chat).issuperset(ids),
        )

    def _select_memories(
        self, db: Connection, group: ChatGroup, values: dict[str, CoreValueSource]
    ) -> list[Memory]:
        """Return the most relevant memories that fit into a request, sorted by last change.

        Omits memories in an open conflict.
        """
        room = self._room - task.count_tokens_of_entry(
            {"profile": {key: each.value for key, each in values.items()}, "memories": []}
        )
        contested = ids_of_contested_memories(db)
        found = find_memories(db)
        sources = {} if group.chats is None else chats_of_memories(db, [each.memory_id for each in found])
        kept = self._questions.withheld_memories(db, found)
        own = (
            each
            for each in found
            if group.includes_chats(sources.get(each.memory_id, set()))
            and each.memory_id not in contested
            and not is_private_category(each.category)
            and each.memory_id not in kept
        )
        chosen: list[Memory] = []
        for memory in sorted(own, key=lambda memory: (-memory.relevance, memory.memory_id)):
            size = task.count_tokens_of_entry(
                task.make_entry_of_memory(len(chosen) + 1, memory, memory.content)
            )
            if size <= room:
                room -= size
                chosen.append(memory)
        return sorted(chosen, key=lambda memory: (memory.updated_at, memory.memory_id))

    def _keys_not_to_send(self, db: Connection, values: dict[str, CoreValueSource]) -> set[str]:
        """Return the keys whose values may not be sent, because their sources or events were imported."""
        profiles = self._questions.withheld_profiles(
            db, {each.extraction_id for each in values.values() if each.extraction_id}
        )
        return {
            key
            for key, each in values.items()
            if each.extraction_id in profiles
            or not all(
                self._questions.may_be_sent(None, name)
                for name in filter(None, (each.event_id, *each.memory_ids))
            )
        }


def _deletion_event(chat: str | None, key: str) -> CoreMemoryDeleted:
    return CoreMemoryDeleted(id=make_event_id(), section=_SECTION, key=key, source=PROFILE, chat_id=chat)


def _is_about_person(key: str, value: str, cited: list[Memory]) -> bool:
    """Whether a value says anything about a person.

    A bare `none` does so only if a memory denies the topic of the key: "unknown" differs from "has none".
    """
    if is_fact_of_project(key, value) or is_about_project(value):
        return False
    return not is_placeholder(value) or (is_denial(value) and any(_denies_topic(each, key) for each in cited))


def _denies_topic(memory: Memory, key: str) -> bool:
    words = re.findall(r"\w+(?:['’]\w+)?", memory.content.casefold())
    stems = {word[:_STEM] for word in key.split("_") if len(word) >= _STEM}
    return any(map(negates_next_word, words)) and not stems.isdisjoint(word[:_STEM] for word in words)


def _is_usable_value(event: CoreMemoryUpdated) -> bool:
    if not event.value or len(event.key) > _LONGEST_KEY or len(event.value) > _LONGEST_VALUE:
        return False
    return task.is_storable(event, f"{event.key}: {event.value}")


TASK = ProfileTask
