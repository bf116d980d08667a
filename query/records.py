"""Daily events, job runs, counts, plain tables, and core memory."""

import json
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, cast

import msgspec

from memlog.eventlog import timestamps
from memlog.eventlog.codec.decode import decode_line
from memlog.eventlog.codec.upcast import Place
from memlog.eventlog.events import CoreMemoryDeleted, CoreMemoryUpdated, JobStep
from memlog.eventlog.log.order import compute_precedence
from memlog.eventlog.log.quarantine import BadLine
from memlog.eventlog.log.reader import read_line_at
from memlog.eventlog.log.streams import SegmentName
from memlog.projector import core_view
from memlog.projector.sqlite import Connection, count_rows, to_json_list
from memlog.projector.subjects.facts import PROFILE
from memlog.query.event_index import POSITION, LinePosition, join_sql_conditions, make_struct_of_row


class DailyEvent(msgspec.Struct, kw_only=True):
    """Something that happened on a day.

    event_date: the day, such as 2026-02-24. chat: the `<channel>:<chat_id>` it was distilled from, if any.
    raw_tokens: the length of the summarised text in tokens; None if unknown.
    compressed_at: when it was first distilled; None if never. memory_ids: the resulting memories, sorted.
    """

    id: str
    event_date: str
    channel: str | None
    sender_id: str | None
    chat: str | None
    summary: str
    raw_tokens: int | None
    created_at: str
    compressed_at: str | None
    memory_ids: list[str]
    position: LinePosition


_COMPRESSED_AT = (
    "SELECT min(ts) FROM daily_compressions c WHERE (c.stream, c.daily_event_id) = (d.stream, d.id)"
)
_MEMORY_IDS = (
    "SELECT json_group_array(DISTINCT m.value)"
    " FROM daily_compressions c JOIN daily_distillates USING (stream, event_id), json_each(memory_ids) m"
    " WHERE (c.stream, c.daily_event_id) = (d.stream, d.id)"
)
_DAILY_EVENTS = (
    "SELECT id, event_date, channel, sender_id, chat_id, summary, raw_tokens, created_at,"
    f" ({_COMPRESSED_AT}) AS compressed_at, ({_MEMORY_IDS}), {POSITION}"
    " FROM daily_events d JOIN events e USING (stream, id)"
)


def list_daily_events(
    db: Connection,
    *,
    date: str | None = None,
    since: str | None = None,
    until: str | None = None,
    channel: str | None = None,
    uncompressed: bool = False,
) -> list[DailyEvent]:
    """Return daily events by day and, within a day, in log order.

    date: only this day. since, until: the first and last day. uncompressed: only those not yet distilled.
    """
    condition, values = join_sql_conditions(
        ("event_date = ?", date),
        ("event_date >= ?", since),
        ("event_date <= ?", until),
        ("channel = ?", channel),
        ("(compressed_at IS NULL) = ?", True if uncompressed else None),
    )
    rows = db.execute(
        f"{_DAILY_EVENTS} WHERE {condition}"
        " ORDER BY event_date, created_at, e.day, e.number, e.writer, e.offset, e.stream",
        values,
    )
    events = [make_struct_of_row(DailyEvent, row) for row in rows]
    for event in events:
        event.memory_ids.sort()
    return events


class JobRun(msgspec.Struct, kw_only=True):
    """A run of a job.

    period: the local day it was due for. ts: when it ended.
    """

    id: str
    job: str
    period: str
    ts: str
    steps: list[JobStep]
    position: LinePosition


def list_job_runs(
    db: Connection, *, job: str | None = None, period: str | None = None, limit: int | None = None
) -> list[JobRun]:
    """Return job runs, newest first; by default, of all jobs and periods."""
    rows = db.execute(
        f"SELECT r.steps, r.id, r.job, r.period, r.ts, {POSITION} FROM job_runs r"
        " JOIN events e USING (stream, id) WHERE (?1 IS NULL OR r.job = ?1)"
        " AND (?3 IS NULL OR r.period = ?3)"
        " ORDER BY r.ts DESC, r.period DESC, e.day DESC, e.number DESC, e.writer, e.offset DESC LIMIT ?2",
        (job, -1 if limit is None else limit, period),
    )
    return [
        make_struct_of_row(JobRun, row, steps=msgspec.json.decode(steps, type=list[JobStep]))
        for steps, *row in rows
    ]


