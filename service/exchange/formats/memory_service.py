"""MemoryService's index.db, with a Markdown file for each memory."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from memlog.eventlog.events import Event, MemorySaved, MemoryUpdated
from memlog.service.exchange.formats import (
    ForeignData,
    Record,
    Skipped,
    Unreadable,
    Used,
    access_events,
    read_records,
)

_COLUMNS = (
    *("id", "title", "category", "created_at", "updated_at", "last_accessed", "access_count"),
    *("salience", "file_path"),
)

SOURCES = ("**/index.db",)


def read(source: ForeignData) -> Iterator[Record]:
    """Yield the rows of the table `memories`, each with the text of its file below the database's folder."""
    for path in source.find_files(*SOURCES):
        yield from read_records(source, path, "memories", _COLUMNS, partial(_memory_record, path.parent))


def _memory_record(folder: Path, source: ForeignData, row: dict[str, Any]) -> Record:
    content = _read_content(source, folder, row)
    if isinstance(content, Unreadable):
        return content
    if not content.strip():
        return Skipped("empty")
    name = f"memory-service{source.suffix}/{row['id']}"
    created, updated = source.parse_time(row["created_at"]), source.parse_time(row["updated_at"])
    saved = MemorySaved(
        id=name,
        memory_id=name,
        ts=created or updated,
        title=row["title"],
        content=content,
        category=row["category"] or "other",
        source="memory-service",
    )
    changes: list[Event] = []
    resets: list[Event] = []
    if updated is not None and updated != created:
        changes.append(MemoryUpdated(id=f"{name}/updated", ts=updated, memory_id=name, content=content))
    if row["salience"] is not None:
        salience = min(1.0, max(0.0, row["salience"]))
        faded = MemoryUpdated(id=f"{name}/salience", ts=updated or created, memory_id=name, salience=salience)
        (changes if salience < 1 else resets).append(faded)
    changes += access_events(
        name, row["access_count"], source.parse_time(row["last_accessed"]), updated or created
    )
    return Used([saved], changes, resets, created)


def _read_content(source: ForeignData, folder: Path, row: dict[str, Any]) -> str | Unreadable:
    """Return the text of a memory's file, which is below the database's folder.

    The stored path is relative to a folder further up, as in `data/memory/context/a1.md`. The folders may
    have moved, so only the end of the path is compared.
    """
    parts = Path(row["file_path"]).parts
    for start in range(max(1, len(parts) - 1)):
        path = folder.joinpath(*parts[start:])
        if source.is_file_below(folder, path):
            return source.read_text(path)
    return Unreadable(f"memories {row['id']}: {row['file_path']}", "there is no such file")
