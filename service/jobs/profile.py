"""Keeps the profile: core memory that a language model makes of memories.

Where several people talk to the agent, it reads memories of the store's own scope alone. What a person has
set or removed stays as it is. A value names the memories that it was made of: it goes with them.
"""

import re
from contextlib import suppress
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from memlog.eventlog.encode import draft, new_id
from memlog.eventlog.errors import BadInput
from memlog.eventlog.events import CoreMemoryDeleted, CoreMemoryUpdated, ProfileRefreshed
from memlog.eventlog.extraction import Extraction
from memlog.eventlog.outgoing import SentText, is_private, masked_parts
from memlog.eventlog.secrets import is_telling, kinds_in
from memlog.projector.handlers.core_memory import PROFILE
from memlog.projector.sqlite import Connection
from memlog.query.conflicts import compared, contested_memories
from memlog.query.context.scope import automatic_scope
from memlog.query.context.token_counters import tokens
from memlog.query.core_memory import core_sources
from memlog.query.memories import Memory, memories
from memlog.query.sendable import masked_memories
from memlog.service.engine import Engine
from memlog.service.extraction.answers import Listed, listed
from memlog.service.extraction.prompts import PROFILE as PROMPT
from memlog.service.extraction.prompts import prompt
from memlog.service.extraction.questions import Questions
from memlog.service.jobs.outcome import Outcome

_Change = CoreMemoryUpdated | CoreMemoryDeleted

_SECTION: Literal["user"] = "user"
_LONGEST_KEY, _LONGEST_VALUE = 64, 500
_MOST = 40
"""Values of the profile: every context contains all of them."""

_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "entries": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "key": {"type": "string"},
                    "value": {"type": "string"},
                    "numbers": {"type": "array", "items": {"type": "integer"}},
                },
                "required": ["key", "value", "numbers"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["entries"],
    "additionalProperties": False,
}


class _ProfileEntry(msgspec.Struct):
    key: str
    value: str
    numbers: list[int]


class Profile:
    """The profile of a store. room: tokens of a request."""

    def __init__(self, engine: Engine, questions: Questions, room: int) -> None:
        self._engine, self._questions, self._room = engine, questions, room

    def refresh(self) -> Outcome:
        """Bring the profile up to the memories. Sends no request where none has come, changed or gone.

        Raises:
            ProviderError: the model fails.
        """
        shown, values, known = self._engine.decide(
            lambda db: (self._chosen(db), core_sources(db, _SECTION), compared(db, "core"))
        )
        stale = {key for key, each in values.items() if each.source == PROFILE and each.is_stale}
        if not shown or (not stale and known.issuperset(memory.event_id for memory in shown)):
            return Outcome(0)
        used = prompt(PROMPT)
        standing = {
            key: each.value
            for key, each in values.items()
            if key not in stale and each.value and not is_telling(key)
        }
        told = masked_parts([SentText(value, (key,)) for key, value in standing.items()])
        asked = {
            "profile": dict(zip(standing, told, strict=True)),
            "memories": [
                {"number": number, "date": memory.updated_at[:10], "text": text}
                for number, (memory, text) in enumerate(zip(shown, masked_memories(shown), strict=True), 1)
            ],
        }
        answer, took = self._questions.ask(used.text, msgspec.json.encode(asked).decode(), _SCHEMA, _read)
        origin = Extraction(new_id(), self._questions.model, used.id)
        changes, refused = self._changes(answer, shown, stale, origin)
        closing = ProfileRefreshed(
            id=origin.id,
            event_ids=[memory.event_id for memory in shown],
            model=origin.model,
            prompt=origin.prompt,
            tokens_in=took.tokens_in,
            tokens_out=took.tokens_out,
            refused=refused,
        )
        self._questions.append([*changes, closing])
        return Outcome(len(changes), f"{refused} entries refused" if refused else None)

    def _chosen(self, db: Connection) -> list[Memory]:
        """The most relevant memories that fit into a request, those that changed last at the end; none of a
        conflict that waits for a person."""
        room = self._room
        chosen: list[Memory] = []
        contested = contested_memories(db)
        # As contexts do: while at most one person talks to the agent, there is no secret between chats.
        is_shared = automatic_scope(db).scope == "store"
        found = (each for each in memories(db) if each.chat is None or is_shared)
        own = (each for each in found if each.memory_id not in contested and not is_private(each.category))
        for memory in sorted(own, key=lambda memory: (-memory.relevance, memory.memory_id)):
            room -= tokens(memory.content, "model")
            if room < 0:
                break
            chosen.append(memory)
        return sorted(chosen, key=lambda memory: (memory.updated_at, memory.memory_id))

    def _changes(
        self, answer: Listed[_ProfileEntry], shown: list[Memory], stale: set[str], origin: Extraction
    ) -> tuple[list[_Change], int]:
        """The values to set and to remove, and how many entries are refused."""
        # Read now: a person may have set one while the model worked.
        values = self._engine.decide(lambda db: core_sources(db, _SECTION))
        known = {key.casefold(): key for key in values}
        room = _MOST - sum(each.source == PROFILE for each in values.values())
        made: dict[str, _Change] = {}
        refused = answer.refused
        for entry in answer.entries:
            bare = re.sub(r"\W+", "_", entry.key.casefold()).strip("_")
            key = known.get(entry.key.strip().casefold()) or known.get(bare) or bare
            value, there = entry.value.strip(), values.get(key)
            if there is not None and (there.source != PROFILE or (there.value == value and key not in stale)):
                continue  # somebody has set or removed it, or it is there
            cited = [shown[number - 1].memory_id for number in entry.numbers if 0 < number <= len(shown)]
            event = CoreMemoryUpdated(
                id=new_id(),
                section=_SECTION,
                key=key,
                value=value,
                source=PROFILE,
                extraction=replace(origin, memory_ids=[*dict.fromkeys(cited)]),
            )
            is_new = there is None and key not in made
            if not cited or not _is_usable(event) or (is_new and room <= 0):
                refused += 1
                continue
            room -= is_new
            made[key] = event
        for key in stale - made.keys():
            if values[key].source == PROFILE:
                made[key] = CoreMemoryDeleted(
                    id=new_id(), section=_SECTION, key=key, source=PROFILE, extraction=origin
                )
        return [*made.values()], refused


def _is_usable(event: CoreMemoryUpdated) -> bool:
    if not event.value or len(event.key) > _LONGEST_KEY or len(event.value) > _LONGEST_VALUE:
        return False
    if kinds_in(f"{event.key}: {event.value}"):
        return False
    with suppress(BadInput):
        draft(event)
        return True
    return False


def _read(text: str) -> Listed[_ProfileEntry] | None:
    return listed(text, member="entries", kind=_ProfileEntry)