def is_job_due(db: Connection, job: str, period: str, ts: str) -> bool:
    """Whether `job` has yet to run for `period`, and the store had events when it was due, at `ts`."""
    ran = db.execute("SELECT 1 FROM job_runs WHERE (job, period) = (?, ?)", (job, period)).fetchone()
    return ran is None and db.execute("SELECT 1 FROM events WHERE ts < ?", (ts,)).fetchone() is not None


def skipped_steps(db: Connection, job: str, period: str) -> list[str]:
    """Return the steps that the last run for `period` skipped, which are due as soon as they can run."""
    runs = list_job_runs(db, job=job, period=period, limit=1)
    return [step.name for run in runs for step in run.steps if step.outcome == "skipped"]


def last_extraction_time(db: Connection) -> str | None:
    """Return the time at which messages were last distilled, or None."""
    rows = db.execute("SELECT max(ts) FROM closed_extractions WHERE type = 'memories_extracted'")
    (last,) = rows.fetchone()
    return None if last is None else str(last)


def last_summary_time(db: Connection) -> str | None:
    """Return the time at which a language model last summarised a conversation, or None."""
    (last,) = db.execute("SELECT max(created_at) FROM summaries WHERE is_distilled").fetchone()
    return None if last is None else str(last)


_AHEAD = 60
"""Days. If nobody has written to a store for this long, its clock may be wrong. A memory archived by mistake
stays archived, whereas one kept by mistake can still be pruned next week."""

_ANY_OF = """
SELECT 1 FROM memories WHERE category IN (SELECT value FROM json_each(?)) AND archived_at IS NULL LIMIT 1
"""

_DAY = 24 * 60 * 60 * 1000

_BY_OTHERS = """
SELECT max(at) FROM (
    SELECT max(coalesce(at, ts)) AS at FROM events WHERE type IN (
        'message', 'session_break', 'memory_accessed', 'context_given', 'memory_deleted', 'fact_stored',
        'fact_removed', 'source_registered', 'source_removed'
    )
    UNION ALL
    SELECT max(coalesce(e.at, e.ts)) FROM memory_events t
    JOIN events e ON (e.stream, e.id) = (t.stream, t.event_id) AND e.type = 'memory_saved'
    WHERE t.extraction_id IS NULL
    UNION ALL
    SELECT max(coalesce(e.at, e.ts)) FROM core_values c
    JOIN events e ON (e.stream, e.id) = (c.stream, c.event_id) WHERE NOT c.is_profile
    UNION ALL
    SELECT max(coalesce(e.at, e.ts)) FROM daily_events d
    JOIN events e USING (stream, id) WHERE d.chat_id IS NULL
)
"""


def why_clock_is_doubted(db: Connection, now: str, categories: Iterable[str]) -> str | None:
    """Return the reason why jobs must not prune: the clock is far ahead of the last event not from a job.

    None if the clock is not far ahead, or if the `categories` that jobs prune have no active memory.
    """
    if db.execute(_ANY_OF, (to_json_list([*categories]),)).fetchone() is None:
        return None
    (newest,) = db.execute(_BY_OTHERS).fetchone()
    if newest is None or now <= timestamps.shift_timestamp(newest, _AHEAD * _DAY):
        return None
    return (
        f"the clock says {now[:10]}, and nobody but jobs has appended since {newest[:10]}: jobs prune nothing"
        " until somebody else appends or prunes by hand"
    )


Counts = dict[str, int]
"""Numbers, keyed and sorted by name."""


def count_rows_by_column(db: Connection, column: str, rows: str) -> Counts:
    """Count rows by the value of `column`.

    rows: a table, optionally with a condition.
    """
    return dict(db.execute(f"SELECT {column}, count(*) FROM {rows} GROUP BY 1 ORDER BY 1").fetchall())


