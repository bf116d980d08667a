"""What derived things were made of: a scope shows them where it shows all of that."""

from collections import defaultdict
from collections.abc import Collection, Iterable
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from memlog.projector.rows import as_list
from memlog.projector.sqlite import Connection
from memlog.query.context.request import BuildContext
from memlog.query.event_index import LinePosition
from memlog.query.rows import POSITION

_CORE = f"""
SELECT c.section, c.key, c.value, c.event_id, c.chat_id, c.extraction_id, c.is_profile, {POSITION}
FROM core_memory c JOIN events e ON (e.stream, e.id) = (c.stream, c.event_id)
ORDER BY c.section DESC, c.key, c.precedence
"""

_KNOWN = "SELECT memory_id FROM memories WHERE memory_id IN (SELECT value FROM json_each(?))"

_OF_MEMORIES = """
SELECT v.memory_id, v.memory_id, v.stream, v.event_id FROM json_each(?1) j
JOIN current_versions v ON (v.stream, v.memory_id) = ('memory', j.value)
"""
"""The events that set a field of some memories."""

_OF_PROFILES = """
SELECT x.extraction_id, t.memory_id, t.stream, t.event_id FROM memory_events t
JOIN compared_contents x ON (x.stream, x.event_id) = ('core', t.event_id)
WHERE x.extraction_id IN (SELECT value FROM json_each(?1))
"""
"""The events whose contents some profiles were made of."""

_MISSING = """
SELECT c.id, c.chat_id, (SELECT count(*) FROM compared_contents x
    WHERE (x.stream, x.extraction_id) = (c.stream, c.id)
    AND NOT EXISTS (SELECT 1 FROM events e WHERE (e.stream, e.id) = ('memory', x.event_id)))
FROM closed_extractions c WHERE c.stream = 'core' AND c.id IN (SELECT value FROM json_each(?1))
"""
"""The group of each profile, and how many of the events that it was made of are gone."""

# Of a merge on to what was compared, and of days to the daily events.
_MADE = """
WITH RECURSIVE made (root, memory_id, stream, event_id) AS (
    {seeds}
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
"""

_CHATS = f"""{_MADE}
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


# Which messages a daily event was distilled from, nobody has noted: some of its chat.
_ORIGINS = f"""{_MADE},
days (root, chat, daily_event_id, chat_id) AS (
    SELECT w.root, e.channel || ':', e.id, e.chat_id FROM written w
    JOIN daily_compressions c ON (c.stream, c.event_id) = (w.stream, w.extraction_id)
    JOIN daily_events e ON (e.stream, e.id) = (c.stream, c.daily_event_id)
)
SELECT m.root, k.chat_id, v.value FROM made m LEFT JOIN memories k USING (memory_id)
JOIN json_each(json_array(m.memory_id, m.event_id)) v
UNION
SELECT w.root, x.chat_id, x.message_id FROM written w JOIN extracted_messages x USING (stream, extraction_id)
UNION
SELECT root, chat, daily_event_id FROM days
UNION
SELECT d.root, x.chat_id, x.message_id FROM days d JOIN extracted_messages x USING (chat_id)
"""


_DISTILLED = """
SELECT chat_id, chat_id, message_id FROM extracted_messages WHERE chat_id IN (SELECT value FROM json_each(?))
"""


class SourceEvent(NamedTuple):
    """A message, a daily event, a memory or an event with its content, and its channel."""

    channel: str | None
    event_id: str


def origins_of(db: Connection, memory_ids: Iterable[str]) -> dict[str, set[SourceEvent]]:
    """Return what each memory was made of, and itself."""
    return _origins(db, _OF_MEMORIES, memory_ids)


def origins_of_profiles(db: Connection, extraction_ids: Iterable[str]) -> dict[str, set[SourceEvent]]:
    """Return what each profile was made of, also what none of its values cites."""
    return _origins(db, _OF_PROFILES, extraction_ids)


def origins_of_days(db: Connection, chats: Iterable[str]) -> dict[str, set[SourceEvent]]:
    """Return the messages that were distilled of each chat."""
    return _by_root(db.execute(_DISTILLED, (as_list([*chats]),)))


def _origins(db: Connection, seeds: str, names: Iterable[str]) -> dict[str, set[SourceEvent]]:
    return _by_root(db.execute(_ORIGINS.format(seeds=seeds), (as_list([*names]),)))


def _by_root(rows: Iterable[tuple[str, str | None, str]]) -> dict[str, set[SourceEvent]]:
    found: defaultdict[str, set[SourceEvent]] = defaultdict(set)
    for root, chat, event_id in rows:
        found[root].add(SourceEvent(chat and chat.partition(":")[0], event_id))
    return found


def chats_of(db: Connection, memory_ids: Iterable[str]) -> dict[str, set[str]]:
    """Return the chats that each memory comes from, and its own; without memories that are gone.

    A daily event with a channel alone is of a chat `<channel>:`, which no scope shows.
    """
    names = as_list([*memory_ids])
    found: dict[str, set[str]] = {memory_id: set() for (memory_id,) in db.execute(_KNOWN, (names,))}
    for memory_id, chat in db.execute(_CHATS.format(seeds=_OF_MEMORIES), (names,)):
        found[memory_id].add(chat)
    return found


def chats_of_profiles(db: Connection, extraction_ids: Iterable[str]) -> dict[str, set[str]]:
    """Return the chats that each profile was made of, also those that none of its values cites: a model may
    repeat what it does not name. Without profiles of which nobody can say that.
    """
    names = as_list([*extraction_ids])
    found: dict[str, set[str]] = {}
    for name, chat, missing in db.execute(_MISSING, (names,)):
        if chat is not None or not missing:
            found[name] = set() if chat is None else {chat}
    for name, chat in db.execute(_CHATS.format(seeds=_OF_PROFILES), (names,)):
        if name in found:
            found[name].add(chat)
    return found


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
    known = {} if own is None else chats_of_profiles(db, {row[5] for row in rows if row[5] is not None})
    shown: dict[tuple[str, str], CoreRow] = {}
    wide = 0
    for row in rows:
        section, key, value, event_id, chat, extraction_id, is_profile = row[:7]
        chats = known.get(extraction_id) if is_profile else set[str]()
        if own is None or (chats is not None and own >= chats):
            shown[section, key] = CoreRow(section, key, value, event_id, LinePosition(*row[7:]))
        else:
            wide += not chat
    return CoreRows([*shown.values()], wide)
