"""The effects of each event on the read model.

Handlers do not depend on the order of events: any order leaves the same rows. Of two changes to the same
thing, the one with the higher precedence wins. Handlers read no rows of other streams and tolerate dangling
references, so events may be projected in batches of any size.
"""

from collections import defaultdict
from collections.abc import Container, Sequence

from memlog.eventlog.events import Event, Redacted
from memlog.eventlog.log.layout import CONVERSATIONS
from memlog.projector import limits, schema
from memlog.projector.passages import fulltext, index
from memlog.projector.passages.chunking import ChunkSizes
from memlog.projector.sqlite import Connection, delete_rows, insert_rows
from memlog.projector.subjects import (
    contexts,
    conversations,
    documents,
    extractions,
    facts,
    imports,
    memories,
)
from memlog.projector.subjects.accepted import Handler, PositionedEvent

VERSION = 21
"""Increment whenever handlers write different rows; part of the projection id."""

_SUBJECTS = (conversations, memories, contexts, extractions, facts, documents, imports)
_HANDLER_OF: dict[type[Event], Handler | None] = {
    kind: handler for subject in _SUBJECTS for handler, kinds in subject.HANDLERS.items() for kind in kinds
} | {Redacted: None}


def fold_events(db: Connection, events: Sequence[PositionedEvent], sizes: ChunkSizes) -> None:
    """Fold accepted events of one stream; `redacted` has no handler, since it acts on lines."""
    by_handler: defaultdict[Handler | None, list[PositionedEvent]] = defaultdict(list)
    _record_plain_events(db, events)
    for placed in extractions.hold_open_and_release_closed(db, events):
        by_handler[_HANDLER_OF[type(placed.event)]].append(placed)
    for handler, its_events in by_handler.items():
        if handler is not None:
            handler(db, its_events, sizes)


def _record_plain_events(db: Connection, events: Sequence[PositionedEvent]) -> None:
    """Record which events are indexed as plain text, and why."""
    long = (placed for placed in events if placed.line.length > limits.LONGEST_NAMES)
    found = ((placed.stream, placed.id, limits.why_indexed_plainly(placed.event)) for placed in long)
    insert_rows(db, "plain_texts", "stream, id, reason", [row for row in found if row[2]])


def clear_stream(db: Connection, stream: str, *, keep: Container[str] = ()) -> None:
    """Remove all rows of `stream` before a replay, except from the tables in `keep`."""
    if stream == imports.STREAM:
        imports.mark_streams_with_hidden_events(db)
    kind = CONVERSATIONS if stream.startswith(f"{CONVERSATIONS}/") else stream
    if kind == CONVERSATIONS:
        fulltext.remove_messages_from_index(db, stream)
    for shelf, where in _PASSAGES_OF.get(kind, ()):
        index.remove_passages(db, shelf, where, (stream,))
    for name, table in schema.list_tables().items():
        stays = name in keep or name in _CLEARED_BEFORE or _ONLY_STREAM_OF.get(name, stream) != stream
        if "stream" in table.columns and not stays:
            delete_rows(db, name, "stream = ?", (stream,))


_PASSAGES_OF = {
    # Each condition matches an index.
    CONVERSATIONS: (
        (index.MEMORY, "stream = ? AND message_id IS NOT NULL"),
        (index.MEMORY, "stream = ? AND summary_id IS NOT NULL"),
    ),
    "memory": ((index.MEMORY, "stream = ?"),),
    "facts": ((index.MEMORY, "stream = ?"),),
    "documents": ((index.MEMORY, "stream = ?"), (index.DOCS, "stream = ?")),
}
_CLEARED_BEFORE = {shelf.chunks for shelf in index.SHELVES}
"""Passage tables, which are cleared beforehand, together with their full text and vectors."""

_ONLY_STREAM_OF = {
    "memory_events": "memory",
    "memories": "memory",
    "named_in_contexts": "memory",
    "best_in_contexts": "memory",
    "model_failures": "memory",
    "core_values": "core",
    "facts": "facts",
    "sources": "documents",
    "documents": "documents",
    "hidden_events": "imports",
}
"""Tables without a stream index, each with the only stream that has rows in it: scanning all memories for
each of many conversations would be quadratic."""
