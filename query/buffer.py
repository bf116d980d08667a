"""A chat's buffer: the messages that no extraction has covered yet. Computed on each read, never stored."""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import attrgetter, itemgetter

import msgspec

from memlog.eventlog import timestamps
from memlog.eventlog.events import ModelFailed
from memlog.eventlog.fields import Chat, FailureKind, ModelTask
from memlog.projector.sqlite import Connection
from memlog.query.conversations import ORDER, WindowMessage
from memlog.query.event_index import make_struct_of_row


class BufferedMessage(msgspec.Struct, frozen=True):
    """A message that no extraction has covered yet."""

    id: str
    role: str
    name: str | None
    content: str
    ts: str


class Buffer(msgspec.Struct):
    """A chat's messages that no extraction has covered yet, oldest first."""

    chat: str
    messages: list[BufferedMessage]


_ORDER = ", ".join(ORDER)
_PLACE = ", ".join(f"m.{column}" for column in ORDER)
_THROUGH = ", ".join(f"t.{column}" for column in ORDER)
_BACKWARDS = ", ".join(f"x.{column} DESC" for column in ORDER)

_DISTILLED = (
    f"SELECT y.channel, y.chat_id, {', '.join(f'y.{column}' for column in ORDER)}"
    " FROM extractions d JOIN {} y"
    " ON y.channel = d.channel AND y.chat_id = d.chat_id AND y.id = d.through_message_id"
)

# `through` has a row per chat that another program distils: the last distilled message.
_WAITING = f"""
WITH through AS MATERIALIZED (
    SELECT channel, chat_id, {_ORDER} FROM (
        SELECT x.channel, x.chat_id, {", ".join(f"x.{column}" for column in ORDER)},
            row_number() OVER (PARTITION BY x.channel, x.chat_id ORDER BY {_BACKWARDS}) AS nth
        FROM (
            {_DISTILLED.format("messages")} UNION ALL {_DISTILLED.format("withdrawn_messages")}
        ) x
    ) WHERE nth = 1
)
SELECT m.channel || ':' || m.chat_id, m.id, m.role, m.name, m.content, m.created_at FROM messages m
LEFT JOIN through t ON t.channel = m.channel AND t.chat_id = m.chat_id
WHERE m.type <> 'session_break' AND m.role <> 'system'
AND NOT EXISTS (
    SELECT 1 FROM extracted_messages e WHERE e.chat_id = m.channel || ':' || m.chat_id AND e.message_id = m.id
)
AND (t.channel IS NULL OR ({_PLACE}) > ({_THROUGH}))
"""


def undistilled_buffers(db: Connection, chat: Chat | None = None) -> Iterator[Buffer]:
    """Yield the buffer of `chat`, or of every chat, skipping empty buffers and system messages.

    A `memories_extracted` event covers the messages it lists. An `extraction_completed` event, written by
    other programs, covers everything up to the message it names.
    """
    where = "" if chat is None else " AND m.channel = ? AND m.chat_id = ?"
    rows = db.execute(f"{_WAITING}{where} ORDER BY m.channel, m.chat_id, {_PLACE}", [*(chat or ())])
    for name, of_chat in groupby(rows, key=itemgetter(0)):
        yield Buffer(name, [BufferedMessage(*row) for _, *row in of_chat])


def count_session_memories(db: Connection, chat: Chat, source: str, ts: str) -> int:
    """Count the memories that `source` created in the chat's session at time `ts`."""
    breaks = "SELECT {}(created_at) FROM messages WHERE (channel, chat_id, type) = (?1, ?2, 'session_break')"
    (count,) = db.execute(
        "SELECT count(*) FROM memories WHERE source = ?3 AND chat_id = ?4"
        f" AND created_at >= coalesce(({breaks.format('max')} AND created_at <= ?5), '')"
        f" AND created_at <= coalesce(({breaks.format('min')} AND created_at > ?5), '~')",
        (*chat, source, str(chat), ts),
    ).fetchone()
    return int(count)


