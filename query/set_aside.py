"""What a language model gave nothing about today, and so is not asked about again before tomorrow."""

from collections import Counter
from collections.abc import Iterable

import msgspec

from memlog.eventlog import timestamps
from memlog.eventlog.event_fields import FailureKind, ModelTask
from memlog.eventlog.events import ModelFailed
from memlog.projector.sqlite import Connection
from memlog.query.rows import record

_DAY = 24 * 60 * 60 * 1000

_MOST = 2
"""Requests about one thing on a day."""

_FINAL: tuple[FailureKind, ...] = ("refused", "unusable")
"""To ask again would give the same."""


class SetAside(msgspec.Struct, kw_only=True):
    """Something that a language model is not asked about again before tomorrow, in UTC.

    id, ts: of the event that says so. task: what it was asked for. chat: None where it is of no single chat.
    event_ids: of the messages, the daily events, or the contents of memories. until: it is asked again then.
    """

    id: str
    ts: str
    task: ModelTask
    chat: str | None
    event_ids: list[str]
    why: str
    until: str


class Failures:
    """The requests of a day that gave nothing, by what they were about."""

    def __init__(self) -> None:
        self._requests: Counter[tuple[ModelTask, str | None, str]] = Counter()
        self._last: dict[tuple[ModelTask, str | None, str], SetAside] = {}

    def add(self, about: SetAside, kind: FailureKind, requests: int) -> None:
        """Add a failure that is later than those before."""
        for event_id in about.event_ids:
            self._requests[about.task, about.chat, event_id] += max(requests, _MOST * (kind in _FINAL))
        self._last[about.task, about.chat, about.event_ids[0]] = about

    def requests(self, task: ModelTask, chat: str | None, event_ids: Iterable[str]) -> int:
        """Return how many requests the one of some events took that took most; for one that was refused, as
        many as there may be."""
        return max((self._requests[task, chat, event_id] for event_id in event_ids), default=0)

    def rests(self, task: ModelTask, chat: str | None, event_ids: Iterable[str]) -> bool:
        """Whether nobody asks about these events before tomorrow, because of one of them."""
        return self.requests(task, chat, event_ids) >= _MOST

    def set_aside(self) -> list[SetAside]:
        """Return what nobody asks about before tomorrow, the latest last."""
        return [each for each in self._last.values() if self.rests(each.task, each.chat, each.event_ids[:1])]


# Without what was distilled, summarised or compared since: a person asked again, or another copy did.
# A part of a chat is asked about in halves: it is done where both ends are.
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
        AND c.chat_id IS f.chat_id AND c.ts > f.ts
    )
END ORDER BY f.ts, f.id
"""


def failures_of_today(db: Connection, provider: str, model: str) -> Failures:
    """Return what a model gave nothing about today, in UTC."""
    since = f"{timestamps.today()}T00:00:00.000Z"
    until = _end_of_day(since)
    found = Failures()
    for *row, kind, requests in db.execute(_FAILED, (since, until, provider, model)):
        found.add(record(SetAside, row, until=until), kind, requests)
    return found


def tokens_of_today(db: Connection) -> int:
    """Return the tokens that the language model took today, in UTC, as far as events tell."""
    since = (f"{timestamps.today()}T00:00:00.000Z",)
    (tokens,) = db.execute(
        "SELECT coalesce(sum(tokens), 0) FROM ("
        " SELECT tokens_in + tokens_out AS tokens FROM closed_extractions WHERE ts >= ?1"
        " UNION ALL SELECT tokens_in + tokens_out FROM model_failures WHERE ts >= ?1)",
        since,
    ).fetchone()
    return int(tokens)


def set_aside_by(event: ModelFailed) -> SetAside:
    """Return what an event that was appended now is about, as `failures_of_today` does."""
    return SetAside(
        id=str(event.id),
        ts=str(event.ts),
        task=event.task,
        chat=event.chat_id,
        event_ids=event.event_ids,
        why=event.why,
        until=_end_of_day(str(event.ts)),
    )


def _end_of_day(ts: str) -> str:
    return timestamps.shifted(f"{ts[:10]}T00:00:00.000Z", _DAY)
