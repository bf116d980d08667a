"""What derived things were made of: a scope shows them where it shows all of that."""

from collections.abc import Collection, Iterable

from memlog.projector.rows import as_list
from memlog.projector.sqlite import Connection
from memlog.query.context.request import BuildContext

# From the event with the content: of a merge to the contents that were compared, of days to the daily events.
_CHATS = """
WITH RECURSIVE made (root, memory_id, stream, event_id) AS (
    SELECT memory_id, memory_id, stream, event_id FROM memories
    WHERE memory_id IN (SELECT value FROM json_each(?1))
    UNION
    SELECT m.root, i.value, m.stream, v.value FROM made m
    JOIN memory_events t USING (memory_id, stream, event_id)
    JOIN merge_decisions d
        ON (d.stream, d.extraction_id, d.memory_id) = (t.stream, t.extraction_id, t.memory_id)
    JOIN json_each(d.memory_ids) i JOIN json_each(d.event_ids) v ON v.key = i.key
),
written (root, memory_id, stream, extraction_id, chat_id) AS (
    SELECT m.root, m.memory_id, m.stream, t.extraction_id, t.chat_id FROM made m
    JOIN memory_events t USING (memory_id, stream, event_id)
)
SELECT root, chat_id FROM written WHERE chat_id IS NOT NULL
UNION
SELECT w.root, c.chat_id FROM written w
JOIN closed_extractions c ON (c.stream, c.id) = (w.stream, w.extraction_id) WHERE c.chat_id IS NOT NULL
UNION
SELECT w.root, m.chat_id FROM written w JOIN memories m USING (memory_id) WHERE m.chat_id IS NOT NULL
UNION
SELECT w.root, coalesce(e.chat_id, e.channel || ':' || e.sender_id) FROM written w
JOIN daily_compressions c ON (c.stream, c.event_id) = (w.stream, w.extraction_id)
JOIN daily_events e ON (e.stream, e.id) = (c.stream, c.daily_event_id)
WHERE coalesce(e.chat_id, e.channel || ':' || e.sender_id) IS NOT NULL
"""


def chats_of(db: Connection, memory_ids: Iterable[str]) -> dict[str, set[str]]:
    """Return the chats that the content of each memory comes from, and its own, if there are any."""
    found: dict[str, set[str]] = {}
    for memory_id, chat in db.execute(_CHATS, (as_list([*memory_ids]),)):
        found.setdefault(memory_id, set()).add(chat)
    return found


def of_others(db: Connection, request: BuildContext, memory_ids: Collection[str]) -> set[str]:
    """Return those of some memories that come from a chat which the scope of a request does not show."""
    if request.scope == "store" or not memory_ids:
        return set()
    own = {*request.own_chats}
    return {memory_id for memory_id, chats in chats_of(db, memory_ids).items() if not own.issuperset(chats)}
