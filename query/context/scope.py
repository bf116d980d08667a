"""Chooses the scope of a context: the whole store, or one person's conversations."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from collections.abc import Set as AbstractSet
from itertools import islice
from typing import NamedTuple

from memlog.eventlog.escapes import is_invisible
from memlog.eventlog.sections import People
from memlog.projector.sqlite import Connection, to_json_list
from memlog.query.context.request import BuildContext, Scope
from memlog.query.event_index import POSITION, LinePosition


class Speaker(NamedTuple):
    """A person who talks to the agent.

    name: from the settings or the messages; None if the messages in their chat have no names.
    chat: one of their chats.
    """

    name: str | None
    chat: str


_NEXT_NAME = "SELECT min(name) FROM messages WHERE role = 'user' AND name <> '' AND name > ?"
_OF_NAME = "messages WHERE role = 'user' AND name <> '' AND name = ?"
_HAS_NAME = """
SELECT EXISTS (
    SELECT 1 FROM messages WHERE role = 'user' AND name <> '' AND name = ? AND channel = ? AND chat_id = ?
)
"""

_CONVERSED = ("messages WHERE TRUE", "summaries WHERE TRUE")
_NEXT_CATEGORY = "SELECT min(category) FROM memories WHERE category > ?"
_LAST = "\U0010ffff"
_OF_SENDERS = """
SELECT DISTINCT channel || ':' || sender_id FROM daily_events
WHERE channel IS NOT NULL AND sender_id IS NOT NULL
"""


def find_speakers(db: Connection, people: People, chat: str | None = None) -> Iterator[Speaker]:
    """Yield the people who talk to the agent. Lazy: most callers need no more than two.

    chat: a chat to count even before its first message.
    """
    # People in the settings count before their first message.
    yield from (Speaker(person, chats[0]) for person, chats in people.chats.items() if chats)
    for name in _user_names(db):
        named = _distinct_chats(db, _OF_NAME, name)
        own = (Speaker(name, place) for place in named if people.owner(place) is None)
        yield from islice(own, 1)
    for place in nameless_messenger_chats(db, people, chat):
        yield Speaker(None, place)


def nameless_messenger_chats(db: Connection, people: People, chat: str | None = None) -> Iterator[str]:
    """Yield messenger chats that have no names in their messages and no owner in the settings.

    chat: a chat to count even before its first message.
    """
    names, found = [*_user_names(db)], set[str]()
    for place in _messenger_chats(db, people, chat):
        if place not in found and people.owner(place) is None:
            found.add(place)
            where = place.partition(":")[::2]
            if not any(db.execute(_HAS_NAME, (name, *where)).fetchone()[0] for name in names):
                yield place


def chats_by_name(db: Connection) -> dict[str, list[str]]:
    """Map each name in user messages to the chats it appears in."""
    return {name: [*_distinct_chats(db, _OF_NAME, name)] for name in _user_names(db)}


def _user_names(db: Connection) -> Iterator[str]:
    """Yield the distinct names in user messages, skipping those without a visible character."""
    names = _distinct_indexed_values(db, _NEXT_NAME)
    return (name for name in names if not all(sign.isspace() or is_invisible(sign) for sign in name))


def _messenger_chats(db: Connection, people: People, chat: str | None) -> Iterator[str]:
    """Yield messenger chats, including those known only from derived rows; may repeat some."""
    if chat is not None and people.is_messenger(chat):
        yield chat
    for rows in _CONVERSED:
        yield from _distinct_chats(db, rows, wanted=people.has_messenger)
    yield from _derived_messenger_chats(db, people, "facts WHERE TRUE")
    for category in _distinct_indexed_values(db, _NEXT_CATEGORY):
        yield from _derived_messenger_chats(db, people, "memories WHERE category = ?", category)
    yield from (chat for (chat,) in db.execute(_OF_SENDERS) if people.is_messenger(chat))


def _distinct_chats(
    db: Connection, rows: str, *of: str, wanted: Callable[[str], bool] = lambda _: True
) -> Iterator[str]:
    """Yield the distinct chats on `wanted` channels.

    rows: an SQL table and condition, which takes the values `of`.
    """
    for channel in filter(
        wanted, _distinct_indexed_values(db, f"SELECT min(channel) FROM {rows} AND channel > ?", *of)
    ):
        next_chat = f"SELECT min(chat_id) FROM {rows} AND channel = ? AND chat_id > ?"
        yield from (
            f"{channel}:{chat_id}" for chat_id in _distinct_indexed_values(db, next_chat, *of, channel)
        )


def _derived_messenger_chats(db: Connection, people: People, rows: str, *of: str) -> Iterator[str]:
    """Yield the distinct messenger chats in derived rows, skipping other channels in one step each."""
    next_chat = f"SELECT min(chat_id) FROM {rows} AND chat_id > ?"
    at: str | None = ""
    while (at := db.execute(next_chat, (*of, at)).fetchone()[0]) is not None:
        if people.is_messenger(at):
            yield at
        else:
            at = f"{at.partition(':')[0]}:{_LAST}"


def _distinct_indexed_values(db: Connection, select: str, *of: str) -> Iterator[str]:
    """Yield distinct values in order, using `select` to find each next value with one index lookup."""
    found: str | None = ""
    while (found := db.execute(select, (*of, found)).fetchone()[0]) is not None:
        yield found


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
"""Selects the events that set the current fields of the given memories."""

_OF_PROFILES = """
SELECT x.extraction_id, t.memory_id, t.stream, t.event_id FROM memory_events t
JOIN compared_contents x ON (x.stream, x.event_id) = ('core', t.event_id)
WHERE x.extraction_id IN (SELECT value FROM json_each(?1))
"""
"""Selects the events from whose contents the given profiles were derived."""

_MISSING = """
SELECT c.id, c.chat_id, (SELECT count(*) FROM compared_contents x
    WHERE (x.stream, x.extraction_id) = (c.stream, c.id)
    AND NOT EXISTS (SELECT 1 FROM counting_events e WHERE (e.stream, e.id) = ('memory', x.event_id)))