_COLUMNS = f"id, role, name, content, created_at, type, metadata, {', '.join(ORDER[1:])}"
_MESSAGES = (
    f"SELECT {_COLUMNS}, 0 AS is_withdrawn FROM messages WHERE channel = ?1 AND chat_id = ?2"
    f" UNION ALL SELECT {_COLUMNS}, 1 FROM withdrawn_messages WHERE channel = ?1 AND chat_id = ?2"
    f" ORDER BY {', '.join(ORDER)}"
)


class Unsummarised(msgspec.Struct):
    """The messages of a session that no summary covers, oldest first.

    first: the id of the session's first message. before: the summary of the earlier messages, or "".
    covered: the ids of those earlier messages. is_over: whether the session has ended.
    """

    first: str
    before: str
    messages: list[WindowMessage]
    is_over: bool
    covered: list[str] = []


def chats_with_new_messages(db: Connection, since: int) -> tuple[list[Chat], int]:
    """Return the chats with messages numbered above `since`, and the highest message number.

    If `since` is above that number, a rebuild has renumbered the messages, so all chats are returned.
    """
    (last,) = db.execute("SELECT coalesce(max(message_no), 0) FROM messages").fetchone()
    rows = db.execute(
        "SELECT DISTINCT channel, chat_id FROM messages WHERE message_no > ? ORDER BY channel, chat_id",
        (since if since <= last else 0,),
    )
    return [Chat(*row) for row in rows], int(last)


def unsummarised_sessions(db: Connection, chat: Chat) -> list[Unsummarised]:
    """Return the chat's sessions that have unsummarised messages, each with only those messages."""
    rows = db.execute(
        "SELECT to_message_id, content FROM summaries WHERE channel = ? AND chat_id = ?"
        " AND to_message_id IS NOT NULL ORDER BY created_at",
        chat,
    )
    summary_to = dict(rows.fetchall())
    found: list[Unsummarised] = []
    current: Unsummarised | None = None
    for row in db.execute(_MESSAGES, chat):
        message = make_struct_of_row(WindowMessage, row)
        if message.type == "session_break":
            if current is not None:
                current.is_over = True
                found.append(current)
            current = None
            continue
        if current is None:
            current = Unsummarised(message.id, "", [], is_over=False)
        if message.role != "system" and not row[-1]:
            current.messages.append(message)
        if message.id in summary_to:
            current.covered += [each.id for each in current.messages]
            current.before, current.messages = summary_to[message.id], []
    if current is not None:
        found.append(current)
    return [*filter(attrgetter("messages"), found)]


_DAY = 24 * 60 * 60 * 1000

_MOST = 2
"""The most failed requests about the same events in a day."""

_FINAL: tuple[FailureKind, ...] = ("refused", "unusable")
"""Failures that a retry would repeat."""


class SetAside(msgspec.Struct, kw_only=True):
    """A failed request to a language model that won't be retried before tomorrow (UTC).

    id, ts: of its `model_failed` event. task: the kind of request.
    chat: None unless the request is about a single chat.
    event_ids: the messages, daily events or memory contents it is about.
    until: the time from which it may be retried.
    """

    id: str
    ts: str
    task: ModelTask
    chat: str | None
    event_ids: list[str]
    why: str
    until: str


class Failures:
    """A day's failed requests, keyed by task, chat and event."""

    def __init__(self) -> None:
        self._requests: Counter[tuple[ModelTask, str | None, str]] = Counter()
        self._last: dict[tuple[ModelTask, str | None, str], SetAside] = {}

    def add_failure(self, about: SetAside, kind: FailureKind, requests: int) -> None:
        """Add a failure. Failures must be added in chronological order."""
        for event_id in about.event_ids:
            self._requests[about.task, about.chat, event_id] += max(requests, _MOST * (kind in _FINAL))
        self._last[about.task, about.chat, about.event_ids[0]] = about

    def most_failed_requests(self, task: ModelTask, chat: str | None, event_ids: Iterable[str]) -> int:
        """Return the highest number of failed requests for any of these events.

        A failure that rules out a retry counts as the daily maximum.
        """
        return max((self._requests[task, chat, event_id] for event_id in event_ids), default=0)

    def has_reached_daily_maximum(self, task: ModelTask, chat: str | None, event_ids: Iterable[str]) -> bool:
        """Whether any of these events has reached the daily maximum of failed requests."""
        return self.most_failed_requests(task, chat, event_ids) >= _MOST

    def requests_set_aside(self) -> list[SetAside]:
        """Return the requests that won't be retried before tomorrow, latest last."""
        return [
            each
            for each in self._last.values()
            if self.has_reached_daily_maximum(each.task, each.chat, each.event_ids[:1])
        ]


