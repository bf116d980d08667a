"""Messages, their changes, chats, summaries, daily events, and extraction progress."""

from collections.abc import Sequence
from typing import cast

from memlog.eventlog import events as ev
from memlog.projector.passages import fulltext, index
from memlog.projector.passages.chunking import ChunkSizes
from memlog.projector.passages.index import SourceText
from memlog.projector.sqlite import Connection, delete_rows, insert_rows, upsert_row
from memlog.projector.subjects.accepted import Handlers, PositionedEvent, encode_as_json

_EVENT = "stream, id, channel, chat_id"
_PLACE = "created_at, day, number, writer, offset"
_MESSAGE = f"message_no, {_EVENT}, role, type, name, content, metadata, {_PLACE}"
_CONTENT = _MESSAGE.split(", ").index("content")
_NUMBERS = "SELECT message_no FROM messages UNION ALL SELECT message_no FROM withdrawn_messages"


def add_messages(db: Connection, events: Sequence[PositionedEvent], sizes: ChunkSizes) -> None:
    """Add messages with their passages, and session breaks."""
    rows: list[tuple[object, ...]] = []
    texts, wholes = [], []
    (last,) = db.execute(f"SELECT coalesce(max(message_no), 0) FROM ({_NUMBERS})").fetchone()
    for number, placed in enumerate(events, start=last + 1):
        spoken = cast("ev.Message | ev.SessionBreak", placed.event)
        event = (number, placed.stream, spoken.id, spoken.channel, spoken.chat_id)
        if isinstance(spoken, ev.SessionBreak):
            meta = encode_as_json({"model": spoken.model}) if spoken.model is not None else ""
            rows.append((*event, None, "session_break", "", "", meta, placed.ts, *placed.place))
            continue
        meta = encode_as_json(spoken.meta) if spoken.meta is not None else ""
        message = (spoken.role, spoken.kind or "message", spoken.name or "", spoken.content, meta)
        rows.append((*event, *message, placed.ts, *placed.place))
        if spoken.content.strip():
            texts.append((number, spoken.name, spoken.content))
        wholes.append(_to_source_text(placed, spoken, "conversation", spoken.name))
    insert_rows(db, "messages", _MESSAGE, rows, empty_is_null=("name", "metadata"))
    fulltext.add_texts_to_index(db, fulltext.MESSAGES, texts)
    index.add_passages(db, "message_id", wholes, sizes)
    _apply_changes_to_messages(db, events[0].stream, [placed.id for placed in events], sizes)


def change_messages(db: Connection, events: Sequence[PositionedEvent], sizes: ChunkSizes) -> None:
    """Change the content and the state of messages."""
    rows, changed = [], []
    for placed in events:
        event = cast("ev.MessageUpdated | ev.MessageDeleted", placed.event)
        change = (event.content, event.state) if isinstance(event, ev.MessageUpdated) else (None, "deleted")
        rows.append((placed.stream, event.message_id, placed.id, *change, placed.precedence))
        changed.append(event.message_id)
    insert_rows(db, "message_changes", "stream, message_id, event_id, content, state, precedence", rows)
    _apply_changes_to_messages(db, events[0].stream, changed, sizes)


_LATEST = (
    "(SELECT {0} FROM message_changes n WHERE (n.stream, n.message_id) = (m.stream, m.id)"
    " AND n.{0} IS NOT NULL ORDER BY n.precedence DESC LIMIT 1)"
)
_CHANGED = (
    f"{_MESSAGE}, state,"
    f" coalesce({_LATEST.format('content')}, content), coalesce({_LATEST.format('state')}, 'current')"
    " FROM (SELECT *, 'current' AS state FROM messages UNION ALL SELECT * FROM withdrawn_messages) m"
    " WHERE type <> 'session_break' AND stream = ?1 AND id IN ("
    "   SELECT message_id FROM message_changes WHERE stream = ?1"
    "   AND message_id IN (SELECT value FROM json_each(?2))"
    " )"
)


def _apply_changes_to_messages(db: Connection, stream: str, ids: Sequence[str], sizes: ChunkSizes) -> None:
    """Give messages their latest content and state, regardless of the order in which these arrive."""
    if db.execute("SELECT 1 FROM message_changes WHERE stream = ? LIMIT 1", (stream,)).fetchone() is None:
        return
    for *row, before, content, after in db.execute(
        f"SELECT {_CHANGED}", (stream, encode_as_json(ids))
    ).fetchall():
        number, _, name, channel, chat_id, _, _, speaker, old, _, ts, *_ = row
        if (old, before) == (content, after):
            continue
        if before == "current":
            fulltext.remove_texts_from_index(
                db, fulltext.MESSAGES, [(number, speaker, old)] if old.strip() else []
            )
            index.remove_passages(db, index.MEMORY, "stream = ? AND message_id = ?", (stream, name))
        delete_rows(
            db, "messages" if before == "current" else "withdrawn_messages", "message_no = ?", (number,)
        )
        row[_CONTENT] = content
        if after == "current":
            insert_rows(db, "messages", _MESSAGE, [tuple(row)])
            fulltext.add_texts_to_index(
                db, fulltext.MESSAGES, [(number, speaker, content)] if content.strip() else []
            )
            whole = SourceText(stream, name, "conversation", content, ts, ts, f"{channel}:{chat_id}", speaker)
            index.add_passages(db, "message_id", [whole], sizes)
        else:
            insert_rows(db, "withdrawn_messages", f"{_MESSAGE}, state", [(*row, after)])


