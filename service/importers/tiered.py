"""The database of the tiered memory engine: memories with their tiers, and daily events."""

from collections.abc import Iterator
from typing import Any

from memlog.eventlog.envelope import Event
from memlog.eventlog.events import (
    CoreMemoryUpdated,
    DailyEventRecorded,
    DailyEventsCompressed,
    MemoryAccessed,
    MemoryArchived,
    MemorySaved,
    MemoryUpdated,
    Message,
)
from memlog.service.importers import ForeignData, Record, Skipped, Used, records

Row = dict[str, Any]

_CORE = 1
_SOURCE = "migration"
_MEMORIES = (
    *("id", "tier", "project", "topic", "category", "content", "importance", "source"),
    *("created_at", "updated_at", "last_accessed", "access_count", "is_archived"),
    *("embedding", "embedding_dim", "embedding_model"),
)
_DAYS = ("id", "event_date", "channel", "sender_id", "summary", "raw_tokens", "is_compressed", "created_at")
_BUFFER = ("id", "channel", "sender_id", "role", "content", "token_count", "created_at")


def read(source: ForeignData) -> Iterator[Record]:
    """The tables `memories`, `daily_events`, `extraction_buffer`. The project of a memory becomes a tag."""
    for path in source.files("*.db", "*.sqlite", "*.sqlite3"):
        yield from records(source, path, "memories", _MEMORIES, _memory)
        yield from records(source, path, "extraction_buffer", _BUFFER, _message, is_optional=True)
        yield from records(source, path, "daily_events", _DAYS, _day)


def _memory(source: ForeignData, row: Row) -> Record:
    content = row["content"] or ""
    if not content.strip():
        return Skipped("empty")
    name = f"tiered/{row['id']}"
    created, updated = source.time(row["created_at"]), source.time(row["updated_at"])
    if row["tier"] == _CORE:
        key = row["topic"] or row["category"] or name
        set_at = updated or created
        return Used(
            [
                CoreMemoryUpdated(
                    id=name, ts=set_at, section="user", key=key, value=content, source="migration"
                )
            ]
        )
    events: list[Event] = [
        MemorySaved(
            id=name,
            memory_id=name,
            ts=created,
            content=content,
            category=row["category"] or "other",
            importance=min(1.0, max(0.0, row["importance"] or 0.0)),
            source=row["source"] or _SOURCE,
            topic=row["topic"] or None,
            tags=[row["project"]] if row["project"] else None,
        )
    ]
    if updated is not None and updated != created:
        events.append(MemoryUpdated(id=f"{name}/updated", ts=updated, memory_id=name, content=content))
    if row["access_count"] and row["last_accessed"]:
        accessed = source.time(row["last_accessed"])
        events.append(MemoryAccessed(id=f"{name}/accessed", ts=accessed, memory_ids=[name]))
    if row["is_archived"]:
        events.append(MemoryArchived(id=f"{name}/archived", ts=updated or created, memory_id=name))
    return Used(events)


def _day(source: ForeignData, row: Row) -> Record:
    summary = row["summary"] or ""
    if not summary.strip():
        return Skipped("empty")
    name = f"tiered/day/{row['id']}"
    events: list[Event] = [
        DailyEventRecorded(
            id=name,
            ts=source.time(row["created_at"] or row["event_date"]),
            event_date=row["event_date"][:10],
            channel=row["channel"] or None,
            sender_id=row["sender_id"] or None,
            summary=summary,
            raw_tokens=row["raw_tokens"],
        )
    ]
    if row["is_compressed"]:
        events.append(DailyEventsCompressed(id=f"{name}/compressed", ids=[name]))
    return Used(events)


def _message(source: ForeignData, row: Row) -> Record:
    if not (row["content"] or "").strip():
        return Skipped("empty")
    event = Message(
        id=f"tiered/buffer/{row['id']}",
        ts=source.time(row["created_at"]),
        channel=row["channel"] or "tiered",
        chat_id=str(row["sender_id"] or "-"),
        role=row["role"],
        content=row["content"],
    )
    return Used([event])
