"""What each event does to the read model: one handler per event type.

A handler is order-free: whatever the order in which events arrive, it leaves the same rows. Where two
events set the same thing the greater (ts, segment, offset) wins. It looks at no other stream's rows and
tolerates references to what does not exist. So events may be projected in batches of any size.
"""

import unicodedata
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any, NamedTuple, cast

import msgspec

from memlog.eventlog.events import (
    CoreMemoryDeleted,
    CoreMemoryUpdated,
    Event,
    MemorySaved,
    Message,
    SessionBreak,
)
from memlog.eventlog.segment import Line
from memlog.eventlog.streams import SegmentName
from memlog.projector import fulltext, vectors
from memlog.projector.analysis import memory_label
from memlog.projector.chunking import ChunkSizes, chunks
from memlog.projector.sqlite import Connection

VERSION = 1
"""Changes with any change to the rows that a handler makes; part of the projection id."""

_TITLE_LENGTH = 80

_json = msgspec.json.Encoder(order="deterministic")


class Placed(NamedTuple):
    """An accepted event and where it stands."""

    event: Event
    stream: str
    segment: SegmentName
    line: Line
    content_sha256: bytes

    @property
    def id(self) -> str:
        """Of the event."""
        return cast(str, self.event.id)

    @property
    def order(self) -> tuple[str, int, int]:
        """(ts, segment, offset): the one order of events."""
        return cast(str, self.event.ts), self.segment.order, self.line.offset


def handle(db: Connection, events: Sequence[Placed], sizes: ChunkSizes) -> None:
    """Fold accepted events of one stream into the read model."""
    for kind in dict.fromkeys(type(placed.event) for placed in events):
        _HANDLERS[kind](db, [placed for placed in events if type(placed.event) is kind], sizes)


def clear_stream(db: Connection, stream: str) -> None:
    """Remove every row that came from `stream`, so that it can be replayed."""
    fulltext.remove_messages(db, stream)
    for (memory_id,) in db.execute("SELECT memory_id FROM memories WHERE stream = ?", (stream,)).fetchall():
        fulltext.remove_memory(db, memory_id)
    _remove_chunks(db, "stream = ?", (stream,))
    for table in _STREAM_TABLES:
        db.execute(f"DELETE FROM {table} WHERE stream = ?", (stream,))


def derived_memory_id(chat_id: str | None, content: str) -> str:
    """The id of a memory that names none: two processes that save one text in one chat name one memory.

    The first 32 hex digits of sha256(chat_id, NUL, content in NFKC, case-folded, white space collapsed).
    """
    folded = " ".join(unicodedata.normalize("NFKC", content).casefold().split())
    return sha256(f"{chat_id or ''}\0{folded}".encode()).hexdigest()[:32]


def _add_messages(db: Connection, events: Sequence[Placed], sizes: ChunkSizes) -> None:
    (last,) = db.execute("SELECT coalesce(max(message_no), 0) FROM messages").fetchone()
    rows, entries, passages = [], [], []
    for number, placed in enumerate(events, start=last + 1):
        said = cast(Message, placed.event)
        ts, segment_no, offset = placed.order
        meta = _json.encode(said.meta).decode() if said.meta is not None else None
        rows.append(
            (number, placed.stream, said.id, said.channel, said.chat_id, said.role, said.kind or "message")
            + (said.name, said.content, meta, ts, segment_no, offset)
        )
        entry = fulltext.message_entry(number, said.name, said.content)
        if entry is not None:
            entries.append(entry)
        chat = f"{said.channel}:{said.chat_id}"
        passages += _chunk_rows(
            said.content,
            sizes,
            stream=placed.stream,
            label=said.name,
            message_id=said.id,
            source="conversation",
            chat_id=chat,
            ts=ts,
        )
    _insert_messages(db, rows)
    fulltext.add_messages(db, entries)
    _insert_chunks(db, passages)


def _add_session_breaks(db: Connection, events: Sequence[Placed], sizes: ChunkSizes) -> None:  # noqa: ARG001
    (last,) = db.execute("SELECT coalesce(max(message_no), 0) FROM messages").fetchone()
    rows = []
    for number, placed in enumerate(events, start=last + 1):
        said = cast(SessionBreak, placed.event)
        meta = _json.encode({"model": said.model}).decode() if said.model is not None else None
        rows.append(
            (number, placed.stream, said.id, said.channel, said.chat_id, None, "session_break")
            + (None, "", meta, *placed.order)
        )
    _insert_messages(db, rows)


def _save_memories(db: Connection, events: Sequence[Placed], sizes: ChunkSizes) -> None:
    for placed in events:
        said = cast(MemorySaved, placed.event)
        memory_id = said.memory_id or derived_memory_id(said.chat_id, said.content)
        standing = db.execute(
            "SELECT updated_at, segment_no, offset, created_at FROM memories WHERE memory_id = ?",
            (memory_id,),
        ).fetchone()
        created_at = min(placed.order[0], standing[3]) if standing else placed.order[0]
        if standing and standing[:3] > placed.order:
            db.execute("UPDATE memories SET created_at = ? WHERE memory_id = ?", (created_at, memory_id))
            db.execute("UPDATE memory_chunks SET created_at = ? WHERE memory_id = ?", (created_at, memory_id))
        else:
            _replace_memory(db, memory_id, created_at, placed, sizes)


