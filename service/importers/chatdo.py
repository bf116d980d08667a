"""The databases of the ChatDO memory service: facts, chat messages and sources."""

from collections.abc import Iterator
from typing import Any, Literal

from memlog.eventlog.events import FactStored, Message
from memlog.service.importers import ForeignData, Record, Skipped, Used, records

Row = dict[str, Any]

_FACTS = (
    *("id", "project_id", "chat_id", "topic_key", "kind", "rank", "value"),
    *("source_message_id", "created_at"),
)
_MESSAGES = (
    *("id", "source_id", "project_id", "chat_id", "thread_id", "message_id", "role", "content"),
    *("timestamp", "created_at", "message_index", "file_id"),
)
_ROLES = ("user", "assistant", "system", "tool")
_CHANNEL = "chatdo"


def read(source: ForeignData) -> Iterator[Record]:
    """The facts of `tracking.sqlite`, the messages of each `index.sqlite`. Its sources are folders of another
    machine, whose files are indexed anew: they are counted as structure."""
    for path in source.files("**/tracking.sqlite", "**/index.sqlite"):
        if path.name != "index.sqlite":
            yield from records(source, path, "facts", _FACTS, _fact)
        if path.name != "tracking.sqlite":
            yield from records(source, path, "chat_messages", _MESSAGES, _message)
            yield from records(source, path, "sources", (), lambda *_: Skipped("structure"))


def _fact(source: ForeignData, row: Row) -> Record:
    if not (row["value"] or "").strip():
        return Skipped("empty")
    rank = row["rank"] or 0
    kind: Literal["ranked", "single"] = "ranked" if rank else "single"
    names = (row["project_id"], row["chat_id"], row["topic_key"], kind, rank)
    channel = f"{_CHANNEL}{source.suffix}"
    # What two sources say of no chat would replace each other.
    chat = row["chat_id"] or (source.suffix and row["project_id"])
    event = FactStored(
        id="/".join([f"{channel}/fact", *(str(name) for name in names)]),
        ts=source.time(row["created_at"]),
        topic_key=row["topic_key"],
        value=row["value"],
        kind=kind,
        rank=rank,
        chat_id=f"{channel}:{chat}" if chat else None,
        source_message_id=row["source_message_id"],
    )
    return Used([event])  # its time is that of its value


def _message(source: ForeignData, row: Row) -> Record:
    role, content = row["role"], row["content"] or ""
    if not content.strip():
        return Skipped("empty")
    if role not in _ROLES:
        return Skipped("unsupported")
    chat = row["chat_id"] or row["thread_id"]
    name = row["message_id"] or row["id"]
    channel = f"{_CHANNEL}{source.suffix}"
    event = Message(
        id=f"{channel}/{row['source_id'] or row['project_id']}/{chat}/{name}",
        ts=source.time(row["timestamp"] or row["created_at"]),
        channel=channel,
        chat_id=str(chat),
        role=role,
        content=content,
    )
    return Used([event], created=event.ts)
