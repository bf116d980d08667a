"""What derived things were made of: a scope shows them where it shows all of that."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from memlog.projector.rows import as_list
from memlog.projector.sqlite import Connection
from memlog.query.context.request import BuildContext
from memlog.query.event_index import LinePosition
from memlog.query.rows import POSITION

_CORE = f"""
SELECT c.section, c.key, c.value, c.event_id, c.chat_id, c.memory_ids, c.is_profile, {POSITION}
FROM core_memory c JOIN events e ON (e.stream, e.id) = (c.stream, c.event_id)
ORDER BY c.section DESC, c.key, c.precedence
"""

_KNOWN = "SELECT memory_id FROM memories WHERE memory_id IN (SELECT value FROM json_each(?))"

# From the events that set a field; of a merge on to what was compared, and of days to the daily events.
_CHATS = """
WITH RECURSIVE made (root, memory_id, stream, event_id) AS (
    SELECT v.memory_id, v.memory_id, v.stream, v.event_id FROM json_each(?1) j
    JOIN versions v ON (v.stream, v.memory_id) = ('memory', j.value)
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
SELECT w.root, coalesce(e.chat_id, coalesce(e.channel, '') || ':' || coalesce(e.sender_id, '')) FROM written w
JOIN daily_compressions c ON (c.stream, c.event_id) = (w.stream, w.extraction_id)
JOIN daily_events e ON (e.stream, e.id) = (c.stream, c.daily_event_id)
WHERE (e.chat_id, e.channel, e.sender_id) IS NOT (NULL, NULL, NULL)
"""


def chats_of(db: Connection, memory_ids: Iterable[str]) -> dict[str, set[str]]:
    """Return the chats that each memory comes from, and its own; without memories that are gone.

    A daily event with a channel alone is of a chat `<channel>:`, which no scope shows.
    """
    names = as_list([*memory_ids])
    found: dict[str, set[str]] = {memory_id: set() for (memory_id,) in db.execute(_KNOWN, (names,))}
    for memory_id, chat in db.execute(_CHATS, (names,)):
        found[memory_id].add(chat)
    return found


def chats_of_all(known: Mapping[str, set[str]], memory_ids: Sequence[str]) -> set[str] | None:
    """Return the chats that a thing comes from, of the memories that it was made of.

    None where nobody can say: it names none, or one is gone.

    known: of `chats_of`.
    """
    if not memory_ids or any(name not in known for name in memory_ids):
        return None
    return set().union(*(known[name] for name in memory_ids))


def of_others(db: Connection, request: BuildContext, memory_ids: Collection[str]) -> set[str]:
    """Return those of some memories that come from a chat which the scope of a request does not show."""
    if request.scope == "store" or not memory_ids:
        return set()
    own = {*request.own_chats}
    return {memory_id for memory_id, chats in chats_of(db, memory_ids).items() if not own.issuperset(chats)}


class CoreRow(NamedTuple):
    """A value of the core memory, and the event that set it."""

    section: str
    key: str
    value: str
    event_id: str
    position: LinePosition


class CoreRows(NamedTuple):
    """The values of the core memory that a scope shows, a row per key, the user's before the agent's.

    wide: how many values were made of what no single context of the scope may show.
    """

    shown: list[CoreRow]
    wide: int


def core_rows(db: Connection, own: AbstractSet[str] | None) -> CoreRows:
    """Return the core memory that a scope shows: of the values of a key, the newest.

    own: the chats of the scope; None for all of the store.
    """
    rows = db.execute(_CORE).fetchall()
    memory_ids = {row: json.loads(row[5]) for row in rows}
    known = {} if own is None else chats_of(db, {name for names in memory_ids.values() for name in names})
    shown: dict[tuple[str, str], CoreRow] = {}
    wide = 0
    for row in rows:
        section, key, value, event_id, chat, _, is_profile = row[:7]
        chats = chats_of_all(known, memory_ids[row]) if is_profile else set()
        if own is None or (chats is not None and own >= chats):
            shown[section, key] = CoreRow(section, key, value, event_id, LinePosition(*row[7:]))
        else:
            wide += not chat
    return CoreRows([*shown.values()], wide)
