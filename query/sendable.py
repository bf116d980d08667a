"""Conversations and memories as a language model may be given them."""

from collections.abc import Sequence
from typing import Protocol

from memlog.eventlog.chat import Chat
from memlog.eventlog.outgoing import Part, masked_parts
from memlog.projector.passages.beside import beside, said
from memlog.projector.sqlite import Connection
from memlog.projector.text.analyzer import memory_label
from memlog.query.memories import Memory

_BY_ID = "channel = ? AND chat_id = ? AND id = ?"


class _Message(Protocol):
    @property
    def id(self) -> str: ...
    @property
    def role(self) -> str: ...
    @property
    def name(self) -> str | None: ...
    @property
    def content(self) -> str: ...


def masked_messages(db: Connection, chat: Chat, messages: Sequence[_Message]) -> list[str]:
    """Return the contents of messages in a row, without keys, also those that go on beside them."""
    before, _ = beside(db, _BY_ID, [*chat, messages[0].id])
    _, behind = beside(db, _BY_ID, [*chat, messages[-1].id])
    own = [said(each.role, each.name, each.content) for each in messages]
    return masked_parts([*before, *own, *behind])[len(before) : len(before) + len(own)]


def masked_memories(memories: Sequence[Memory]) -> list[str]:
    """Return the contents of memories, without keys."""
    return masked_parts([part_of(memory) for memory in memories])


def part_of(memory: Memory) -> Part:
    """Return a memory as the gate looks at it."""
    label = memory_label(memory.title, memory.content)
    return Part(memory.content, [name for name in (label, memory.topic, *memory.tags) if name])
