"""Facts: for each (chat_id, topic_key, kind, rank), the event with the highest precedence decides."""

from collections.abc import Sequence
from itertools import product
from typing import cast

from memlog.eventlog.events import CoreMemoryDeleted, CoreMemoryUpdated, FactRemoved, FactStored
from memlog.projector.limits import are_short_enough_to_structure, take_list_entries_within_limit
from memlog.projector.passages import index
from memlog.projector.passages.chunking import ChunkSizes
from memlog.projector.passages.index import SourceText
from memlog.projector.sqlite import Connection, Row, delete_rows, fetch_required_row, insert_rows, upsert_row
from memlog.projector.subjects.accepted import (
    Handlers,
    PositionedEvent,
    encode_as_json,
    find_highest_tombstone_precedence,
)

_KEY = ("chat_id", "topic_key", "kind", "rank")


def fold_facts(db: Connection, events: Sequence[PositionedEvent], sizes: ChunkSizes) -> None:
    """Store and remove facts with their passages, and record their source messages."""
    for placed in events:
        if isinstance(placed.event, FactRemoved):
            _remove_facts(db, placed, placed.event)
        else:
            _store_fact(db, placed, cast(FactStored, placed.event), sizes)


def _store_fact(db: Connection, placed: PositionedEvent, event: FactStored, sizes: ChunkSizes) -> None:
    chat = event.chat_id or ""
    if event.source_message_id:
        source = (placed.stream, placed.id, chat, event.source_message_id)
        insert_rows(db, "fact_sources", "stream, event_id, chat_id, source_message_id", [source])
    if event.rest is not None:
        _remove_facts(
            db, placed, FactRemoved(topic_key=event.topic_key, kind="ranked", chat_id=event.chat_id)
        )
    values = take_list_entries_within_limit(event)
    is_plain = not are_short_enough_to_structure(*values)
    precedence = placed.precedence
    for rank, value in enumerate(values, event.rank):
        removals = product([chat], [event.topic_key], [event.kind, None], [rank, None])
        if precedence < find_highest_tombstone_precedence(
            db, placed.stream, *(encode_as_json(key) for key in removals)
        ):
            continue
        of_event = ("topic_key", "kind", "source_message_id")
        row = placed.make_row(*of_event, chat_id=chat, rank=rank, value=value, updated_at=placed.ts)
        _replace_fact(db, row, sizes, is_plain=is_plain)


def _replace_fact(db: Connection, row: Row, sizes: ChunkSizes, *, is_plain: bool) -> None:
    """Store a fact with its passages, replacing an older one, unless a newer one has the same key."""
    of_key = f"FROM facts WHERE {' AND '.join(f'{name} = :{name}' for name in _KEY)}"
    before = db.execute(f"SELECT precedence, fact_id {of_key}", row).fetchone()
    if before is not None:
        if before[0] > row["precedence"]:
            return
        index.remove_passages(db, index.MEMORY, "fact_id = ?", (before[1],))
    upsert_row(db, "facts", _KEY, row)
    fact_id, content = fetch_required_row(db.execute(f"SELECT fact_id, content {of_key}", row))
    ts, chat = row["updated_at"], row["chat_id"]
    whole = SourceText(row["stream"], fact_id, "fact", content, ts, ts, chat, is_plain=is_plain)
    index.add_passages(db, "fact_id", [whole], sizes)


def _remove_facts(db: Connection, placed: PositionedEvent, event: FactRemoved) -> None:
    """Remove the facts named by `event` that are older than `placed`."""
    chat = event.chat_id or ""
    placed.write_tombstone(db, encode_as_json([chat, event.topic_key, event.kind, event.rank]))
    older = (
        "chat_id = ? AND topic_key = ? AND kind = coalesce(?, kind)"
        " AND rank = coalesce(?, rank) AND precedence < ?"
    )
    values = (chat, event.topic_key, event.kind, event.rank, placed.precedence)
    index.remove_passages(db, index.MEMORY, f"fact_id IN (SELECT fact_id FROM facts WHERE {older})", values)
    delete_rows(db, "facts", older, values)


# A profile, which memlog derives for each group of chats, never overrides other values.

PROFILE = "profile"
"""The source of values that memlog derives from memories."""


def fold_core_memory(db: Connection, events: Sequence[PositionedEvent], sizes: ChunkSizes) -> None:  # noqa: ARG001
    """Set and delete keys of the core memory."""
    for placed in events:
        event = cast("CoreMemoryUpdated | CoreMemoryDeleted", placed.event)
        is_profile, chat = event.source == PROFILE, event.chat_id or ""
        of_all = encode_as_json([event.section, event.key])
        own = encode_as_json([event.section, event.key, PROFILE, chat]) if is_profile else of_all
        if isinstance(event, CoreMemoryDeleted):
            placed.write_tombstone(db, own)
            older = (event.section, event.key, placed.precedence)
            # A profile removes only its own value.
            rest, values = (" AND is_profile AND chat_id = ?", (chat,)) if is_profile else ("", ())
            delete_rows(
                db, "core_values", f"section = ? AND key = ? AND precedence < ?{rest}", (*older, *values)
            )
        elif placed.precedence > find_highest_tombstone_precedence(db, placed.stream, of_all, own):
            origin = event.extraction
            row = placed.make_row(
                *("section", "key", "value", "source"),
                chat_id=chat if is_profile else "",
                is_profile=is_profile,
                memory_ids=encode_as_json([] if origin is None else origin.memory_ids),
                extraction_id=None if origin is None else origin.id,
                updated_at=placed.ts,
            )
            upsert_row(
                db, "core_values", ("section", "key", "chat_id", "is_profile"), row, newer_by="precedence"
            )


HANDLERS: Handlers = {
    fold_facts: (FactStored, FactRemoved),
    fold_core_memory: (CoreMemoryUpdated, CoreMemoryDeleted),
}
