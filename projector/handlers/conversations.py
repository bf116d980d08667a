"""Messages, session breaks, summaries, and how far a conversation was distilled."""

from collections.abc import Sequence
from typing import Any, cast

from memlog.eventlog.events import ExtractionCompleted, Message, SessionBreak, SummaryWritten
from memlog.projector import fulltext, passages
from memlog.projector.chunking import ChunkSizes, chunks
from memlog.projector.handlers.placed import Placed, as_json
from memlog.projector.rows import insert
from memlog.projector.sqlite import Connection


def fold(db: Connection, events: Sequence[Placed], sizes: ChunkSizes) -> None:
    """Add what was said."""
    _add_messages(db, [placed for placed in events if isinstance(placed.event, Message)], sizes)
    _add_session_breaks(db, [placed for placed in events if isinstance(placed.event, SessionBreak)])
    _add_summaries(db, [placed for placed in events if isinstance(placed.event, SummaryWritten)], sizes)
    _add_extractions(db, [placed for placed in events if isinstance(placed.event, ExtractionCompleted)])


def _add_messages(db: Connection, events: Sequence[Placed], sizes: ChunkSizes) -> None:
    rows, entries, cut = [], [], []
    for number, placed in enumerate(events, start=_next_number(db)):
        said = cast(Message, placed.event)
        ts = placed.order[0]
        meta = as_json(said.meta) if said.meta is not None else None
        rows.append(
            (number, placed.stream, said.id, said.channel, said.chat_id, said.role, said.kind or "message")
            + (said.name, said.content, meta, *placed.order)
        )
        if said.content.strip():
            entries.append(fulltext.entry(number, said.name, said.content))
        owner = (placed.stream, None, said.id, None, None, "conversation", _chat(said), said.name, ts, ts)
        cut += _passages(owner, said.content, sizes)
    _insert_messages(db, rows)
    fulltext.add(db, fulltext.MESSAGES, entries)
    passages.add(db, passages.MEMORY, cut)


def _add_session_breaks(db: Connection, events: Sequence[Placed]) -> None:
    rows = []
    for number, placed in enumerate(events, start=_next_number(db)):
        said = cast(SessionBreak, placed.event)
        meta = as_json({"model": said.model}) if said.model is not None else None
        rows.append(
            (number, placed.stream, said.id, said.channel, said.chat_id, None, "session_break")
            + (None, "", meta, *placed.order)
        )
    _insert_messages(db, rows)


def _add_summaries(db: Connection, events: Sequence[Placed], sizes: ChunkSizes) -> None:
    rows, cut = [], []
    for placed in events:
        said = cast(SummaryWritten, placed.event)
        ts = placed.order[0]
        rows.append(
            (placed.stream, said.id, said.channel, said.chat_id, said.from_message_id, said.to_message_id)
            + (said.content, f"{placed.segment.filename}:{placed.line.offset}", *placed.order)
        )
        owner = (placed.stream, None, None, said.id, None, "summary", _chat(said), None, ts, ts)
        cut += _passages(owner, said.content, sizes)
    insert(
        db,
        "summaries",
        ("stream", "id", "channel", "chat_id", "from_message_id", "to_message_id", "content", "position")
        + ("created_at", "segment_no", "offset"),
        rows,
    )
    passages.add(db, passages.MEMORY, cut)


def _add_extractions(db: Connection, events: Sequence[Placed]) -> None:
    rows = []
    for placed in events:
        said = cast(ExtractionCompleted, placed.event)
        rows.append(
            (placed.stream, said.id, said.channel, said.chat_id, said.through_message_id, *placed.order)
        )
    insert(
        db,
        "extractions",
        ("stream", "id", "channel", "chat_id", "through_message_id", "created_at", "segment_no", "offset"),
        rows,
    )


def _next_number(db: Connection) -> int:
    (last,) = db.execute("SELECT coalesce(max(message_no), 0) FROM messages").fetchone()
    return int(last) + 1


def _insert_messages(db: Connection, rows: list[tuple[Any, ...]]) -> None:
    insert(
        db,
        "messages",
        ("message_no", "stream", "id", "channel", "chat_id", "role", "type", "name", "content", "metadata")
        + ("created_at", "segment_no", "offset"),
        rows,
    )


def _chat(said: Message | SummaryWritten) -> str:
    return f"{said.channel}:{said.chat_id}"


def _passages(owner: tuple[Any, ...], content: str, sizes: ChunkSizes) -> list[tuple[Any, ...]]:
    return [
        (*owner, index, chunk.section, content[chunk.start : chunk.end], chunk.start, chunk.end)
        for index, chunk in enumerate(chunks(content, sizes))
    ]