def _replace_memory(
    db: Connection, memory_id: str, created_at: str, placed: Placed, sizes: ChunkSizes
) -> None:
    said = cast(MemorySaved, placed.event)
    fulltext.remove_memory(db, memory_id)
    _remove_chunks(db, "memory_id = ?", (memory_id,))
    ts, segment_no, offset = placed.order
    values = {
        "memory_id": memory_id,
        "stream": placed.stream,
        "event_id": said.id,
        "title": said.title or said.content[:_TITLE_LENGTH],
        "content": said.content,
        "category": said.category,
        "kind": said.kind,
        "importance": said.importance,
        "source": said.source,
        "topic": said.topic,
        "chat_id": said.chat_id,
        "tags": _json.encode(said.tags or []).decode(),
        "created_at": created_at,
        "updated_at": ts,
        "segment_no": segment_no,
        "offset": offset,
    }
    db.execute(
        f"INSERT INTO memories ({', '.join(values)}) VALUES ({', '.join(':' + name for name in values)})"
        f" ON CONFLICT (memory_id) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in values)}",
        values,
    )
    rows = _chunk_rows(
        said.content,
        sizes,
        stream=placed.stream,
        label=memory_label(str(values["title"]), said.content),
        memory_id=memory_id,
        source=said.source,
        chat_id=said.chat_id,
        ts=ts,
    )
    _insert_chunks(db, [row | {"created_at": created_at} for row in rows])
    fulltext.add_memory(db, memory_id)


def _set_core_memory(db: Connection, events: Sequence[Placed], sizes: ChunkSizes) -> None:  # noqa: ARG001
    rows = []
    for placed in events:
        said = cast("CoreMemoryUpdated | CoreMemoryDeleted", placed.event)
        value = said.value if isinstance(said, CoreMemoryUpdated) else None
        rows.append((said.section, said.key, placed.stream, value, *placed.order))
    db.executemany(
        "INSERT INTO core_memory (section, key, stream, value, updated_at, segment_no, offset)"
        " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (section, key) DO UPDATE SET"
        " value = excluded.value, updated_at = excluded.updated_at, segment_no = excluded.segment_no,"
        " offset = excluded.offset, stream = excluded.stream"
        " WHERE (excluded.updated_at, excluded.segment_no, excluded.offset)"
        " > (core_memory.updated_at, core_memory.segment_no, core_memory.offset)",
        rows,
    )


def _insert_messages(db: Connection, rows: list[tuple[Any, ...]]) -> None:
    db.executemany(
        "INSERT INTO messages (message_no, stream, id, channel, chat_id, role, type, name, content, metadata,"
        " created_at, segment_no, offset) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        rows,
    )


def _chunk_rows(
    content: str,
    sizes: ChunkSizes,
    *,
    stream: str,
    source: str,
    chat_id: str | None,
    label: str | None,
    ts: str,
    message_id: str | None = None,
    memory_id: str | None = None,
) -> list[dict[str, Any]]:
    return [
        {
            "stream": stream,
            "memory_id": memory_id,
            "message_id": message_id,
            "chunk_index": index,
            "source": source,
            "chat_id": chat_id,
            "section": chunk.section,
            "label": label,
            "content": content[chunk.start : chunk.end],
            "start_char": chunk.start,
            "end_char": chunk.end,
            "created_at": ts,
            "updated_at": ts,
        }
        for index, chunk in enumerate(chunks(content, sizes))
    ]


def _insert_chunks(db: Connection, rows: list[dict[str, Any]]) -> None:
    if not rows:
        return
    (last,) = db.execute("SELECT coalesce(max(chunk_no), 0) FROM memory_chunks").fetchone()
    db.executemany(
        f"INSERT INTO memory_chunks ({', '.join(rows[0])})"
        f" VALUES ({', '.join(':' + name for name in rows[0])})",
        rows,
    )
    db.execute("INSERT INTO embed_queue SELECT chunk_no FROM memory_chunks WHERE chunk_no > ?", (last,))


def _remove_chunks(db: Connection, where: str, values: tuple[Any, ...]) -> None:
    """Chunks, and their vectors, which no cascade reaches."""
    vectors.remove(db, where, values)
    db.execute(
        f"DELETE FROM embed_queue WHERE chunk_no IN (SELECT chunk_no FROM memory_chunks WHERE {where})",
        values,
    )
    db.execute(f"DELETE FROM memory_chunks WHERE {where}", values)


_HANDLERS: dict[type[Event], Callable[[Connection, Sequence[Placed], ChunkSizes], None]] = {
    Message: _add_messages,
    SessionBreak: _add_session_breaks,
    MemorySaved: _save_memories,
    CoreMemoryUpdated: _set_core_memory,
    CoreMemoryDeleted: _set_core_memory,
}

_STREAM_TABLES = (
    "messages",
    "memories",
    "core_memory",
    "events",
    "conflicts",
    "duplicates",
    "quarantine",
    "checkpoints",
)
