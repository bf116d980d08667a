"""Facts: of each (chat_id, topic_key, kind, rank) the greatest event that stored or removed it decides."""

from collections.abc import Sequence
from itertools import product
from typing import cast

from memlog.eventlog.events import FactRemoved, FactStored
from memlog.projector.chunking import ChunkSizes
from memlog.projector.handlers.placed import Placed, as_json, buried, bury
from memlog.projector.rows import upsert
from memlog.projector.sqlite import Connection


def fold(db: Connection, events: Sequence[Placed], sizes: ChunkSizes) -> None:  # noqa: ARG001
    """Store and remove facts."""
    for placed in events:
        if isinstance(placed.event, FactRemoved):
            _remove(db, placed, placed.event)
        else:
            _store(db, placed, cast(FactStored, placed.event))


def _store(db: Connection, placed: Placed, said: FactStored) -> None:
    chat = said.chat_id or ""
    removals = product([chat], [said.topic_key], [said.kind, None], [said.rank, None])
    if placed.order < buried(db, placed.stream, *(as_json(key) for key in removals)):
        return
    row = {
        "chat_id": chat,
        "topic_key": said.topic_key,
        "kind": said.kind,
        "rank": said.rank,
        "stream": placed.stream,
        "event_id": said.id,
        "value": said.value,
        "source_message_id": said.source_message_id,
    }
    key = ("chat_id", "topic_key", "kind", "rank")
    upsert(db, "facts", key, row | placed.order_as("updated_at"), newer_by="updated_at")


def _remove(db: Connection, placed: Placed, said: FactRemoved) -> None:
    chat = said.chat_id or ""
    bury(db, as_json([chat, said.topic_key, said.kind, said.rank]), placed)
    db.execute(
        "DELETE FROM facts WHERE chat_id = ? AND topic_key = ? AND kind = coalesce(?, kind)"
        " AND rank = coalesce(?, rank) AND (updated_at, segment_no, offset) < (?, ?, ?)",
        (chat, said.topic_key, said.kind, said.rank, *placed.order),
    )
