"""Messages, session breaks, summaries, and how far a conversation was distilled."""

from collections.abc import Sequence
from typing import cast

from memlog.eventlog.events import ExtractionCompleted, Message, SessionBreak, SummaryWritten
from memlog.projector.handlers.accepted import Placed, as_json
from memlog.projector.passages import fulltext, index
from memlog.projector.passages.chunking import ChunkSizes
from memlog.projector.passages.index import Whole
from memlog.projector.rows import insert
from memlog.projector.sqlite import Connection

_EVENT = "stream, id, channel, chat_id"
_PLACE = "created_at, day, number, writer, offset"


def add_messages(db: Connection, events: Sequence[Placed], sizes: ChunkSizes) -> None:
    """Add messages with their passages, and the session breaks among them."""
    rows: list[tuple[object, ...]] = []
    texts, wholes = [], []
    (last,) = db.execute("SELECT coalesce(max(message_no), 0) FROM messages").fetchone()
    for number, placed in enumerate(events, start=last + 1):
        said = cast("Message | SessionBreak", placed.event)
        event = (number, placed.stream, said.id, said.channel, said.chat_id)
        if isinstance(said, SessionBreak):
            meta = as_json({"model": said.model}) if said.model is not None else ""
            rows.append((*event, None, "session_break", "", "", meta, placed.ts, *placed.place))
            continue
        meta = as_json(said.meta) if said.meta is not None else ""
        message = (said.role, said.kind or "message", said.name or "", said.content, meta)
        rows.append((*event, *message, placed.ts, *placed.place))
        if said.content.strip():
            texts.append((number, said.name, said.content))
        wholes.append(_whole(placed, said, "conversation", said.name))
    columns = f"message_no, {_EVENT}, role, type, name, content, metadata, {_PLACE}"
    insert(db, "messages", columns, rows, empty_is_null=("name", "metadata"))
    fulltext.add(db, fulltext.MESSAGES, texts)
    index.add(db, "message_id", wholes, sizes)


def add_summaries(db: Connection, events: Sequence[Placed], sizes: ChunkSizes) -> None:
    """Add summaries with their passages."""
    rows, wholes = [], []
    for placed in events:
        said = cast(SummaryWritten, placed.event)
        position = f"{placed.segment.filename}:{placed.line.offset}"
        row = (placed.stream, said.id, said.channel, said.chat_id, said.from_message_id, said.to_message_id)
        is_distilled = said.extraction is not None
        rows.append((*row, said.content, is_distilled, position, placed.ts, *placed.place))
        wholes.append(_whole(placed, said, "summary"))
    columns = f"{_EVENT}, from_message_id, to_message_id, content, is_distilled, position, {_PLACE}"
    insert(db, "summaries", columns, rows)
    index.add(db, "summary_id", wholes, sizes)


def add_extractions(db: Connection, events: Sequence[Placed], sizes: ChunkSizes) -> None:  # noqa: ARG001
    """Add how far a conversation was distilled."""
    rows = []
    for placed in events:
        said = cast(ExtractionCompleted, placed.event)
        row = (placed.stream, said.id, said.channel, said.chat_id, said.through_message_id)
        rows.append((*row, placed.ts, *placed.place))
    insert(db, "extractions", f"{_EVENT}, through_message_id, {_PLACE}", rows)


def _whole(placed: Placed, said: Message | SummaryWritten, source: str, label: str | None = None) -> Whole:
    chat = f"{said.channel}:{said.chat_id}"
    return Whole(placed.stream, placed.id, source, said.content, placed.ts, placed.ts, chat, label)
