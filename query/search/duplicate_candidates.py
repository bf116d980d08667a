"""The memories that a new text may be a second saying of."""

from typing import Any, NamedTuple

import msgspec

from memlog.eventlog.events import MemoryKind
from memlog.projector.sqlite import Connection
from memlog.query.search.fts_query import parse

_ASKED = 2000
"""Characters of a text that are looked for: more words find nothing else."""


class ExistingMemory(NamedTuple):
    """A memory that stands, as far as it matters to another text.

    topic, chat: None where it has none. is_archived: whether it is kept and not searched.
    """

    memory_id: str
    content: str
    category: str
    kind: MemoryKind
    importance: float
    topic: str | None
    chat: str | None
    tags: list[str]
    updated_at: str
    is_archived: bool


_COLUMNS = (
    "m.memory_id, m.content, m.category, m.kind, m.importance, m.topic, m.chat_id, m.tags, m.updated_at,"
    " m.archived_at IS NOT NULL"
)


def standing(db: Connection, memory_id: str) -> ExistingMemory | None:
    """The memory of this id; None where none stands."""
    row = db.execute(f"SELECT {_COLUMNS} FROM memories m WHERE m.memory_id = ?", (memory_id,)).fetchone()
    return None if row is None else _standing_of(row)


def likely_memories(
    db: Connection, text: str, *, chat: str | None, any_chat: bool, lengths: tuple[int, int], limit: int
) -> list[ExistingMemory]:
    """The memories that share most words with `text`, best first; archived ones are not among them.

    chat: whose they are, `<channel>:<chat_id>`, or None for the store's own. any_chat: or anyone's.
    lengths: of their contents in characters, the least and the most. limit: at most so many.
    """
    expression = parse(text[:_ASKED].replace('"', " ")).expression
    if expression is None:
        return []
    rows = db.execute(
        # CROSS JOIN: the full text is asked once, not once for each memory of the chat. Of each memory the
        # first passage alone, and the contents of no more than are asked for: one may have 10 MB.
        f"SELECT {_COLUMNS} FROM (SELECT c.memory_id, bm25(memory_chunks_fts) AS score"
        " FROM memory_chunks_fts CROSS JOIN memory_chunks c CROSS JOIN memories l"
        " WHERE memory_chunks_fts MATCH ? AND c.chunk_no = memory_chunks_fts.rowid AND c.chunk_index = 0"
        " AND c.end_char <= ? AND (? OR c.chat_id IS ?) AND l.memory_id = c.memory_id"
        " AND length(l.content) BETWEEN ? AND ? ORDER BY score, c.memory_id LIMIT ?) found"
        " JOIN memories m ON m.memory_id = found.memory_id ORDER BY found.score, m.memory_id",
        (expression, lengths[1], any_chat, chat, *lengths, limit),
    )
    return [_standing_of(row) for row in rows]


def _standing_of(row: tuple[Any, ...]) -> ExistingMemory:
    found = ExistingMemory(*row)
    return found._replace(
        tags=msgspec.json.decode(row[7], type=list[str]), is_archived=bool(found.is_archived)
    )