def store_chat_descriptions(db: Connection, events: Sequence[PositionedEvent], sizes: ChunkSizes) -> None:  # noqa: ARG001
    """Set the members of chat descriptions."""
    for placed in events:
        for member in ("title", "parent_chat", "folder", "project", "labels"):
            if (value := getattr(placed.event, member)) is not None:
                row = placed.make_row("channel", "chat_id", member=member, value=encode_as_json(value))
                upsert_row(db, "chat_descriptions", ("stream", "member"), row, newer_by="precedence")


def add_summaries(db: Connection, events: Sequence[PositionedEvent], sizes: ChunkSizes) -> None:
    """Add summaries with their passages."""
    rows, wholes = [], []
    for placed in events:
        event = cast(ev.SummaryWritten, placed.event)
        position = f"{placed.segment.filename}:{placed.line.offset}"
        row = placed.list_values("id", "channel", "chat_id", "from_message_id", "to_message_id", "content")
        is_distilled = event.extraction is not None
        rows.append((placed.stream, *row, is_distilled, position, placed.ts, *placed.place))
        wholes.append(_to_source_text(placed, event, "summary"))
    columns = f"{_EVENT}, from_message_id, to_message_id, content, is_distilled, position, {_PLACE}"
    insert_rows(db, "summaries", columns, rows)
    index.add_passages(db, "summary_id", wholes, sizes)


def add_extractions(db: Connection, events: Sequence[PositionedEvent], sizes: ChunkSizes) -> None:  # noqa: ARG001
    """Record the last distilled message of each conversation."""
    fields = ("id", "channel", "chat_id", "through_message_id")
    rows = [(each.stream, *each.list_values(*fields), each.ts, *each.place) for each in events]
    insert_rows(db, "extractions", f"{_EVENT}, through_message_id, {_PLACE}", rows)


def _to_source_text(
    placed: PositionedEvent, event: ev.Message | ev.SummaryWritten, source: str, label: str | None = None
) -> SourceText:
    chat = f"{event.channel}:{event.chat_id}"
    return SourceText(placed.stream, placed.id, source, event.content, placed.ts, placed.ts, chat, label)


def fold_daily_events(db: Connection, events: Sequence[PositionedEvent], sizes: ChunkSizes) -> None:
    """Add daily events with their passages, and record which ones were compressed."""
    rows, wholes, compressions, distillates = [], [], [], []
    for placed in events:
        event, stream, ts = placed.event, placed.stream, placed.ts
        if isinstance(event, ev.DailyEventRecorded):
            day = event.event_date or ts.partition("T")[0]
            chat = None if event.extraction is None else event.extraction.chat_id
            of_text = (event.summary, event.raw_tokens, ts)
            rows.append((stream, placed.id, day, event.channel, event.sender_id, chat, *of_text))
            # A question may name its day.
            whole = (stream, placed.id, "daily_event", event.summary, ts, f"{day}T00:00:00.000Z")
            wholes.append(SourceText(*whole, label=day))
        elif isinstance(event, ev.DailyEventsCompressed):
            compressions += [(stream, compressed, placed.id, ts) for compressed in dict.fromkeys(event.ids)]
            distillates.append((stream, placed.id, encode_as_json(event.memory_ids)))
    columns = "stream, id, event_date, channel, sender_id, chat_id, summary, raw_tokens, created_at"
    insert_rows(db, "daily_events", columns, rows)
    index.add_passages(db, "daily_event_id", wholes, sizes)
    insert_rows(db, "daily_compressions", "stream, daily_event_id, event_id, ts", compressions)
    insert_rows(db, "daily_distillates", "stream, event_id, memory_ids", distillates)


HANDLERS: Handlers = {
    add_messages: (ev.Message, ev.SessionBreak),
    change_messages: (ev.MessageUpdated, ev.MessageDeleted),
    store_chat_descriptions: (ev.ChatDescribed,),
    add_summaries: (ev.SummaryWritten,),
    add_extractions: (ev.ExtractionCompleted,),
    fold_daily_events: (ev.DailyEventRecorded, ev.DailyEventsCompressed),
}
