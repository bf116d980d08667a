"""The tiered memory engine's database: memories with their tiers, and daily events."""

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from memlog.eventlog.events import (
    CoreMemoryUpdated,
    DailyEventRecorded,
    DailyEventsCompressed,
    Event,
    MemoryArchived,
    MemorySaved,
    MemoryUpdated,
    Message,
)
from memlog.service.exchange.formats import ForeignData, Record, Skipped, Used, access_events, read_records

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

SOURCES = ("*.db", "*.sqlite", "*.sqlite3")


def read(source: ForeignData) -> Iterator[Record]:
    """Yield the rows of `memories`, `daily_events` and `extraction_buffer`. Projects become tags."""
    for path in source.find_files(*SOURCES):
        yield from read_records(source, path, "memories", _MEMORIES, _memory_record, text="content")
        yield from read_records(
            source, path, "extraction_buffer", _BUFFER, _message_record, text="content", is_optional=True
        )
        yield from read_records(source, path, "daily_events", _DAYS, _day_record, text="summary")


def _memory_record(source: ForeignData, row: Row) -> Record:
    content = row["content"]
    name = f"tiered{source.suffix}/{row['id']}"
    created, updated = source.parse_time(row["created_at"]), source.parse_time(row["updated_at"])
    if row["tier"] == _CORE:
        if row["is_archived"]:
            return Skipped("archived")
        # The suffix keeps the values of two sources, possibly of two people, separate.
        key = f"{row['topic'] or row['category'] or name}{source.suffix}"
        value = CoreMemoryUpdated(
            id=name, ts=created or updated, section="user", key=key, value=content, source=_SOURCE
        )
        set_again = (
            [replace(value, id=f"{name}/updated", ts=updated)] if updated not in (None, created) else []
        )
        return Used([value], set_again, created=created)
    saved = MemorySaved(
        id=name,
        memory_id=name,
        ts=created or updated,
        content=content,
        category=row["category"] or "other",
        importance=min(1.0, max(0.0, row["importance"] or 0.0)),
        source=row["source"] or _SOURCE,
        topic=row["topic"] or None,
        tags=[row["project"]] if row["project"] else None,
    )
    changes: list[Event] = []
    if updated is not None and updated != created:
        changes.append(MemoryUpdated(id=f"{name}/updated", ts=updated, memory_id=name, content=content))
    changes += access_events(
        name, row["access_count"], source.parse_time(row["last_accessed"]), updated or created
    )
    changed = updated or created
    if row["is_archived"]:
        changes.append(MemoryArchived(id=f"{name}/archived", ts=changed, memory_id=name))
        return Used([saved], changes, created=created)
    return Used([saved], changes, [replace(saved, id=f"{name}/restored", ts=changed)], created)


def _day_record(source: ForeignData, row: Row) -> Record:
    name = f"tiered{source.suffix}/day/{row['id']}"
    recorded = DailyEventRecorded(
        id=name,
        ts=source.parse_time(row["created_at"] or row["event_date"]),
        event_date=row["event_date"][:10],
        channel=row["channel"] or None,
        sender_id=row["sender_id"] or None,
        summary=row["summary"],
        raw_tokens=row["raw_tokens"],
    )
    compressed = [DailyEventsCompressed(id=f"{name}/compressed", ids=[name])] if row["is_compressed"] else []
    return Used([recorded], compressed, created=recorded.ts)


def _message_record(source: ForeignData, row: Row) -> Record:
    event = Message(
        id=f"tiered{source.suffix}/buffer/{row['id']}",
        ts=source.parse_time(row["created_at"]),
        channel=row["channel"] or f"tiered{source.suffix}",
        chat_id=str(row["sender_id"] or "-"),
        role=row["role"],
        content=row["content"],
    )
    return Used([event], created=event.ts)