# Excludes what has been distilled, summarised or compared since, by hand or by another copy of the store.
# A part of a chat is sent in halves: it is done when both ends are.
_FAILED = """
SELECT f.id, f.ts, f.task, f.chat_id, f.event_ids, f.why, f.kind, f.requests FROM model_failures f
WHERE f.ts >= ?1 AND f.ts < ?2 AND (f.provider, f.model) = (?3, ?4) AND NOT CASE f.task
    WHEN 'extract' THEN EXISTS (
        SELECT 1 FROM extracted_messages e WHERE (e.chat_id, e.message_id) = (f.chat_id, f.event_ids ->> 0)
    ) AND EXISTS (
        SELECT 1 FROM extracted_messages e
        WHERE (e.chat_id, e.message_id) = (f.chat_id, f.event_ids ->> '$[#-1]')
    )
    WHEN 'compress' THEN EXISTS (
        SELECT 1 FROM daily_compressions c
        WHERE (c.stream, c.daily_event_id) = ('memory', f.event_ids ->> 0)
    )
    WHEN 'summarise' THEN EXISTS (
        SELECT 1 FROM summaries s WHERE s.channel = substr(f.chat_id, 1, instr(f.chat_id, ':') - 1)
        AND s.chat_id = substr(f.chat_id, instr(f.chat_id, ':') + 1)
        AND s.is_distilled AND s.created_at > f.ts
    )
    ELSE EXISTS (
        SELECT 1 FROM compared_contents t
        JOIN closed_extractions c ON (c.stream, c.id) = (t.stream, t.extraction_id)
        WHERE t.stream = iif(f.task = 'merge', 'memory', 'core') AND t.event_id = f.event_ids ->> 0
        AND c.chat_id IS f.chat_id AND c.ts > f.ts AND f.task IN ('merge', 'profile')
    )
END ORDER BY f.ts, f.id
"""


def failures_of_today(db: Connection, provider: str, model: str) -> Failures:
    """Return today's (UTC) failed requests to `model`, except those that have since succeeded."""
    since = f"{timestamps.today()}T00:00:00.000Z"
    until = _start_of_next_day(since)
    found = Failures()
    for *row, kind, requests in db.execute(_FAILED, (since, until, provider, model)):
        found.add_failure(make_struct_of_row(SetAside, row, until=until), kind, requests)
    return found


def count_tokens_of_today(db: Connection) -> int:
    """Return the number of tokens language models have used today (UTC), as recorded in events."""
    since = (f"{timestamps.today()}T00:00:00.000Z",)
    (tokens,) = db.execute(
        "SELECT coalesce(sum(tokens), 0) FROM ("
        " SELECT tokens_in + tokens_out AS tokens FROM closed_extractions WHERE ts >= ?1"
        " UNION ALL SELECT tokens_in + tokens_out FROM model_failures WHERE ts >= ?1)",
        since,
    ).fetchone()
    return int(tokens)


def event_to_set_aside(event: ModelFailed) -> SetAside:
    """Convert a newly appended `model_failed` event to the form returned by `Failures.requests_set_aside`."""
    return SetAside(
        id=str(event.id),
        ts=str(event.ts),
        task=event.task,
        chat=event.chat_id,
        event_ids=event.event_ids,
        why=event.why,
        until=_start_of_next_day(str(event.ts)),
    )


def _start_of_next_day(ts: str) -> str:
    return timestamps.shift_timestamp(f"{ts[:10]}T00:00:00.000Z", _DAY)
