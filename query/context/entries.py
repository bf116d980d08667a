"""Entries of a context, each with its position in the log."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

import msgspec

from memlog.eventlog.codec.content_ids import fold_content
from memlog.eventlog.fields import Chat
from memlog.projector.sqlite import Connection, to_json_list
from memlog.query.context.scope import CoreRow
from memlog.query.context.scores import EntryScore
from memlog.query.conversations import WindowMessage
from memlog.query.event_index import POSITION, LinePosition
from memlog.query.facts.answers import Topic
from memlog.query.memories import Memory
from memlog.query.search.hits import Hit
from memlog.query.sessions import Summary

Part = Literal["core", "always", "fact", "memory", "document", "passage", "summary", "window"]

PARTS: tuple[Part, ...] = ("core", "always", "fact", "memory", "document", "passage", "summary", "window")
"""The parts of a context, in the order in which they are printed."""

STABLE: tuple[Part, ...] = ("core", "always")
"""The parts in the stable half, which seldom changes."""


class ContextEntry(msgspec.Struct, kw_only=True, omit_defaults=True):
    """An entry of a context.

    citation: `M1`, `M2`, … in printing order; "" for entries left out, for the stable half, and in the
        form `session`.
    id: as accepted by `store.get`: the event id of a message, summary, daily event or core value; a
        memory_id; or the name of a fact or document.
    label: the kind of entry as printed in text: `PREFERENCE`.
    content: the text; for a long message or a memory file, only the passage that was found.
    relevance_score: from 0 to 1: the probability that it belongs to the prompt; for a passage that was not
        listed, the hit's score.
    score: how that probability was computed; None if no search found the entry.
    title: a memory's title; for a core value, section and key; for a file, its name; for a document, file and
        lines.
    chat: `<channel>:<chat_id>`; None for the store's own scope.
    tokens: its size in the context, including the citation; ±1 for the citation's number.
    topic: the topic of a memory or fact. rank: a fact's rank in a ranked list; otherwise 0.
    is_older: whether a newer fact or, for what always holds, a newer memory on its topic contradicts it.
    changed_by: a later memory that may change this one, if any.
    is_best: whether it is one of the two best entries for the message.
    is_disputed: whether it contradicts another memory, and a person has yet to decide.
    copies: the number of messages or memories with this text, of which this is the newest.
    """

    citation: str = ""
    part: Part
    id: str
    label: str
    title: str | None = None
    category: str | None = None
    content: str
    relevance_score: float | None = None
    score: EntryScore | None = None
    importance: float | None = None
    chat: str | None = None
    role: str | None = None
    name: str | None = None
    ts: str | None = None
    position: LinePosition
    tokens: int = 0
    copies: int = 1
    topic: str | None = None
    rank: int = 0
    is_older: bool = False
    changed_by: str | None = None
    is_best: bool = False
    is_disputed: bool = False

    @property
    def is_memory(self) -> bool:
        """Whether the entry has a memory_id, unlike a daily event or a file."""
        return self.importance is not None


def make_entries_of_core_memory(rows: Iterable[CoreRow]) -> list[ContextEntry]:
    """Convert rows of core memory to entries."""
    return [
        ContextEntry(
            part="core",
            id=row.event_id,
            label="CORE",
            title=f"{row.section}.{row.key}",
            content=row.value,
            position=row.position,
        )
        for row in rows
    ]


def make_entries_of_facts(topic: Topic) -> list[ContextEntry]:
    """Convert a topic's facts to entries, by rank."""
    return [
        ContextEntry(
            part="fact",
            id=fact.fact_id,
            label="FACT",
            content=f"{fact.topic_key}{f' {fact.rank}' if fact.rank else ''}: {fact.value}",
            chat=fact.chat,
            ts=fact.updated_at,
            position=fact.position,
            topic=topic.key,
            rank=fact.rank,
        )
        for fact in topic.facts
    ]


