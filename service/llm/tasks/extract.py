"""Distils a chat's buffer into memories and a daily event, appended together as one extraction.

So a process that is killed at any moment has either distilled the messages or left them in the buffer.
"""

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import groupby
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from memlog.eventlog import timestamps
from memlog.eventlog.errors import ProviderError
from memlog.eventlog.events import (
    DailyEventRecorded,
    Event,
    Extraction,
    MemoriesExtracted,
    MemorySaved,
    MemoryUpdated,
)
from memlog.eventlog.fields import Chat
from memlog.eventlog.files.locks import holding_lock
from memlog.eventlog.log.layout import EXTRACT_LOCK
from memlog.eventlog.secrets.detection import list_key_kinds
from memlog.projector.sqlite import Connection
from memlog.query.buffer import Buffer, BufferedMessage, count_session_memories, undistilled_buffers
from memlog.query.context.token_counters import count_text_tokens
from memlog.query.sendable import mask_messages
from memlog.service.engine.engine import Engine
from memlog.service.engine.prompts import EXTRACT
from memlog.service.llm import task
from memlog.service.llm.answers import Distilled, MemoryAnswer
from memlog.service.llm.task import Batch, ModelReply, Outcome, Questions, Task
from memlog.service.memory.compared_text import Text
from memlog.service.memory.duplicates import decide_save, similarity_of_near_duplicates
from memlog.service.memory.save import SAVED


