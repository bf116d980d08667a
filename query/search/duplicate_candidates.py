"""The memories that a new text may repeat."""

from memlog.projector.rows import as_list
from memlog.projector.sqlite import Connection
from memlog.query.memories import Memory, select
from memlog.query.search.fts_query import parse

_READ = 2000
"""Characters of a text whose words are looked up: more words find nothing else."""


def likely_memories(
    db: Connection, text: str, *, chat: str | None, any_chat: bool, lengths: tuple[int, int], limit: int
) -> list[Memory]:
    """At most `limit` memories that share the most words with `text`, best first, without archived ones.

    chat: of the memories, `<channel>:<chat_id>`; None for the store's own scope. any_chat: of every chat.
    lengths: the least and the greatest length of their contents, in characters.
    """
    expression = parse(text[:_READ].replace('"', " ")).expression
    if expression is None:
        return []
    rows = db.execute(
        # CROSS JOIN: the full text is asked once, not once for each memory of the chat. Of each memory the
        # first passage alone.
        "SELECT c.memory_id FROM memory_chunks_fts CROSS JOIN memory_chunks c CROSS JOIN memories l"
        " WHERE memory_chunks_fts MATCH ? AND c.chunk_no = memory_chunks_fts.rowid AND c.chunk_index = 0"
        " AND c.end_char <= ? AND (? OR c.chat_id IS ?) AND l.memory_id = c.memory_id"
        " AND length(l.content) BETWEEN ? AND ? ORDER BY bm25(memory_chunks_fts), c.memory_id LIMIT ?",
        (expression, lengths[1], any_chat, chat, *lengths, limit),
    )
    ids = [memory_id for (memory_id,) in rows]
    # Read behind the limit: a content may have 10 MB.
    found = select(db, "WHERE m.memory_id IN (SELECT value FROM json_each(?))", (as_list(ids),))
    return sorted(found, key=lambda memory: ids.index(memory.memory_id))