FROM closed_extractions c WHERE c.stream = 'core' AND c.id IN (SELECT value FROM json_each(?1))
"""
"""Selects the chat of each given profile, and how many of its source events no longer exist."""

# Follows merges back to the compared memories; `_CHATS` and `_ORIGINS` follow compressed days to daily
# events.
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


# The messages behind a daily event are not recorded, so all extracted messages of its chat count.
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
    """A source: a message, a daily event, a memory, or the event holding a memory's content.

    channel: the source's channel, if it has a chat. event_id: the id of its event, or the memory_id.
    """

    channel: str | None
    event_id: str


def sources_of_memories(db: Connection, memory_ids: Iterable[str]) -> dict[str, set[SourceEvent]]:
    """Return the sources of each memory, including the memory itself."""
    return _read_sources(db, _ORIGINS.format(seeds=_OF_MEMORIES), memory_ids)


def sources_of_profiles(db: Connection, extraction_ids: Iterable[str]) -> dict[str, set[SourceEvent]]:
    """Return the sources of each profile, including any that none of its values cites."""
    return _read_sources(db, _ORIGINS.format(seeds=_OF_PROFILES), extraction_ids)


def sources_of_daily_events(db: Connection, chats: Iterable[str]) -> dict[str, set[SourceEvent]]:
    """Return each chat's extracted messages, which are the sources of its daily events."""
    return _read_sources(db, _DISTILLED, chats)


def _read_sources(db: Connection, sql: str, names: Iterable[str]) -> dict[str, set[SourceEvent]]:
    found: defaultdict[str, set[SourceEvent]] = defaultdict(set)
    for root, chat, event_id in db.execute(sql, (to_json_list([*names]),)):
        found[root].add(SourceEvent(chat and chat.partition(":")[0], event_id))
    return found


def chats_of_memories(db: Connection, memory_ids: Iterable[str]) -> dict[str, set[str]]:
    """Return each memory's chats, its own and its sources'; unknown ids are left out.

    A daily event with only a channel counts as chat `<channel>:`, which no limited scope includes.
    """
    names = to_json_list([*memory_ids])
    found: dict[str, set[str]] = {memory_id: set() for (memory_id,) in db.execute(_KNOWN, (names,))}
    for memory_id, chat in db.execute(_CHATS.format(seeds=_OF_MEMORIES), (names,)):
        found[memory_id].add(chat)
    return found


def chats_of_profiles(db: Connection, extraction_ids: Iterable[str]) -> dict[str, set[str]]:
    """Return the chats of each profile's sources, including sources that none of its values cites.

    A model may repeat a source without citing it. Profiles whose chats are unknown are left out.
    """
    names = to_json_list([*extraction_ids])
    found: dict[str, set[str]] = {}
    for name, chat, missing in db.execute(_MISSING, (names,)):
        if chat is not None or not missing:
            found[name] = set() if chat is None else {chat}
    for name, chat in db.execute(_CHATS.format(seeds=_OF_PROFILES), (names,)):
        if name in found:
            found[name].add(chat)
    return found


