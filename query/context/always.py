"""Finds what always holds: the memories that go into every context in their scope, whatever the prompt.

Health comes first, then preferences and prohibitions, each with its own budget. See docs/tools/context.md.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial

from memlog.eventlog.codec.content_ids import fold_content as text_folded
from memlog.eventlog.secrets.detection import list_key_kinds
from memlog.projector.sqlite import Connection, to_json_list
from memlog.projector.text.phrases import Holds
from memlog.query.conflicts import ids_of_contested_memories
from memlog.query.context.entries import ContextEntry
from memlog.query.context.filling import EligibleEntry
from memlog.query.context.request import BuildContext
from memlog.query.context.scope import memories_outside_scope
from memlog.query.context.token_counters import CHARACTERS, round_weight_to_tokens, weigh_text
from memlog.query.event_index import POSITION, LinePosition
from memlog.query.outdated_memories import (
    OutdatedMemoryFinder,
    does_newer_keep_health_words,
    text_says_that_something_changed,
)

_SHOWN = """
archived_at IS NULL AND (?1 OR chat_id IS NULL OR chat_id IN (SELECT value FROM json_each(?2)))
"""

_MEMORIES = f"SELECT memory_id, holds FROM memories m WHERE holds > 0 AND length(content) <= ?3 AND {_SHOWN}"

_OF_TOPICS = (
    f"SELECT memory_id, topic, updated_at, content FROM memories m WHERE topic IS NOT NULL AND {_SHOWN}"
)

# The event that holds a memory's content also names its author and conversation.
_ENTRIES = f"""
SELECT m.memory_id, m.event_id, m.kind, m.category, m.title, m.content, m.importance, m.topic, m.updated_at,
    coalesce(m.chat_id, t.chat_id), t.extraction_id IS NOT NULL, {POSITION}
FROM memories m JOIN events e ON (e.stream, e.id) = (m.stream, m.event_id)
LEFT JOIN memory_events t ON (t.memory_id, t.stream, t.event_id) = (m.memory_id, m.stream, m.event_id)
WHERE m.memory_id IN (SELECT value FROM json_each(?))
ORDER BY m.importance DESC, m.updated_at DESC, m.memory_id
"""

# A memory is vouched for if two extractions found it, or if somebody saved or changed it or a memory that
# was merged into it. Records from before a deletion do not count, nor does a save that a model restated
# later.
_VOUCHED = """
WITH RECURSIVE origins (memory_id, said_as) AS (
    SELECT value, value FROM json_each(?1)
    UNION
    SELECT o.memory_id, v.value FROM origins o
    JOIN decisions d ON d.memory_id = o.said_as AND d.relation IN ('same', 'update', 'accepted')
        AND NOT d.is_undone
    JOIN json_each(d.memory_ids) v
),
made (memory_id, precedence) AS (
    SELECT m.memory_id, t.precedence FROM origins o JOIN memories m ON m.memory_id = o.said_as
    JOIN memory_events t ON (t.memory_id, t.stream, t.event_id) = (m.memory_id, m.stream, m.event_id)
    JOIN closed_extractions c ON (c.stream, c.id, c.type) = (t.stream, t.extraction_id, 'memories_extracted')
)
SELECT o.memory_id FROM origins o
JOIN memory_events t ON t.memory_id = o.said_as
JOIN events e ON (e.stream, e.id) = (t.stream, t.event_id) AND e.type IN ('memory_saved', 'memory_updated')
LEFT JOIN closed_extractions c ON (c.stream, c.id, c.type) = (t.stream, t.extraction_id, 'memories_extracted')
LEFT JOIN made n ON n.memory_id = t.memory_id
WHERE t.precedence > coalesce(
    (SELECT b.precedence FROM tombstones b WHERE (b.stream, b.thing) = (t.stream, t.memory_id)), ''
)
GROUP BY o.memory_id
HAVING sum(t.extraction_id IS NULL AND t.precedence >= coalesce(n.precedence, '')) OR count(DISTINCT c.id) > 1
UNION
SELECT v.value FROM merge_decisions d JOIN json_each(d.memory_ids) v
JOIN closed_extractions c ON (c.stream, c.id) = (d.stream, d.extraction_id)
WHERE c.model IS NULL AND d.relation IN ('contradiction', 'different')
"""


def find_entries_that_always_hold(
    db: Connection, request: BuildContext, changes: OutdatedMemoryFinder, line: Callable[[ContextEntry], str]
) -> list[EligibleEntry]:
    """Return entries for what always holds in the request's scope; with `explain`, also ones that do not fit.

    line: formats an entry as a line of text. Its size decides what fits, whatever the form.

    Raises:
        sqlite3.Error: the read model cannot be read.
    """
    found = _memories_that_always_hold(db, request)
    if not found:
        return []
    entries = [*_make_vouched_entries(db, request, found)]
    changed = changes.map_outdated_to_newer_memories([entry.id for entry in entries])
    for entry in entries:
        entry.changed_by = changed.get(entry.id)
    by_topic = cache(partial(_memories_by_topic, db, request))
    health = [entry for entry in entries if found[entry.id] & Holds.HEALTH]
    # At equal importance, allergies come first: they matter at each meal.
    health.sort(key=lambda entry: (-(entry.importance or 0.0), not found[entry.id] & Holds.ALLERGY))

    def select_fitting_entries(room: int, offered: Iterable[ContextEntry]) -> Iterator[ContextEntry]:
        used = 0.0
        for entry in offered:
            more = weigh_text(f"{line(entry)}\n", request.counter)
            if round_weight_to_tokens(used + more, request.counter) > room:
                continue
            if _is_memory_outdated(entry, by_topic):
                entry.is_older = True
                more = weigh_text(f"{line(entry)}\n", request.counter)
            if round_weight_to_tokens(used + more, request.counter) <= room and not list_key_kinds(
                line(entry)
            ):
                used += more
                yield entry

    # Health lines have a budget of their own.
    first = [*select_fitting_entries(request.health_tokens, health)]
    taken = {entry.id for entry in first}
    others = [entry for entry in entries if found[entry.id] & Holds.OTHER and entry.id not in taken]
    second = [*select_fitting_entries(request.preference_tokens, others)]
    holding = [EligibleEntry(entry) for entry in (*first, *second)]
    if not request.explain:
        return holding
    taken |= {entry.id for entry in second}
    why = "beyond the tokens of what always holds"
    return [*holding, *(EligibleEntry(entry, why) for entry in entries if entry.id not in taken)]


def _memories_that_always_hold(db: Connection, request: BuildContext) -> dict[str, Holds]:
    """Return the reasons why memories always hold in the request's scope, keyed by memory id."""
    most = CHARACTERS * max(request.health_tokens, request.preference_tokens)
    own = to_json_list(request.chats_of_scope)
    rows = db.execute(_MEMORIES, (request.scope == "store", own, most))
    found = {memory_id: Holds(number) for memory_id, number in rows}
    foreign = memories_outside_scope(db, request, found)
    return {memory_id: holds for memory_id, holds in found.items() if memory_id not in foreign}