class ExtractionReport(msgspec.Struct, kw_only=True):
    """The outcome for some messages of a chat, or for the daily events of a day.

    extraction_id: the id of the closing event; None in a dry run. messages: how many messages or daily events
        were distilled. requests: how many requests were sent to the language model.
    saved, merged: numbers of memories. known, below, refused: numbers of entries that memories already
        contained; that were under the importance threshold or over the session limit; and that were
        malformed.
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


def waiting_report(messages: int, why: str) -> ExtractionReport:
    """Return a report on messages that wait. why: the reason."""
    day = timestamps.today()
    return ExtractionReport(chat=None, date=day, extraction_id=None, messages=messages, set_aside=why)


SOURCE = "extraction"
"""The source of memories that a model distilled."""


class DistilledBatch(Batch, kw_only=True):
    """A batch that becomes memories. report: the outcome; None before the answer, or after a failure."""

    report: ExtractionReport | None = None


D = TypeVar("D", bound=DistilledBatch)


class Distilling(Task[MemoryAnswer, D]):
    """A task that distils texts into memories, and reports on each answer. One process at a time."""

    answer = MemoryAnswer

    @abstractmethod
    def _count_waiting(self) -> int:
        """Return how many messages or daily events wait for a request."""

    def distil_and_report(self, chat: Chat | None = None) -> Iterator[ExtractionReport]:
        """Distil all due items, and yield a report after each request, then reports on items set aside.

        Raises:
            Busy: another process distils. ProviderError: see `Task.run`.
        """
        with holding_lock(self._engine.path / EXTRACT_LOCK, "the extraction", self._questions.lock_timeout):
            try:
                yield from (batch.report for batch in self.run() if batch.report is not None)
            except ProviderError as error:
                if not error.is_of_budget:
                    raise
                yield waiting_report(self._count_waiting(), error.message)
                self._end_run()
            for each in self._batches_set_aside():
                if chat is None or each.chat == str(chat):
                    yield ExtractionReport(
                        chat=each.chat,
                        date=each.ts[:10],
                        extraction_id=each.id,
                        messages=len(each.event_ids),
                        set_aside=each.why,
                    )

    def run_as_job_step(self, told: Callable[[str | None], None]) -> Outcome:
        """Run the task as a job step; see `Task.run_as_job_step`."""
        done, whys = 0, []
        for report in self.distil_and_report():
            if report.set_aside is not None:
                whys.append(report.set_aside)
                told(None)
                continue
            done += report.messages
            told(
                f"distilled {report.messages} of {report.chat or report.date}: {report.saved} saved,"
                f" {report.tokens_in + report.tokens_out:,} tokens"
            )
        return Outcome(done, task.set_aside_note(whys))

    def events_that_save_memories(
        self, db: Connection, batch: D, date: str, ts: str, reply: ModelReply[MemoryAnswer]
    ) -> list[MemorySaved | MemoryUpdated]:
        """Return the events that save an answer's memories, most important first; report on them in `batch`.

        date, ts: the day and time of the answer's subject.
        """
        batch.report = report = ExtractionReport(
            chat=batch.chat,
            date=date,
            extraction_id=reply.origin.id,
            messages=len(batch.event_ids),
            requests=reply.cost.requests,
            refused=reply.refused + bool(list_key_kinds(reply.answer.summary)),
            tokens_in=reply.cost.tokens_in,
            tokens_out=reply.cost.tokens_out,
        )
        before = 0 if batch.chat is None else count_session_memories(db, Chat.of(batch.chat), SOURCE, ts)
        room = max(0, self._questions.rules.max_per_session - before)
        events: list[MemorySaved | MemoryUpdated] = []
        new: list[Text] = []
        for entry in sorted(reply.answer.memories, key=lambda each: -each.importance):
            text = Text(entry.content)
            if entry.importance < self._questions.rules.threshold or report.saved + report.merged >= room:
                report.below += 1
            elif any(similarity_of_near_duplicates(known, text) is not None for known in new):
                report.known += 1
            else:
                new.append(text)
                events += self._events_that_save_entry(db, entry, ts, report, reply.origin)
        return events

    def _events_that_save_entry(
        self, db: Connection, entry: Distilled, ts: str, report: ExtractionReport, origin: Extraction
    ) -> list[MemorySaved | MemoryUpdated]:
        event = MemorySaved(
            ts=ts,
            content=entry.content,
            kind=entry.type,
            category=entry.category,
            topic=entry.topic,
            importance=entry.importance,
            source=SOURCE,
            chat_id=report.chat,
        )
        if not task.is_storable(event, entry.content):
            report.refused += 1
            return []
        # A daily event may repeat what a chat has told.
        found = decide_save(db, self._engine.log_path, event, any_chat=report.chat is None)
        if not isinstance(found.event, MemorySaved | MemoryUpdated):
            report.known += 1
            # Record that messages confirm the memory. A daily event only repeats its messages.
            again = MemoryUpdated(ts=ts, memory_id=found.memory_id, salience=1.0, extraction=origin)
            return [again] if origin.message_ids else []
        report.saved += found.decision == SAVED
        report.merged += found.decision != SAVED
        return [replace(found.event, extraction=origin)]


class MessageBatch(DistilledBatch):
    """Messages of a chat."""

    messages: list[BufferedMessage]


class ExtractTask(Distilling[MessageBatch]):
    """Distils a store's buffers.

    chat: the only chat to distil; None for all. mode: the conversation's purpose, for the prompt.
    """

    name, job, step = "extract", "extraction", "messages"
    prompt = EXTRACT

    def __init__(
        self, engine: Engine, questions: Questions, chat: Chat | None = None, mode: str | None = None
    ) -> None:
        super().__init__(engine, questions)
        self._chat, self._mode = chat, mode

    def reports_on_plan(self) -> Iterator[ExtractionReport]:
        """Yield a report on what `distil_and_report` would send for each chat, without sending it."""
        of_prompt = count_text_tokens(self._build_system_message(self._read_prompt().text), "model")
        for buffer in self._find_buffers(self._chat):
            count, day = len(buffer.messages), self._local_day(buffer.messages[-1].ts)
            report = ExtractionReport(chat=buffer.chat, date=day, extraction_id=None, messages=count)
            for part in self._split_by_request(buffer.messages):
                entries = [self._build_entry(each, each.content) for each in part]
                for request in task.pack_batches(entries, "content", self._room):
                    report.requests += 1
                    report.tokens_in += of_prompt + sum(map(task.count_tokens_of_entry, request))
            yield report

    def _count_waiting(self) -> int:
        return sum(len(buffer.messages) for buffer in self._find_buffers(self._chat))

    def withheld_reports(self) -> list[ExtractionReport]:
        """Return a report on messages that are not sent because they were imported; [] if there are none."""
        kept: Counter[str] = Counter()
        for buffer in self._decide(lambda db: list(undistilled_buffers(db, self._chat))):
            channel = Chat.of(buffer.chat).channel
            kept[channel] += sum(
                not self._questions.may_be_sent(channel, each.id) for each in buffer.messages
            )
        names = [channel for channel, count in sorted(kept.items()) if count]
        why = f"imported, and extraction.channels does not name {', '.join(names)}"
        return [waiting_report(kept.total(), why)] if names else []

    def find_batches(self) -> Iterator[MessageBatch]:
        """Yield the messages of each buffer that is due, within the token limit and of one day."""
        due = [buffer.chat for buffer in self._find_buffers(self._chat) if self._is_due(buffer)]
        for name in due:
            # Read again: the chat may have been forgotten while the model worked on another.
            for buffer in self._find_buffers(Chat.of(name)):
                for part in self._split_by_request(buffer.messages):
                    yield from self._halve_if_failed(name, part)

    def _halve_if_failed(self, chat: str, part: list[BufferedMessage]) -> Iterator[MessageBatch]:
        """Yield a part of a buffer; if a request about the whole part has failed, its halves."""
        ids = [message.id for message in part]
        is_first = not self._has_failed(chat, ids)
        if is_first:
            yield self._build_batch(chat, part)
        is_tried_again = not is_first or len(part) > 1
        if is_tried_again and self._has_failed(chat, ids) and not self._is_set_aside(chat, ids):
            middle = len(part) // 2
            for half in filter(None, (part[:middle], part[middle:])):
                yield self._build_batch(chat, half)

    def _build_batch(self, chat: str, messages: list[BufferedMessage]) -> MessageBatch:
        """Return a batch, with keys masked and long messages split."""
        contents = self._decide(lambda db: mask_messages(db, Chat.of(chat), messages))
        entries = (self._build_entry(each, content) for each, content in zip(messages, contents, strict=True))
        return MessageBatch(
            chat=chat,
            event_ids=[message.id for message in messages],
            requests=[*task.pack_batches(entries, "content", self._room)],
            messages=messages,
        )

    def events_of_reply(
        self, db: Connection, batch: MessageBatch, reply: ModelReply[MemoryAnswer]
    ) -> list[Event] | None:
        """Return the memories and the daily event."""
        chat, last = Chat.of(str(batch.chat)), batch.messages[-1]
        waiting = {each.id for buffer in self._sendable_buffers(db, chat) for each in buffer.messages}
        if not waiting.issuperset(batch.event_ids):
            return None
        origin = reply.origin = replace(reply.origin, message_ids=batch.event_ids, chat_id=batch.chat)
        day = self._local_day(last.ts)
        events: list[Event] = [*self.events_that_save_memories(db, batch, day, last.ts, reply)]
        assert batch.report is not None
        summary = reply.answer.summary
        if summary and not list_key_kinds(summary):
            batch.report.summary = summary
            events.append(
                DailyEventRecorded(
                    event_date=day,
                    channel=chat.channel,
                    sender_id=chat.chat_id,
                    summary=summary,
                    raw_tokens=sum(count_text_tokens(each.content, "model") for each in batch.messages),
                    extraction=origin,
                )
            )
        refused = batch.report.refused - reply.refused
        return [
            *events,
            reply.closing_event(MemoriesExtracted, refused, chat_id=batch.chat, message_ids=batch.event_ids),
        ]

    def _build_system_message(self, prompt: str) -> str:
        zone = getattr(self._questions.zone, "key", None) or timestamps.name_zone_at(
            timestamps.convert_to_zone(timestamps.now(), None)
        )
        text = f"{prompt}\nTimes are of the zone {zone}.\n"
        return text if self._mode is None else f"{text}\nThe conversation is of the mode: {self._mode}\n"

    def _find_buffers(self, chat: Chat | None) -> list[Buffer]:
        return self._decide(partial(self._sendable_buffers, chat=chat))

    def _sendable_buffers(self, db: Connection, chat: Chat | None) -> list[Buffer]:
        """Return the buffers that have messages to send, without the messages that may not be sent."""
        found = list(undistilled_buffers(db, chat))
        for buffer in found:
            channel = Chat.of(buffer.chat).channel
            buffer.messages = [
                each for each in buffer.messages if self._questions.may_be_sent(channel, each.id)
            ]
        return [buffer for buffer in found if buffer.messages]

    def _is_due(self, buffer: Buffer) -> bool:
        """Whether a buffer is due: on request, after a quiet period, at the token limit, or on a new day."""
        waiting = [
            each
            for part in self._split_by_request(buffer.messages)
            if not self._is_set_aside(buffer.chat, (one.id for one in part))
            for each in part
        ]
        if not waiting or self._questions.is_requested:
            return bool(waiting)
        now = timestamps.now()
        quiet_since = timestamps.shift_timestamp(now, -round(self._questions.rules.quiet_minutes * 60_000))
        is_of_before = self._local_day(waiting[0].ts) < self._local_day(now)
        is_quiet = waiting[-1].ts <= quiet_since
        return is_of_before or is_quiet or sum(map(self._count_tokens, waiting)) >= self._room

    def _split_by_request(self, messages: list[BufferedMessage]) -> Iterator[list[BufferedMessage]]:
        """Yield each request's messages: within the token limit, and from one day, as summaries are."""
        for _, of_day in groupby(messages, key=lambda message: self._local_day(message.ts)):
            left = list(of_day)
            while left:
                yield (
                    part := task.take_items_that_fit(left, self._count_tokens, self._room - task.FRAME)
                    or left[:1]
                )
                left = left[len(part) :]

    def _local_day(self, ts: str) -> str:
        """Return the day of a timestamp in the user's time zone."""
        return str(timestamps.convert_to_zone(ts, self._questions.zone).date())

    def _build_entry(self, message: BufferedMessage, content: str) -> dict[str, Any]:
        time = timestamps.convert_to_zone(message.ts, self._questions.zone).isoformat(timespec="minutes")
        shown = task.shorten_message(message.role, content)
        return {"role": message.role, "name": message.name, "time": time, "content": shown}

    def _count_tokens(self, message: BufferedMessage) -> int:
        return task.count_tokens_of_entry(self._build_entry(message, message.content))


TASK = ExtractTask