def memories_outside_scope(db: Connection, request: BuildContext, memory_ids: Collection[str]) -> set[str]:
    """Return the `memory_ids` that have a source outside the request's scope."""
    if request.scope == "store" or not memory_ids:
        return set()
    own = {*request.chats_of_scope}
    return {
        memory_id
        for memory_id, chats in chats_of_memories(db, memory_ids).items()
        if not own.issuperset(chats)
    }


class CoreRow(NamedTuple):
    """A core memory value and the event that set it."""

    section: str
    key: str
    value: str
    event_id: str
    position: LinePosition


class CoreRows(NamedTuple):
    """The core values within a scope, one per section and key, the user's before the agent's.

    wide: the number of store-wide values hidden because some of their sources are out of scope.
    """

    shown: list[CoreRow]
    wide: int


def read_core_memory_in_scope(db: Connection, own: AbstractSet[str] | None) -> CoreRows:
    """Return the core memory within a scope: for each key, the newest value that the scope allows.

    own: the chats of the scope; None for the whole store.
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


class ChosenScope(NamedTuple):
    """The scope chosen for a context, `store` or `chat`, and why.

    joined: the other chats of the person in the current chat.
    """

    scope: Scope
    why: str
    joined: tuple[str, ...] = ()


def choose_scope(db: Connection, request: BuildContext, people: People, *, synced: bool) -> ChosenScope:
    """Choose the scope of a request.

    With the scope `chat` and no current chat, the context shows only what belongs to no chat.

    synced: whether the read model has caught up with the log.

    Raises:
        sqlite3.Error: the read model cannot be read.
    """
    if request.form == "session":
        return ChosenScope("chat", "the form session is of one chat")
    if request.scope != "auto":
        return ChosenScope(request.scope, "the request names it")
    chat = request.name_of_current_chat
    if chat is not None and not synced:
        return ChosenScope("chat", "the read model may be behind the log, which may name a second person")
    chosen = choose_automatic_scope(db, people, chat)
    if chosen.scope == "store":
        return chosen
    if chat is None:
        return chosen._replace(
            why=f"{chosen.why}; the request names no chat, so only what belongs to no chat is given"
        )
    return chosen._replace(joined=tuple(sorted(people.joined(chat) - {chat})))


def choose_automatic_scope(db: Connection, people: People, chat: str | None = None) -> ChosenScope:
    """Choose the scope for `auto`: one chat if several people talk to the agent, otherwise the store.

    chat: a chat to count even before its first message.
    """
    found = [*islice(find_speakers(db, people, chat), 2)]
    if len(found) > 1:
        return ChosenScope(
            "chat", f"several people talk to the agent, such as {' and '.join(map(_speaker_name, found))}"
        )
    if not found:
        return ChosenScope("store", "no user message names its speaker")
    return ChosenScope("store", f"one person talks to the agent: {_speaker_name(found[0])}")


class ChatGroup(NamedTuple):
    """Chats that share a scope.

    chat: the first chat in sorted order, which names the group in events; None for what belongs to no chat,
        and for the whole store.
    chats: all chats of the group; None for the whole store.
    """

    chat: str | None
    chats: frozenset[str] | None

    def includes_chats(self, chats: AbstractSet[str]) -> bool:
        """Whether something derived from `chats` belongs to this group."""
        return self.chats is None or (bool(chats) == bool(self.chats) and self.chats >= chats)


def chat_groups(db: Connection, people: People) -> list[ChatGroup]:
    """Return the groups of chats that memories belong to. No context mixes two groups."""
    if choose_automatic_scope(db, people).scope == "store":
        return [ChatGroup(None, None)]
    active = [memory_id for (memory_id,) in db.execute("SELECT memory_id FROM memories")]
    chats = {chat for found in chats_of_memories(db, active).values() for chat in found}
    groups = {people.joined(chat) for chat in chats if all(chat.partition(":")[::2])}
    return [ChatGroup(None, frozenset()), *(ChatGroup(min(each), each) for each in sorted(groups, key=min))]


def can_tell_messenger_chats_apart(db: Connection) -> bool:
    """Whether the read model can tell messenger chats apart; one built by an older version cannot."""
    select = "SELECT count(*) FROM sqlite_master WHERE name = 'messages_by_user' AND sql LIKE '%chat_id%'"
    return bool(db.execute(select).fetchone()[0])


def why_messengers_separate(db: Connection, people: People) -> str | None:
    """Return the reason why chats are kept apart although user messages have at most one name, or None."""
    (names,) = db.execute("SELECT count(DISTINCT name) FROM messages WHERE role = 'user'").fetchone()
    chosen = choose_automatic_scope(db, people)
    return chosen.why if names < 2 and chosen.scope == "chat" else None


def _speaker_name(speaker: Speaker) -> str:
    return speaker.name or f"somebody without a name in {speaker.chat}"