def count_for_monitoring(db: Connection, events_by_type: Counts) -> Counts:
    """Return counters for monitoring. They are counted from events, so a replay gives the same values.

    memory.saved.count: saves, including those of memories that existed or were deleted.
    memory.retrieved.count: how many times memories were given to an agent.
    memory.extraction.success: requests to a language model whose answer became events.
    memory.extraction.tokens: tokens used by these requests, by merges and by profiles.
    """
    success, tokens = db.execute(
        "SELECT coalesce(sum(type = 'memories_extracted'), 0), coalesce(sum(tokens_in + tokens_out), 0)"
        " FROM closed_extractions"
    ).fetchone()
    (retrieved,) = db.execute("SELECT coalesce(sum(reads), 0) FROM memory_events").fetchone()
    return {
        "memory.saved.count": events_by_type.get("memory_saved", 0)
        - count_rows(db, "held_events WHERE event ->> 'type' = 'memory_saved'"),
        "memory.retrieved.count": retrieved,
        "memory.extraction.success": success,
        "memory.extraction.tokens": tokens,
    }


_TABLES = {
    "messages": (
        "SELECT m.stream || '/' || m.id AS key, m.id, channel, chat_id, role, type, name, content, metadata,"
        " created_at FROM messages m ORDER BY created_at, m.day, m.number, m.writer, m.offset, m.stream"
    ),
    "memories": (
        "SELECT memory_id, title, content, category, kind, importance, salience, access_count, last_accessed,"
        " source, topic, chat_id AS chat, tags, created_at, updated_at, archived_at FROM memories"
        " ORDER BY created_at, memory_id"
    ),
    "facts": (
        "SELECT fact_id, topic_key, kind, rank, value, chat_id AS chat, source_message_id, updated_at"
        " FROM facts ORDER BY topic_key, chat_id, kind, rank"
    ),
    "core_memory": (
        "SELECT section, key, nullif(chat_id, '') AS chat, value, source, updated_at"
        " FROM core_memory ORDER BY section, key, chat_id"
    ),
    "daily_events": (
        "SELECT id, event_date, channel, sender_id, chat_id AS chat, summary, raw_tokens, created_at"
        " FROM daily_events ORDER BY event_date, created_at, id"
    ),
}

PLAIN_TABLES = tuple(_TABLES)


def rows_of_plain_table(db: Connection, table: str) -> tuple[list[str], Iterator[dict[str, Any]]]:
    """Return the column names of one of `PLAIN_TABLES`, and its rows as dicts."""
    rows = db.execute(_TABLES[table])
    names = [column for column, *_ in rows.description]
    return names, (dict(zip(names, row, strict=True)) for row in rows)


class CoreMemory(msgspec.Struct):
    """The user's and the agent's values, by key."""

    user: dict[str, str]
    agent: dict[str, str]


def read_core_memory(db: Connection) -> CoreMemory:
    """Return the current core memory."""
    return CoreMemory(**core_view.read_core_memory(db))


class CoreValueSource(msgspec.Struct, frozen=True):
    """A key of the core memory and where its value came from; `value` is None if somebody removed it.

    is_stale: whether all the memories behind it have since changed or been removed.
    memory_ids: the memories it is based on. extraction_id: of its profile.
    event_id: of the event that set it.
    """

    value: str | None = None
    source: str | None = None
    is_stale: bool = False
    memory_ids: list[str] = []
    extraction_id: str | None = None
    event_id: str | None = None


