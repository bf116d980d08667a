"""Distils the buffer of a chat: asks a language model, and appends its answer as one extraction.

The events of an extraction, the closing event last, are appended together. So a process that is killed at any
moment has either distilled the messages or left them in the buffer.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import tzinfo
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from memlog.eventlog import timestamps
from memlog.eventlog.codec.encode import draft, new_id
from memlog.eventlog.errors import BadInput, ProviderError
from memlog.eventlog.events import (
    DailyEventRecorded,
    DailyEventsCompressed,
    Event,
    Extraction,
    MemoriesExtracted,
    MemorySaved,
    MemoryUpdated,
)
from memlog.eventlog.fields import Chat
from memlog.eventlog.files.locks import locked
from memlog.eventlog.log.layout import EXTRACT_LOCK, LOG
from memlog.eventlog.secrets.detection import kinds_in
from memlog.eventlog.secrets.outgoing import SentText, mask_parts
from memlog.eventlog.settings import ExtractionRules
from memlog.projector.sqlite import Connection
from memlog.query.buffer import Buffer, BufferedMessage, SetAside, buffers, count_session_memories
from memlog.query.context.token_counters import count_text_tokens
from memlog.query.records import DailyEvent, daily_events
from memlog.query.sendable import mask_messages
from memlog.service.engine.prompts import COMPRESS, EXTRACT, read_prompt
from memlog.service.engine.read_model import Deciding
from memlog.service.llm.answers import SCHEMA, Distilled, ModelAnswer, read_answer
from memlog.service.llm.model import Completion
from memlog.service.llm.task import FRAME, Items, Questions, entry_size, pack_batches, shorten_message
from memlog.service.memory.compared_text import Text
from memlog.service.memory.duplicates import decide_save, similarity
from memlog.service.memory.save import SAVED


class ExtractionReport(msgspec.Struct, kw_only=True):
    """The outcome for some messages of a chat, or for the daily events of a day.

    extraction_id: the id of the closing event; None in a dry run. messages: how many messages or daily events
        were distilled. requests: how many requests were sent to the language model.
    saved, merged: numbers of memories. known, below, refused: numbers of entries: that memories already
        contained; under the importance threshold or over the limit of a session; malformed.
    tokens_in, tokens_out: counted by the provider; in a dry run, memlog's estimate for the questions.
    set_aside: why the messages are not sent again before tomorrow (UTC); then `date` is today, and
        `extraction_id` is the id of the failure event. Without an `extraction_id`, why the messages wait: the
        daily token budget is spent, or they were imported and the settings do not name their channel.
    """

    chat: str | None
    date: str
    extraction_id: str | None
    messages: int
    requests: int = 0
    saved: int = 0
    merged: int = 0
    known: int = 0
    below: int = 0
    refused: int = 0
    summary: str | None = None
    tokens_in: int = 0
    tokens_out: int = 0
    set_aside: str | None = None


def build_report(
    chat: str | None,
    date: str,
    origin: Extraction,
    count: int,
    answer: ModelAnswer,
    completions: list[Completion],
) -> ExtractionReport:
    """Return a report with the number of messages, and the tokens and number of the requests."""
    return ExtractionReport(
        chat=chat,
        date=date,
        extraction_id=origin.id,
        messages=count,
        requests=sum(each.requests for each in completions),
        refused=answer.refused,
        tokens_in=sum(each.tokens_in for each in completions),
        tokens_out=sum(each.tokens_out for each in completions),
    )


def waiting_report(messages: int, why: str) -> ExtractionReport:
    """Return a report on messages that wait. why: the reason."""
    day = timestamps.today()
    return ExtractionReport(chat=None, date=day, extraction_id=None, messages=messages, set_aside=why)


def set_aside_report(about: SetAside) -> ExtractionReport:
    """Return a report on messages that are set aside."""
    return ExtractionReport(
        chat=about.chat,
        date=about.ts[:10],
        extraction_id=about.id,
        messages=len(about.event_ids),
        set_aside=about.why,
    )


SOURCE = "extraction"
"""The source of memories that a model distilled."""


class Extractor:
    """Distils messages of the store at `path`.

    decide: calls a function with the read model after it has caught up. questions: asks the language model.
    zone: the user's time zone, which defines days; None for the system's.
    """

    def __init__(
        self,
        path: Path,
        decide: Deciding,
        questions: Questions,
        rules: ExtractionRules,
        zone: tzinfo | None,
    ) -> None:
        self._path, self._decide, self._rules, self._zone = path, decide, rules, zone
        self._questions = questions

    def run(
        self, chat: Chat | None, mode: str | None, *, lock_timeout: float, is_requested: bool
    ) -> Iterator[ExtractionReport]:
        """Distil the buffers that are due, and yield a report after each request. One process at a time.

        The last reports are on messages that are set aside. mode: the conversation's purpose, for the prompt.
        is_requested: whether a person requested the run, so that buffers need not be due.

        Raises:
            Busy: another process distils. ProviderError: the model fails; the rest stays in the buffer.
        """
        with locked(self._path / EXTRACT_LOCK, "the extraction", lock_timeout):
            items = self._questions.begin("extract")
            due = [
                each.chat
                for each in self._find_buffers(chat)
                if self._is_due(items, each, is_requested=is_requested)
            ]
            try:
                for name in due:
                    yield from self._distil_chat(items, name, mode)
            except ProviderError as error:
                if not error.is_of_budget:
                    raise
                waiting = sum(len(buffer.messages) for buffer in self._find_buffers(chat))
                yield waiting_report(waiting, error.message)
            yield from map(set_aside_report, items.end(chat and str(chat)))

    def plan(self, chat: Chat | None, mode: str | None) -> Iterator[ExtractionReport]:
        """Yield a report on what `run` would send for each chat, without sending it."""
        of_prompt = count_text_tokens(self._system_prompt(mode), "model")
        for buffer in self._find_buffers(chat):
            count, day = len(buffer.messages), self._local_day(buffer.messages[-1].ts)
            report = ExtractionReport(chat=buffer.chat, date=day, extraction_id=None, messages=count)
            for part in self._split_by_request(buffer.messages):
                entries = [self._build_entry(each, each.content) for each in part]
                for request in pack_batches(entries, "content", self._rules.tokens):
                    report.requests += 1
                    report.tokens_in += of_prompt + sum(map(entry_size, request))
            yield report

    def _find_buffers(self, chat: Chat | None) -> list[Buffer]:
        return self._decide(partial(self._sendable_buffers, chat=chat))

    def _sendable_buffers(self, db: Connection, chat: Chat | None) -> list[Buffer]:
        """Return the buffers that have messages to send, without the messages that may not be sent."""
        found = list(buffers(db, chat))
        for buffer in found:
            channel = Chat.of(buffer.chat).channel
            buffer.messages = [
                each for each in buffer.messages if self._questions.may_be_sent(channel, each.id)
            ]
        return [buffer for buffer in found if buffer.messages]

    def report_withheld(self, chat: Chat | None) -> list[ExtractionReport]:
        """Return a report on messages that are not sent because they were imported; [] if there are none."""
        waiting = self._decide(lambda db: list(buffers(db, chat)))
        kept: Counter[str] = Counter()
        for buffer in waiting:
            channel = Chat.of(buffer.chat).channel
            kept[channel] += sum(
                not self._questions.may_be_sent(channel, each.id) for each in buffer.messages
            )
        names = [channel for channel, count in sorted(kept.items()) if count]
        why = f"imported, and extraction.channels does not name {', '.join(names)}"
        return [waiting_report(kept.total(), why)] if names else []

    def _distil_chat(self, items: Items, name: str, mode: str | None) -> Iterator[ExtractionReport]:
        # Read again: the chat may have been forgotten while the model worked on another.
        for buffer in self._find_buffers(Chat.of(name)):
            for part in self._split_by_request(buffer.messages):
                yield from self._distil_part(items, name, part, mode)

    def _distil_part(
        self, items: Items, chat: str, part: list[BufferedMessage], mode: str | None
    ) -> Iterator[ExtractionReport]:
        """Distil a part of a buffer; if a request about the whole part has failed, distil its halves."""
        ids = [message.id for message in part]
        is_first = not items.has_failed(chat, ids)
        if is_first:
            yield from self._distil_request(items, chat, part, mode)
        is_tried_again = not is_first or len(part) > 1
        if is_tried_again and items.has_failed(chat, ids) and not items.is_set_aside(chat, ids):
            middle = len(part) // 2
            for half in filter(None, (part[:middle], part[middle:])):
                yield from self._distil_request(items, chat, half, mode)

    def _distil_request(
        self, items: Items, chat: str, messages: list[BufferedMessage], mode: str | None
    ) -> Iterator[ExtractionReport]:
        ids = [message.id for message in messages]
        report = items.attempt(chat, ids, partial(self._distil, chat, messages, mode))
        if report is not None:
            yield report

    def run_days(self, until: str, *, lock_timeout: float) -> Iterator[ExtractionReport]:
        """Distil the pending daily events up to a day, and yield a report after each day.

        The last reports are on daily events that are set aside.

        Raises:
            Busy: another process distils. ProviderError: the model fails; the rest stays pending.
        """
        with locked(self._path / EXTRACT_LOCK, "the extraction", lock_timeout):

            def find_due(db: Connection) -> tuple[int, list[DailyEvent]]:
                waiting = daily_events(db, until=until, uncompressed=True)
                return len(waiting), self._questions.sendable_days(db, waiting)

            waiting, found = self._decide(find_due)
            if kept := waiting - len(found):
                yield waiting_report(kept, "imported, and extraction.channels does not name their channels")
            items = self._questions.begin("compress")
            left = len(found)
            try:
                for (date, _), of_chat in groupby(sorted(found, key=_group_key), key=_group_key):
                    events = list(of_chat)
                    chat, ids = _private_chat(events[0]), [event.id for event in events]
                    if not items.is_set_aside(chat, ids):
                        report = items.attempt(chat, ids, partial(self._distil_days, date, chat, events))
                        if report is not None:
                            yield report
                    left -= len(events)
            except ProviderError as error:
                if not error.is_of_budget:
                    raise
                yield waiting_report(left, error.message)
            yield from map(set_aside_report, items.end())

    def _distil_days(self, date: str, chat: str | None, days: list[DailyEvent]) -> ExtractionReport:
        """Distil daily events of one chat into memories that only that chat sees."""
        used = read_prompt(COMPRESS)
        summaries = mask_parts([SentText(each.summary) for each in days])
        shown = [
            {"date": each.event_date, "channel": each.channel, "summary": summary}
            for each, summary in zip(days, summaries, strict=True)
        ]
        parts = pack_batches(shown, "summary", self._rules.tokens)
        answer, completions = self._ask_all(used.text, *map(_encode_entries, parts))
        origin = Extraction(new_id(), self._questions.model, used.id, chat_id=chat)
        ts = min(f"{date}T12:00:00.000Z", timestamps.now())

        def decide_events(db: Connection) -> tuple[ExtractionReport, list[MemorySaved | MemoryUpdated]]:
            report = build_report(chat, date, origin, len(days), answer, completions)
            return report, self._events_of_answer(db, chat, ts, answer, origin, report)

        report, memories = self._decide(decide_events)
        closing = DailyEventsCompressed(
            id=origin.id,
            ids=[each.id for each in days],
            memory_ids=[str(event.memory_id) for event in memories],
        )
        self._questions.append([*memories, closing])
        return report

    def _is_due(self, items: Items, buffer: Buffer, *, is_requested: bool) -> bool:
        """Whether a buffer is due: on request, after a quiet period, at the token limit, or on a new day."""
        parts = self._split_by_request(buffer.messages)
        waiting = [
            each
            for part in parts
            if not items.is_set_aside(buffer.chat, (one.id for one in part))
            for each in part
        ]
        if not waiting or is_requested:
            return bool(waiting)
        now = timestamps.now()
        quiet_since = timestamps.shift(now, -round(self._rules.quiet_minutes * 60_000))
        is_of_before = self._local_day(waiting[0].ts) < self._local_day(now)
        is_quiet = waiting[-1].ts <= quiet_since
        return is_of_before or is_quiet or self._count_tokens(waiting) >= self._rules.tokens

    def _split_by_request(self, messages: list[BufferedMessage]) -> Iterator[list[BufferedMessage]]:
        """Yield the messages of each request: within the token limit and of one day, since a summary is."""
        for _, of_day in groupby(messages, key=lambda message: self._local_day(message.ts)):
            part: list[BufferedMessage] = []
            room = self._rules.tokens - FRAME
            for message in of_day:
                needed = self._count_tokens([message])
                if part and needed > room:
                    yield part
                    part, room = [], self._rules.tokens - FRAME
                part.append(message)
                room -= needed
            yield part

    def _distil(
        self, chat: str, messages: list[BufferedMessage], mode: str | None
    ) -> ExtractionReport | None:
        """Distil messages, and return the report; None if some have been forgotten or distilled meanwhile."""
        used, of = read_prompt(EXTRACT), Chat.of(chat)
        answer, completions = self._ask_all(self._system_prompt(mode), *self._build_requests(of, messages))
        ids = [message.id for message in messages]
        origin = Extraction(new_id(), self._questions.model, used.id, message_ids=ids, chat_id=chat)

        def decide_events(db: Connection) -> tuple[ExtractionReport, list[Event]] | None:
            if not {
                each.id for buffer in self._sendable_buffers(db, of) for each in buffer.messages
            }.issuperset(ids):
                return None
            day = self._local_day(messages[-1].ts)
            report = build_report(chat, day, origin, len(messages), answer, completions)
            return report, [*self._events_of_answer(db, chat, messages[-1].ts, answer, origin, report)]

        distilled = self._decide(decide_events)
        if distilled is None:
            return None
        report, events = distilled
        if answer.summary:
            report.summary = answer.summary
            events.append(
                DailyEventRecorded(
                    event_date=report.date,
                    channel=of.channel,
                    sender_id=of.chat_id,
                    summary=answer.summary,
                    raw_tokens=sum(count_text_tokens(each.content, "model") for each in messages),
                    extraction=origin,
                )
            )
        closing = MemoriesExtracted(
            id=origin.id,
            chat_id=chat,
            message_ids=origin.message_ids,
            model=origin.model,
            prompt=origin.prompt,
            tokens_in=report.tokens_in,
            tokens_out=report.tokens_out,
            refused=report.refused,
        )
        self._questions.append([*events, closing])
        return report

    def _ask_all(self, system: str, *request: str) -> tuple[ModelAnswer, list[Completion]]:
        """Send all requests, and return their answers as one, with each answer's cost."""
        completions: list[Completion] = []
        whole = ModelAnswer([])
        for user in request:
            answer, made = self._questions.ask(system, user, SCHEMA, read_answer)
            completions.append(made)
            whole.memories += answer.memories
            whole.summary = f"{whole.summary} {answer.summary}".strip()
            whole.refused += answer.refused
        if kinds_in(whole.summary):
            whole.summary, whole.refused = "", whole.refused + 1
        return whole, completions

    def _build_requests(self, chat: Chat, messages: list[BufferedMessage]) -> list[str]:
        """Return the requests with the messages as data, with keys masked and long messages split."""
        contents = self._decide(lambda db: mask_messages(db, chat, messages))
        entries = (self._build_entry(each, content) for each, content in zip(messages, contents, strict=True))
        return [*map(_encode_entries, pack_batches(entries, "content", self._rules.tokens))]

    def _system_prompt(self, mode: str | None) -> str:
        zone = getattr(self._zone, "key", None) or timestamps.zone_name(
            timestamps.in_zone(timestamps.now(), None)
        )
        text = f"{read_prompt(EXTRACT).text}\nTimes are of the zone {zone}.\n"
        return text if mode is None else f"{text}\nThe conversation is of the mode: {mode}\n"

    def _local_day(self, ts: str) -> str:
        """Return the day of a time in the user's time zone."""
        return str(timestamps.in_zone(ts, self._zone).date())

    def _build_entry(self, message: BufferedMessage, content: str) -> dict[str, Any]:
        time = timestamps.in_zone(message.ts, self._zone).isoformat(timespec="minutes")
        shown = shorten_message(message.role, content)
        return {"role": message.role, "name": message.name, "time": time, "content": shown}

    def _count_tokens(self, messages: Sequence[BufferedMessage]) -> int:
        return sum(entry_size(self._build_entry(message, message.content)) for message in messages)

    def _events_of_answer(
        self,
        db: Connection,
        chat: str | None,
        ts: str,
        answer: ModelAnswer,
        origin: Extraction,
        report: ExtractionReport,
    ) -> list[MemorySaved | MemoryUpdated]:
        """Return the events that save an answer's memories, most important first; count them in `report`.

        ts: the time of what the answer is about.
        """
        before = 0 if chat is None else count_session_memories(db, Chat.of(chat), SOURCE, ts)
        room = max(0, self._rules.max_per_session - before)
        events: list[MemorySaved | MemoryUpdated] = []
        new: list[Text] = []
        for entry in sorted(answer.memories, key=lambda each: -each.importance):
            text = Text(entry.content)
            if entry.importance < self._rules.threshold or report.saved + report.merged >= room:
                report.below += 1
            elif any(similarity(known, text) is not None for known in new):
                report.known += 1
            else:
                new.append(text)
                events += self._events_of_entry(db, chat, ts, entry, origin, report)
        return events

    def _events_of_entry(
        self,
        db: Connection,
        chat: str | None,
        ts: str,
        entry: Distilled,
        origin: Extraction,
        report: ExtractionReport,
    ) -> list[MemorySaved | MemoryUpdated]:
        event = MemorySaved(
            ts=ts,
            content=entry.content,
            kind=entry.kind,
            category=entry.category,
            topic=entry.topic,
            importance=entry.importance,
            source=SOURCE,
            chat_id=chat,
        )
        try:
            draft(event)
        except BadInput:
            report.refused += 1
            return []
        if kinds_in(entry.content):  # the model saw no keys, but may invent one
            report.refused += 1
            return []
        # A daily event may repeat what a chat has told.
        found = decide_save(db, self._path / LOG, event, any_chat=chat is None)
        if not isinstance(found.event, MemorySaved | MemoryUpdated):
            report.known += 1
            # Record that messages confirm the memory. A daily event only repeats its messages.
            again = MemoryUpdated(ts=ts, memory_id=found.memory_id, salience=1.0, extraction=origin)
            return [again] if origin.message_ids else []
        report.saved += found.decision == SAVED
        report.merged += found.decision != SAVED
        return [replace(found.event, extraction=origin)]


def _private_chat(event: DailyEvent) -> str | None:
    """Return the only chat that may see a daily event: its own, or its sender's; None if all chats may."""
    told_by = f"{event.channel}:{event.sender_id}" if event.channel and event.sender_id else None
    return event.chat or told_by


def _group_key(event: DailyEvent) -> tuple[str, str]:
    """Return the day and the owner of a daily event; no context shows events of two owners together."""
    is_of_all = event.channel is None and event.sender_id is None
    place = "" if is_of_all else f"{event.channel or ''}:{event.sender_id or ''}"
    return event.event_date, _private_chat(event) or place


def _encode_entries(part: list[dict[str, Any]]) -> str:
    return msgspec.json.encode(part).decode()