def put_newest_facts_first_and_mark_older(entries: Sequence[ContextEntry]) -> list[ContextEntry]:
    """Put the newest fact of each topic and rank first, and mark older facts that contradict it."""
    ordered = _sort_groups(entries, topic_and_rank, lambda entry: entry.ts or "", reverse=True)
    newest: dict[object, ContextEntry] = {}
    for entry in ordered:
        if (topic := topic_and_rank(entry)) is not None:
            first = newest.setdefault(topic, entry)
            is_older = (entry.ts or "") < (first.ts or "")
            entry.is_older = is_older and fold_content(entry.content) != fold_content(first.content)
    return ordered


def sort_facts_by_rank(entries: Sequence[ContextEntry]) -> list[ContextEntry]:
    """Sort the facts of each ranked list by rank, leaving other entries in place."""
    return _sort_groups(
        entries,
        lambda entry: topic[0] if entry.rank and (topic := topic_and_rank(entry)) else None,
        lambda entry: entry.rank,
    )


def _sort_groups(
    entries: Sequence[ContextEntry],
    group_of: Callable[[ContextEntry], object],
    key: Callable[[ContextEntry], Any],
    *,
    reverse: bool = False,
) -> list[ContextEntry]:
    """Sort each group's entries within the places the group occupies.

    group_of: returns an entry's group; None leaves the entry in place.
    """
    places: dict[object, list[int]] = {}
    for place, entry in enumerate(entries):
        if (group := group_of(entry)) is not None:
            places.setdefault(group, []).append(place)
    ordered = list(entries)
    for group_places in places.values():
        members = sorted((entries[place] for place in group_places), key=key, reverse=reverse)
        for place, entry in zip(group_places, members, strict=True):
            ordered[place] = entry
    return ordered


def topic_and_rank(entry: ContextEntry) -> tuple[str, int] | None:
    """Return a fact's topic and rank, which its newer versions share; None for other entries."""
    if entry.topic is None or entry.part != "fact":
        return None
    return fold_content(entry.topic), entry.rank


def make_entry_of_hit(hit: Hit, part: Part, label: str, **members: Any) -> ContextEntry:  # noqa: ANN401
    """Convert a hit to an entry; `members` adds to or overrides what is taken from the hit."""
    names = ("id", "category", "content", "chat", "ts", "position", "copies", "changed_by")
    of_hit = {name: getattr(hit, name) for name in names} | {"relevance_score": hit.score}
    return ContextEntry(part=part, label=label, **(of_hit | members))


def make_entry_of_memory(memory: Memory | None, hit: Hit) -> ContextEntry | None:
    """Convert a memory's hit to an entry; None if the memory is deleted or archived."""
    if memory is None or memory.archived_at is not None:
        return None
    return make_entry_of_hit(
        hit,
        "memory",
        memory.kind.upper(),
        title=memory.title,
        content=memory.content,
        importance=memory.importance,
        topic=memory.topic,
    )


def make_entry_of_summary(summary: Summary, score: float | None) -> ContextEntry:
    """Convert a summary to an entry."""
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


def make_entries_of_window(
    db: Connection, chat: Chat, messages: Sequence[WindowMessage]
) -> list[ContextEntry]:
    """Convert the messages of a chat's window to entries, newest first."""
    oldest = min((message.ts for message in messages), default="")
    rows = db.execute(
        f"SELECT m.id, m.created_at, m.content, {POSITION} FROM messages m"
        " JOIN events e ON e.stream = m.stream AND e.id = m.id WHERE m.channel = ? AND m.chat_id = ?"
        " AND m.created_at >= ? AND m.id IN (SELECT value FROM json_each(?))",
        (*chat, oldest, to_json_list([message.id for message in messages])),
    )
    # The key includes the content, because two folders of one chat may have messages with the same id.
    positions = {(name, ts, content): LinePosition(*position) for name, ts, content, *position in rows}
    return [
        ContextEntry(
            part="window",
            id=message.id,
            label="RECENT",
            content=message.content,
            chat=str(chat),
            role=message.role,
            name=message.name,
            ts=message.ts,
            position=positions[message.id, message.ts, message.content],
        )
        for message in reversed(messages)
    ]


def cut_passage_of_hit(db: Connection, hit: Hit) -> str:
    """Return the passage around the snippet in the hit's message or memory file, with `…` where it is cut."""
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