_SOURCES = """
WITH RECURSIVE own AS (
    SELECT * FROM core_memory WHERE section = ?1 AND (chat_id = ?2 OR NOT is_profile)
),
supports(key, memory_id, since) AS (
    SELECT c.key, v.value, c.updated_at FROM own c, json_each(c.memory_ids) v
    UNION
    -- The memory that another one was merged into now has its content.
    SELECT s.key, d.memory_id, max(s.since, d.ts) FROM supports s
    JOIN merge_decisions d ON d.memory_id <> s.memory_id
    JOIN closed_extractions x ON (x.stream, x.id) = (d.stream, d.extraction_id)
    WHERE (d.relation <> 'contradiction' OR x.model IS NOT NULL)
        AND EXISTS (SELECT 1 FROM json_each(d.memory_ids) m WHERE m.value = s.memory_id)
)
SELECT c.key, c.value, c.source, c.memory_ids, c.extraction_id, c.event_id,
c.memory_ids <> '[]' AND NOT EXISTS (
    SELECT 1 FROM supports s JOIN memories m USING (memory_id)
    WHERE s.key = c.key AND m.archived_at IS NULL AND m.updated_at <= s.since
) FROM own c
"""


def find_sources_of_core_keys(db: Connection, section: str, chat: str | None) -> dict[str, CoreValueSource]:
    """Return the keys of a section, including removed ones, with their sources.

    chat: the chat that names the profile's group; None for the store's own profile.
    """
    removed = sorted(key for part, key in deleted_core_keys(db) if part == section)
    return {key: CoreValueSource() for key in removed} | {
        key: CoreValueSource(value, source, bool(is_stale), json.loads(memory_ids), extraction_id, event_id)
        for key, value, source, memory_ids, extraction_id, event_id, is_stale in db.execute(
            _SOURCES, (section, chat or "")
        )
    }


def deleted_core_keys(db: Connection) -> set[tuple[str, str]]:
    """Return (section, key) of each value that was ever deleted by anyone but a profile."""
    rows = db.execute("SELECT thing FROM tombstones WHERE stream = 'core' AND source IS NOT 'profile'")
    return {(section, key) for section, key, *_ in map(json.loads, chain.from_iterable(rows))}


def profile_keys(db: Connection, section: str) -> list[tuple[str | None, str]]:
    """Return (chat that names the group, key) for each value in the profiles of all groups of chats."""
    rows = db.execute(
        "SELECT nullif(chat_id, ''), key FROM core_values WHERE section = ? AND is_profile"
        " ORDER BY chat_id, key",
        (section,),
    )
    return [(chat, key) for chat, key in rows]


_CHANGES = """
SELECT day, number, writer, offset, length, segment FROM counting_events
WHERE stream = 'core' AND type IN ('core_memory_updated', 'core_memory_deleted')
ORDER BY day, number, writer, offset
"""
"""Selects the changes to core memory in order, except forgotten ones."""


class RejectedValue(NamedTuple):
    """A core value that somebody removed or replaced."""

    key: str
    value: str


def list_rejected_values(db: Connection, log: Path, section: str) -> list[RejectedValue]:
    """Return the values of a section that somebody removed or replaced and hasn't set again under any key.

    Values that memlog itself removed or replaced do not count.
    """
    changes = sorted(_read_changes_of_core_memory(db, log, section), key=lambda change: change[0])
    last = {event.key: order for order, event in changes if event.source != PROFILE}
    held = {
        event.value
        for order, event in changes
        if isinstance(event, CoreMemoryUpdated) and order == last.get(event.key)
    }
    found = (
        RejectedValue(event.key, event.value)
        for order, event in changes
        if isinstance(event, CoreMemoryUpdated)
        and order < last.get(event.key, ())
        and event.value not in held
    )
    return [*dict.fromkeys(found)]


def _read_changes_of_core_memory(
    db: Connection, log: Path, section: str
) -> list[tuple[tuple[str | int, ...], CoreMemoryUpdated | CoreMemoryDeleted]]:
    found: list[tuple[tuple[str | int, ...], CoreMemoryUpdated | CoreMemoryDeleted]] = []
    for day, number, writer, offset, length, segment in db.execute(_CHANGES).fetchall():
        name = cast("SegmentName", SegmentName.parse(segment))
        try:
            event = decode_line(
                read_line_at(log, "core", segment, offset, length), Place("core", name, offset)
            )
        except BadLine:  # forgotten, and overwritten meanwhile
            continue
        if isinstance(event, CoreMemoryUpdated | CoreMemoryDeleted) and event.section == section:
            found.append(((compute_precedence(event, name), day, number, writer, offset), event))
    return found
