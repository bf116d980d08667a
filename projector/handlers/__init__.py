"""What each event does to the read model.

A handler is order-free: whatever the order in which events arrive, it leaves the same rows. Where two
changes set the same thing the one with the greater precedence holds. It looks at no other stream's rows and
tolerates references to what does not exist. So events may be projected in batches of any size.
"""

from collections import defaultdict
from collections.abc import Callable, Container, Sequence

from memlog.eventlog.events import (
    CoreMemoryDeleted,
    CoreMemoryUpdated,
    DailyEventRecorded,
    DailyEventsCompressed,
    DocumentIndexed,
    DocumentRemoved,
    Event,
    ExtractionCompleted,
    FactRemoved,
    FactStored,
    MemoryAccessed,
    MemoryArchived,
    MemoryDeleted,
    MemorySaved,
    MemoryUpdated,
    Message,
    Redacted,
    SalienceDecayed,
    SessionBreak,
    SourceRegistered,
    SourceRemoved,
    SummaryWritten,
)
from memlog.eventlog.streams import CONVERSATIONS
from memlog.projector import budget, fulltext, passages
from memlog.projector.chunking import ChunkSizes
from memlog.projector.handlers import (
    conversations,
    core_memory,
    daily_events,
    documents,
    facts,
    memories,
)
from memlog.projector.handlers.placed import Placed
from memlog.projector.rows import insert
from memlog.projector.sqlite import Connection

VERSION = 8
"""Changes with any change to the rows that a handler makes; part of the projection id."""

Handler = Callable[[Connection, Sequence[Placed], ChunkSizes], None]

_HANDLERS: dict[Handler, tuple[type[Event], ...]] = {
    conversations.add_messages: (Message,),
    conversations.add_session_breaks: (SessionBreak,),
    conversations.add_summaries: (SummaryWritten,),
    conversations.add_extractions: (ExtractionCompleted,),
    memories.fold: (
        MemorySaved,
        MemoryUpdated,
        MemoryArchived,
        MemoryDeleted,
        MemoryAccessed,
        SalienceDecayed,
    ),
    daily_events.fold: (DailyEventRecorded, DailyEventsCompressed),
    core_memory.fold: (CoreMemoryUpdated, CoreMemoryDeleted),
    facts.fold: (FactStored, FactRemoved),
    documents.fold: (SourceRegistered, SourceRemoved, DocumentIndexed, DocumentRemoved),
}
_HANDLER_OF: dict[type[Event], Handler | None] = {
    kind: handler for handler, kinds in _HANDLERS.items() for kind in kinds
} | {Redacted: None}


def handle(db: Connection, events: Sequence[Placed], sizes: ChunkSizes) -> None:
    """Fold accepted events of one stream into the read model.

    `redacted` has no handler: it acts on lines, before they are events.
    """
    by_handler: defaultdict[Handler | None, list[Placed]] = defaultdict(list)
    _record_plain(db, events)
    for placed in events:
        by_handler[_HANDLER_OF[type(placed.event)]].append(placed)
    for handler, its_events in by_handler.items():
        if handler is not None:
            handler(db, its_events, sizes)


def _record_plain(db: Connection, events: Sequence[Placed]) -> None:
    """Note which events have texts that are indexed plainly, and why."""
    long = (placed for placed in events if placed.line.length > budget.LONGEST_NAMES)
    found = ((placed.stream, placed.id, budget.why_plain(placed.event)) for placed in long)
    insert(db, "plain_texts", ("stream", "id", "reason"), [row for row in found if row[2]])


def clear_stream(db: Connection, stream: str, *, keep: Container[str] = ()) -> None:
    """Remove every row that came from `stream`, so that it can be replayed.

    keep: tables whose rows stay.

    Rows of other kinds of streams are left alone: looking through all memories and documents for each of
    many conversations would be quadratic.
    """
    kind = CONVERSATIONS if stream.startswith(f"{CONVERSATIONS}/") else stream
    if kind == CONVERSATIONS:
        fulltext.remove_messages(db, stream)
    for shelf, where in _PASSAGES_OF.get(kind, ()):
        passages.remove(db, shelf, where, (stream,))
    for table in (*_TABLES_OF.get(kind, ()), *_TABLES_OF_ALL):
        if table not in keep:
            db.execute(f"DELETE FROM {table} WHERE stream = ?", (stream,))


_PASSAGES_OF = {
    # Each condition is that of an index.
    CONVERSATIONS: (
        (passages.MEMORY, "stream = ? AND message_id IS NOT NULL"),
        (passages.MEMORY, "stream = ? AND summary_id IS NOT NULL"),
    ),
    "memory": ((passages.MEMORY, "stream = ?"),),
    "facts": ((passages.MEMORY, "stream = ?"),),
    "documents": ((passages.MEMORY, "stream = ?"), (passages.DOCS, "stream = ?")),
}
_TABLES_OF = {
    CONVERSATIONS: ("messages", "summaries", "extractions"),
    "memory": (
        "versions",
        "tombstones",
        "decays",
        "memory_events",
        "memories",
        "daily_events",
        "daily_compressions",
        "daily_distillates",
    ),
    "core": ("core_memory", "tombstones"),
    "facts": ("facts", "fact_sources", "tombstones"),
    "documents": ("documents", "sources", "tombstones"),
}
"""By kind of stream the tables with rows of its events: an event in another stream is quarantined."""

_TABLES_OF_ALL = (
    "events",
    "conflicts",
    "duplicates",
    "redactions",
    "quarantine",
    "nul_runs",
    "plain_texts",
    "checkpoints",
)
