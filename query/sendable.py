"""Decides which conversations and memories may be sent to providers, and masks keys in them."""

from collections.abc import Sequence

from memlog.eventlog.fields import Chat
from memlog.eventlog.secrets.outgoing import (
    TextToCheck,
    is_private_category,
    mask_parts,
    tell_which_parts_hold_keys,
    text_has_key,
)
from memlog.projector.passages import fulltext
from memlog.projector.sqlite import Connection
from memlog.query.buffer import BufferedMessage
from memlog.query.context.entries import ContextEntry
from memlog.query.conversations import WindowMessage
from memlog.query.filters import FACTS
from memlog.query.memories import Memory, find_memory
from memlog.query.search.hits import Hit, read_text_of_document

_BY_ID = "channel = ? AND chat_id = ? AND id = ?"


def mask_messages(
    db: Connection, chat: Chat, messages: Sequence[BufferedMessage | WindowMessage]
) -> list[str]:
    """Return the contents of consecutive messages with keys masked, even keys that span messages."""
    before, _ = fulltext.read_neighbouring_messages(db, _BY_ID, [*chat, messages[0].id])
    _, behind = fulltext.read_neighbouring_messages(db, _BY_ID, [*chat, messages[-1].id])
    own = [fulltext.message_to_text_to_check(each.role, each.name, each.content) for each in messages]
    return mask_parts([*before, *own, *behind])[len(before) : len(before) + len(own)]


def mask_memories(memories: Sequence[Memory]) -> list[str]:
    """Return the contents of memories with keys masked."""
    return mask_parts([memory_to_text_to_check(memory) for memory in memories])


def memory_to_text_to_check(memory: Memory) -> TextToCheck:
    """Convert a memory to the form that is searched for keys."""
    return TextToCheck(
        memory.content, fulltext.memory_names(memory.title, memory.content, memory.topic, memory.tags)
    )


def may_hit_be_sent(db: Connection, hit: Hit) -> bool:
    """Whether a hit may be sent to a provider for reranking.

    For a passage, the whole document is checked: a key may be longer than a passage.
    """
    if is_private_category(hit.category) or text_has_key(hit.content):
        return False
    if hit.kind == "message" and hit.chat is not None:
        return not fulltext.message_holds_key(db, _BY_ID, [*Chat.of(hit.chat), hit.id])
    if hit.kind == "memory":
        if hit.category == FACTS:
            return not fulltext.fact_holds_key(db, hit.id)
        return not text_has_key(hit.content, fulltext.select_memory_names(db, hit.id))
    return not text_has_key(read_text_of_document(db, hit.event_id))


def may_entry_be_sent(db: Connection, entry: ContextEntry) -> bool:
    """Whether an entry of a context may leave the process, in a prompt for a model elsewhere.

    A passage is checked together with the whole text it comes from.
    """
    if is_private_category(entry.category) or text_has_key(entry.content, _names_of_entry(entry)):
        return False
    if entry.part == "fact":
        return not fulltext.fact_holds_key(db, entry.id)
    if entry.part == "document":
        return not document_holds_key(db, entry.id)
    if entry.is_memory:
        memory = find_memory(db, entry.id)
        return memory is None or not text_has_key(memory.content, fulltext.select_memory_names(db, entry.id))
    if entry.part in ("passage", "window") and entry.chat is not None:
        return not fulltext.message_holds_key(db, _BY_ID, [*Chat.of(entry.chat), entry.id])
    return True


def _names_of_entry(entry: ContextEntry) -> list[str]:
    return [name for name in (entry.title, entry.topic) if name is not None]


def document_holds_key(db: Connection, document_id: str) -> bool:
    """Whether a document contains a key."""
    row = db.execute("SELECT content FROM documents WHERE document_id = ?", (document_id,)).fetchone()
    return row is not None and text_has_key(row[0])


def does_question_hold_key(db: Connection, text: str, chat: Chat) -> bool:
    """Whether `text` contains a key, or the rest of one that began in earlier messages of the chat."""
    before = fulltext.read_newest_messages(db, chat)
    if before and before[-1].text == text:
        return tell_which_parts_hold_keys(before)[-1]
    asks = next((part.by for part in reversed(before) if part.by.startswith("user/")), "")
    return tell_which_parts_hold_keys([*before, TextToCheck(text, by=asks)])[-1]
