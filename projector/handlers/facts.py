"""Facts: of each (chat_id, topic_key, kind, rank) the greatest event that stored or removed it decides."""

from collections.abc import Sequence
from itertools import product
from typing import cast

from memlog.eventlog.events import FactRemoved, FactStored
from memlog.projector.handlers.accepted import Placed, as_json, buried, bury
from memlog.projector.limits import entries, is_structured
from memlog.projector.passages import index
from memlog.projector.passages.chunking import ChunkSizes
from memlog.projector.passages.index import Whole
from memlog.projector.rows import Row, delete, insert, upsert
from memlog.projector.sqlite import Connection, required_row

_KEY = ("chat_id", "topic_key", "kind", "rank")


def fold(db: Connection, events: Sequence[Placed], sizes: ChunkSizes) -> None:
    """Store and remove facts, and what is searched of them, and keep which messages said them."""
    for placed in events:
        if isinstance(placed.event, FactRemoved):
            _clear(db, placed, placed.event)
        else:
            _store(db, placed, cast(FactStored, placed.event), sizes)


def _store(db: Connection, placed: Placed, said: FactStored, sizes: ChunkSizes) -> None:
    chat = said.chat_id or ""
    if said.source_message_id:
        source = (placed.stream, placed.id, chat, said.source_message_id)
        insert(db, "fact_sources", ("stream", "event_id", "chat_id", "source_message_id"), [source])
    if said.rest is not None:
        _clear(db, placed, FactRemoved(topic_key=said.topic_key, kind="ranked", chat_id=said.chat_id))
    values = entries(said)
    is_plain = not is_structured(*values)
    precedence = placed.precedence
    for rank, value in enumerate(values, said.rank):
        removals = product([chat], [said.topic_key], [said.kind, None], [rank, None])
        if precedence < buried(db, placed.stream, *(as_json(key) for key in removals)):
            continue
        row = {
            "chat_id": chat,
            "topic_key": said.topic_key,
            "kind": said.kind,
            "rank": rank,
            "stream": placed.stream,
            "event_id": said.id,
            "value": value,
            "source_message_id": said.source_message_id,
            "updated_at": placed.ts,
            "precedence": precedence,
        }
        _put(db, row, sizes, is_plain=is_plain)


def _put(db: Connection, row: Row, sizes: ChunkSizes, *, is_plain: bool) -> None:
    """Put a fact in the place of an older one of its key, with its passages; none where that is newer."""
    of_key = f"FROM facts WHERE {' AND '.join(f'{name} = :{name}' for name in _KEY)}"
    standing = db.execute(f"SELECT precedence, fact_id {of_key}", row).fetchone()
    if standing is not None:
        if standing[0] > row["precedence"]:
            return
        index.remove(db, index.MEMORY, "fact_id = ?", (standing[1],))
    upsert(db, "facts", _KEY, row)
    fact_id, content = required_row(db.execute(f"SELECT fact_id, content {of_key}", row))
    ts, chat = row["updated_at"], row["chat_id"]
    whole = Whole(row["stream"], fact_id, "fact", chat, None, ts, ts, content, is_plain)
    index.add(db, "fact_id", [whole], sizes)


def _clear(db: Connection, placed: Placed, said: FactRemoved) -> None:
    """Leave nothing that is older than `placed` of what `said` names."""
    chat = said.chat_id or ""
    bury(db, as_json([chat, said.topic_key, said.kind, said.rank]), placed)
    older = (
        "chat_id = ? AND topic_key = ? AND kind = coalesce(?, kind)"
        " AND rank = coalesce(?, rank) AND precedence < ?"
    )
    values = (chat, said.topic_key, said.kind, said.rank, placed.precedence)
    index.remove(db, index.MEMORY, f"fact_id IN (SELECT fact_id FROM facts WHERE {older})", values)
    delete(db, "facts", older, values)