def _make_vouched_entries(
    db: Connection, request: BuildContext, found: dict[str, Holds]
) -> Iterator[ContextEntry]:
    """Yield entries for the `found` memories that a person or two extractions vouch for, by importance."""
    names = to_json_list([*found])
    vouched = {name for (name,) in db.execute(_VOUCHED, (names,))}
    contested = ids_of_contested_memories(db)
    for row in db.execute(_ENTRIES, (names,)).fetchall():
        memory_id, event_id, kind, category, title, content, importance, topic, ts, chat, by_model = row[:11]
        is_disputed = memory_id in contested
        if (
            memory_id not in vouched
            or (is_disputed and by_model)
            or not request.excluded_ids.isdisjoint((memory_id, event_id))
            or list_key_kinds(f"{title}\n{content}")
        ):
            continue
        yield ContextEntry(
            part="always",
            id=memory_id,
            label=kind.upper(),
            title=title,
            category=category,
            content=content,
            importance=importance,
            chat=chat,
            ts=ts,
            position=LinePosition(*row[11:]),
            topic=topic,
            is_disputed=is_disputed,
        )


_ByTopic = dict[str, list[tuple[str, str]]]
"""The time and content of each memory, keyed by topic."""


def _is_memory_outdated(entry: ContextEntry, by_topic: Callable[[], _ByTopic]) -> bool:
    """Whether a newer memory on the same topic says that this one has changed."""
    if entry.topic is None:
        return False
    folded_text = text_folded(entry.content)
    return any(
        ts > (entry.ts or "")
        and text_folded(content) != folded_text
        and text_says_that_something_changed(content)
        and does_newer_keep_health_words(content, entry.content)
        for ts, content in by_topic().get(text_folded(entry.topic), ())
    )


def _memories_by_topic(db: Connection, request: BuildContext) -> _ByTopic:
    """Return the memories in the request's scope, keyed by topic."""
    rows = db.execute(_OF_TOPICS, (request.scope == "store", to_json_list(request.chats_of_scope))).fetchall()
    foreign = memories_outside_scope(db, request, [memory_id for memory_id, *_ in rows])
    found: _ByTopic = {}
    for memory_id, topic, ts, content in rows:
        if memory_id not in foreign:
            found.setdefault(text_folded(topic), []).append((ts, content))
    return found
