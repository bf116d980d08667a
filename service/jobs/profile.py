"""Keeps the profile: core memory that a language model makes of memories.

It reads memories of the store's own scope alone, which every chat sees already. What a person has set or
removed stays as it is.
"""

from contextlib import suppress
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from memlog.eventlog.encode import draft, new_id
from memlog.eventlog.errors import BadInput
from memlog.eventlog.events import CoreMemoryUpdated, ProfileRefreshed
from memlog.eventlog.extraction import Extraction
from memlog.eventlog.secrets import kinds_in, masked
from memlog.projector.sqlite import Connection
from memlog.query.conflicts import compared
from memlog.query.context.token_counters import tokens
from memlog.query.core_memory import core_sources
from memlog.query.memories import Memory, memories
from memlog.service.engine import Engine
from memlog.service.extraction.answers import Listed, listed
from memlog.service.extraction.prompts import PROFILE, prompt
from memlog.service.extraction.questions import Questions

SOURCE = "profile"
"""The source of core memory that memlog wrote."""

_SECTION: Literal["user"] = "user"
_LONGEST_KEY, _LONGEST_VALUE = 64, 500
_MOST = 40
"""Values of the profile: each stands in every context."""

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

    def refresh(self) -> int:
        """Bring the profile up to the memories; how many values changed. Nothing is asked where no memory is
        new.

        Raises:
            ProviderError: the model fails.
        """
        shown, sources, known = self._engine.decide(
            lambda db: (self._chosen(db), core_sources(db, _SECTION), compared(db, "core"))
        )
        if known.issuperset(memory.event_id for memory in shown):
            return 0
        used = prompt(PROFILE)
        asked = {
            "profile": {key: masked(each.value) for key, each in sources.items() if each.value is not None},
            "memories": [
                {"number": number, "date": memory.updated_at[:10], "text": masked(memory.content)}
                for number, memory in enumerate(shown, 1)
            ],
        }
        answer, took = self._questions.ask(
            used.text,
            msgspec.json.encode(asked).decode(),
            _SCHEMA,
            _read,
        )
        origin = Extraction(new_id(), self._questions.model, used.id)
        events, refused = self._values(answer, shown, origin)
        closing = ProfileRefreshed(
            id=origin.id,
            event_ids=[memory.event_id for memory in shown],
            model=origin.model,
            prompt=origin.prompt,
            refused=refused,
            tokens_in=took.tokens_in,
            tokens_out=took.tokens_out,
        )
        self._questions.append([*events, closing])
        return len(events)

    def _chosen(self, db: Connection) -> list[Memory]:
        """The most relevant memories that fit into a request, those that changed last at the end."""
        room = self._room
        chosen: list[Memory] = []
        own = (memory for memory in memories(db) if memory.chat is None)
        for memory in sorted(own, key=lambda memory: (-memory.relevance, memory.memory_id)):
            room -= tokens(memory.content, "model")
            if room < 0:
                break
            chosen.append(memory)
        return sorted(chosen, key=lambda memory: (memory.updated_at, memory.memory_id))

    def _values(
        self, answer: Listed[_ProfileEntry], shown: list[Memory], origin: Extraction
    ) -> tuple[list[CoreMemoryUpdated], int]:
        """The values to set, and how many entries are refused."""
        # Read now: a person may have set one while the model worked.
        sources = self._engine.decide(lambda db: core_sources(db, _SECTION))
        known = {key.casefold(): key for key in sources}
        room = _MOST - sum(each.source == SOURCE for each in sources.values())
        events: dict[str, CoreMemoryUpdated] = {}
        refused = answer.refused
        for entry in answer.entries:
            key, value = entry.key.strip(), entry.value.strip()
            key = known.get(key.casefold(), key)
            there = sources.get(key)
            if there is not None and (there.source != SOURCE or there.value == value):
                continue  # a person has set or removed it, or it is there
            cited = [shown[number - 1] for number in entry.numbers if 0 < number <= len(shown)]
            event = CoreMemoryUpdated(
                id=new_id(),
                section=_SECTION,
                key=key,
                value=value,
                source=SOURCE,
                extraction=replace(origin, memory_ids=[memory.memory_id for memory in cited]),
            )
            is_new = there is None and key not in events
            if not _is_usable(event) or (is_new and room <= 0):
                refused += 1
                continue
            room -= is_new
            events[key] = event
        return [*events.values()], refused


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
