"""Messages, session breaks, summaries, and how far a conversation was distilled."""

from collections.abc import Sequence
from typing import Any, cast

from memlog.eventlog.events import ExtractionCompleted, Message, SessionBreak, SummaryWritten
from memlog.projector.handlers.accepted import Placed, as_json
from memlog.projector.passages import fulltext, index
from memlog.projector.passages.chunking import ChunkSizes
from memlog.projector.passages.index import Whole
from memlog.projector.rows import insert
from memlog.projector.sqlite import Connection


def add_messages(db: Connection, events: Sequence[Placed], sizes: ChunkSizes) -> None:
    """Add messages, and their passages."""
    rows, entries, wholes = [], [], []
    for number, placed in enumerate(events, start=_next_number(db)):
        said = cast(Message, placed.event)
        ts = placed.ts
        meta = as_json(said.meta) if said.meta is not None else ""
        rows.append(
            (number, placed.stream, said.id, said.channel, said.chat_id, said.role, said.kind or "message")
            + (said.name or "", said.content, meta, placed.ts, *placed.place)
        )
        if said.content.strip():
            entries.append(fulltext.entry(number, said.name, said.content))
        whole = Whole(placed.stream, said.id, "conversation", _chat(said), said.name, ts, ts, said.content)
        wholes.append(whole)
    _insert_messages(db, rows)
    fulltext.add(db, fulltext.MESSAGES, entries)
    index.add(db, "message_id", wholes, sizes)


def add_session_breaks(db: Connection, events: Sequence[Placed], sizes: ChunkSizes) -> None:  # noqa: ARG001
    """Add session breaks, which stand among the messages."""
    rows = []
    for number, placed in enumerate(events, start=_next_number(db)):
        said = cast(SessionBreak, placed.event)
        meta = as_json({"model": said.model}) if said.model is not None else ""
        rows.append(
            (number, placed.stream, said.id, said.channel, said.chat_id, None, "session_break")
            + ("", "", meta, placed.ts, *placed.place)
        )
    _insert_messages(db, rows)


def add_summaries(db: Connection, events: Sequence[Placed], sizes: ChunkSizes) -> None:
    """Add summaries, and their passages."""
    rows, wholes = [], []
    for placed in events:
        said = cast(SummaryWritten, placed.event)
        ts = placed.ts
        rows.append(
            (placed.stream, said.id, said.channel, said.chat_id, said.from_message_id, said.to_message_id)
            + (said.content, f"{placed.segment.filename}:{placed.line.offset}", placed.ts, *placed.place)
        )
        wholes.append(Whole(placed.stream, said.id, "summary", _chat(said), None, ts, ts, said.content))
    insert(
        db,
        "summaries",
        ("stream", "id", "channel", "chat_id", "from_message_id", "to_message_id", "content", "position")
        + ("created_at", "day", "number", "writer", "offset"),
        rows,
    )
    index.add(db, "summary_id", wholes, sizes)


def add_extractions(db: Connection, events: Sequence[Placed], sizes: ChunkSizes) -> None:  # noqa: ARG001
    """Add how far a conversation was distilled."""
    rows = []
    for placed in events:
        said = cast(ExtractionCompleted, placed.event)
        rows.append(
            (placed.stream, said.id, said.channel, said.chat_id, said.through_message_id)
            + (placed.ts, *placed.place)
        )
    insert(
        db,
        "extractions",
        ("stream", "id", "channel", "chat_id", "through_message_id")
        + ("created_at", "day", "number", "writer", "offset"),
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
        + ("created_at", "day", "number", "writer", "offset"),
        rows,
        empty_is_null=("name", "metadata"),
    )


def _chat(said: Message | SummaryWritten) -> str:
    return f"{said.channel}:{said.chat_id}"
