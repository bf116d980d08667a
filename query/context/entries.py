"""What a context may hold: every entry with its place in the log, read from all that stands.

Each function gives the candidates of one part, in the order in which they are to be taken.
"""

from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from memlog.eventlog.chat import Chat
from memlog.projector.rows import as_list
from memlog.projector.sqlite import Connection
from memlog.query import core_memory, memories
from memlog.query.event_index import LinePosition
from memlog.query.facts.current import Topic
from memlog.query.search.hits import Hit
from memlog.query.summaries import Summary
from memlog.query.window import WindowMessage

Part = Literal["core", "fact", "memory", "passage", "summary", "window"]

PARTS: tuple[Part, ...] = ("core", "fact", "memory", "passage", "summary", "window")
"""In the order of right, which is also the order in which they are printed."""


class ContextEntry(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One thing that a context says.

    citation: `M1`, `M2`, … in the order in which they are printed; "" for what is left out.
    id: what `memlog show` reads: of the message's, summary's, daily event's or core value's event, a
        memory_id, a fact's or a document's name.
    label: what sort of thing it is, as the text has it: `PREFERENCE`.
    content: what it says; of a long message or a file of memories the passage that was found.
    relevance_score: of what was found: how well it answers, from 0 to 1.
    title: of a memory; of a core value its section and key; of a file its name.
    chat: `<channel>:<chat_id>`; None for the store's own scope.
    tokens: what it takes in the context, with its citation; one fewer or more by the number of that.
    """

    citation: str = ""
    part: Part
    id: str
    label: str
    title: str | None = None
    category: str | None = None
    content: str
    relevance_score: float | None = None
    importance: float | None = None
    chat: str | None = None
    role: str | None = None
    name: str | None = None
    ts: str | None = None
    position: LinePosition
    tokens: int = 0

    @property
    def is_memory(self) -> bool:
        """Whether it is a memory, and no daily event or file: it has a memory_id."""
        return self.importance is not None


def core_entries(db: Connection) -> list[ContextEntry]:
    """All of the core memory: the user's values, then the agent's."""
    return [
        ContextEntry(
            part="core",
            id=value.event_id,
            label="CORE",
            title=f"{value.section}.{value.key}",
            content=value.value,
            position=value.position,
        )
        for value in core_memory.core_values(db)
    ]


def fact_entries(topic: Topic, score: float | None) -> list[ContextEntry]:
    """All that stands of a topic, by rank."""
    return [
        ContextEntry(
            part="fact",
            id=fact.fact_id,
            label="FACT",
            content=f"{fact.topic_key}{f' {fact.rank}' if fact.rank else ''}: {fact.value}",
            relevance_score=score,
            chat=fact.chat,
            ts=fact.updated_at,
            position=fact.position,
        )
        for fact in topic.facts
    ]


def fact_entry(hit: Hit) -> ContextEntry:
    """A fact that was found."""
    return _of_hit(hit, part="fact", label="FACT", content=hit.content)


def type_of(db: Connection, hit: Hit) -> str:
    """The type of the event that says what was found."""
    row = db.execute(
        "SELECT type FROM events WHERE stream = ? AND id = ?", (hit.position.stream, hit.event_id)
    ).fetchone()
    return row[0] if row else ""


def memory_entry(db: Connection, hit: Hit) -> ContextEntry | None:
    """A memory that was found, as it stands; None where it stands no more."""
    memory = memories.memory(db, hit.id)
    if memory is None or memory.archived_at is not None:
        return None
    return _of_hit(
        hit,
        part="memory",
        label=memory.kind.upper(),
        title=memory.title,
        content=memory.content,
        importance=memory.importance,
    )


def event_entry(hit: Hit) -> ContextEntry:
    """A daily event that was found."""
    return _of_hit(hit, part="memory", label="EVENT", content=hit.content)


def file_entry(db: Connection, hit: Hit) -> ContextEntry:
    """What was found of a file of memories."""
    return _of_hit(hit, part="memory", label="FILE", title=hit.source, content=passage(db, hit))


def passage_entry(db: Connection, hit: Hit) -> ContextEntry:
    """What was found of a message."""
    return _of_hit(
        hit,
        part="passage",
        label="CONVERSATION",
        content=passage(db, hit),
        role=hit.role,
        name=hit.name,
    )


def summary_entry(summary: Summary, score: float | None) -> ContextEntry:
    """A summary."""
    return ContextEntry(
        part="summary",
        id=summary.id,
        label="SUMMARY",
        content=summary.content,
        relevance_score=score,
        chat=summary.chat,
        ts=summary.created_at,
        position=summary.position,
    )


def window_entries(db: Connection, chat: Chat, messages: Sequence[WindowMessage]) -> Iterator[ContextEntry]:
    """Messages of a chat's window, the newest first."""
    places = _places(db, chat, messages)
    for message in reversed(messages):
        yield ContextEntry(
            part="window",
            id=message.id,
            label="RECENT",
            content=message.content,
            chat=":".join(chat),
            role=message.role,
            name=message.name,
            ts=message.ts,
            position=places[message.id, message.ts, message.content],
        )


def passage(db: Connection, hit: Hit) -> str:
    """What a message or a file of memories says, where it is one passage; else the passage that its snippet
    is from."""
    column = "message_id" if hit.kind == "message" else "document_id"
    chunks = db.execute(
        f"SELECT start_char, end_char FROM memory_chunks WHERE stream = ? AND {column} = ?"
        " ORDER BY chunk_index",
        (hit.position.stream, hit.id),
    ).fetchall()
    if len(chunks) < 2:
        return hit.content
    shown = hit.snippet.strip("…")
    place = hit.content.find(shown) + len(shown) // 2
    start, end = next((chunk for chunk in chunks if chunk[0] <= place < chunk[1]), chunks[0])
    cut = hit.content[start:end].strip()
    return ("…" if start > 0 else "") + cut + ("…" if end < len(hit.content) else "")


def _places(
    db: Connection, chat: Chat, messages: Sequence[WindowMessage]
) -> dict[tuple[str, str, str], LinePosition]:
    # By what they say, too: two folders of one chat may each have a message of one id.
    rows = db.execute(
        "SELECT m.id, m.created_at, m.content, e.stream, e.segment, e.offset, e.line FROM messages m"
        " JOIN events e ON e.stream = m.stream AND e.id = m.id WHERE m.channel = ? AND m.chat_id = ?"
        " AND m.created_at >= ? AND m.id IN (SELECT value FROM json_each(?))",
        (
            *chat,
            min((message.ts for message in messages), default=""),
            as_list([message.id for message in messages]),
        ),
    )
    return {(name, ts, content): LinePosition(*place) for name, ts, content, *place in rows}


def _of_hit(
    hit: Hit,
    *,
    part: Part,
    label: str,
    content: str,
    title: str | None = None,
    importance: float | None = None,
    role: str | None = None,
    name: str | None = None,
) -> ContextEntry:
    return ContextEntry(
        part=part,
        id=hit.id,
        label=label,
        title=title,
        category=hit.category,
        content=content,
        relevance_score=hit.score,
        importance=importance,
        chat=hit.chat,
        role=role,
        name=name,
        ts=hit.ts,
        position=hit.position,
    )
