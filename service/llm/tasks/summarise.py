"""Summarises conversations: the older part of a long session, and sessions that have ended.

A summary is one event, and covers its session up to a message; the next summary continues from there.
"""

from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import Any

import msgspec

from memlog.eventlog import timestamps
from memlog.eventlog.events import Event, SummaryWritten
from memlog.eventlog.fields import Chat
from memlog.eventlog.secrets.detection import mask_keys
from memlog.projector.sqlite import Connection
from memlog.query.buffer import Unsummarised, chats_with_new_messages, unsummarised_sessions
from memlog.query.context.token_counters import count_text_tokens
from memlog.query.conversations import WindowMessage
from memlog.query.sendable import mask_messages
from memlog.service.engine.engine import Engine
from memlog.service.llm import task
from memlog.service.llm.task import Batch, ModelReply, Questions, Task

_LEAST = 500
"""The minimum number of unsummarised tokens for which an ended session is worth a summary."""


class SummaryAnswer(msgspec.Struct):
    """The summary of a part of a conversation."""

    summary: str


class SummaryBatch(Batch):
    """Consecutive messages of a session. first: the id of the session's first message."""

    first: str
    text: str = ""


class SummaryTask(Task[SummaryAnswer, SummaryBatch]):
    """Summarises a store's due sessions; the newest messages of an open session are left out."""

    name, job, step = "summarise", "summaries", "messages"
    prompt = "summarise-1"
    answer = SummaryAnswer

    def __init__(self, engine: Engine, questions: Questions) -> None:
        super().__init__(engine, questions)
        self._seen, self._day = 0, ""
        self._news: list[Chat] = []

    def run(self) -> Iterator[SummaryBatch]:
        """Summarise all due sessions; see `Task.run`."""
        today = timestamps.today()
        # On a new day, messages that were set aside are sent again.
        since = self._seen if self._day == today else 0
        self._news, seen = self._decide(lambda db: chats_with_new_messages(db, since))
        yield from super().run()
        self._seen, self._day = seen, today

    def find_batches(self) -> Iterator[SummaryBatch]:
        """Yield the messages of each summary in turn."""
        for chat in self._news:
            for stretch in self._decide(partial(unsummarised_sessions, chat=chat)):
                told = [*stretch.covered, *(each.id for each in stretch.messages)]
                if all(self._questions.may_be_sent(chat.channel, each) for each in told):
                    yield from self._split_stretch(chat, stretch)

    def _split_stretch(self, chat: Chat, stretch: Unsummarised) -> Iterator[SummaryBatch]:
        due = stretch.messages
        if not stretch.is_over:  # a context shows the newest messages in full
            newest = task.take_items_that_fit(reversed(due), _message_tokens, self._room)
            due = due[: len(due) - len(newest)]
        if sum(map(_message_tokens, due)) < (_LEAST if stretch.is_over else self._room):
            return
        before = stretch.before
        while due:
            room = max(1, self._room - task.count_tokens_of_entry({"before": before, "messages": []}))
            messages = task.take_items_that_fit(due, _count_tokens_of_entry, room) or due[:1]
            contents = self._decide(partial(mask_messages, chat=chat, messages=messages))
            shown = [_message_entry(each, content) for each, content in zip(messages, contents, strict=True)]
            if len(shown) == 1:  # truncate a message that is too long
                (shown,) = islice(task.pack_batches(shown, "content", room), 1)
            part = SummaryBatch(
                chat=str(chat),
                event_ids=[message.id for message in messages],
                requests=[{"before": before, "messages": shown}],
                first=stretch.first,
            )
            yield part
            if not part.is_done:  # the next part would continue from this one
                return
            before, due = part.text, due[len(messages) :]

    def events_of_reply(
        self, _: Connection, batch: SummaryBatch, reply: ModelReply[SummaryAnswer]
    ) -> list[Event]:
        """Return the summary, which is its own closing event."""
        batch.text, batch.count = mask_keys(reply.answer.summary), len(batch.event_ids)
        batch.line = f"summarised {batch.count} messages"
        chat = Chat.of(str(batch.chat))
        return [
            SummaryWritten(
                id=reply.origin.id,
                channel=chat.channel,
                chat_id=chat.chat_id,
                content=batch.text,
                from_message_id=batch.first,
                to_message_id=batch.event_ids[-1],
                extraction=reply.origin,
            )
        ]


def _message_entry(message: WindowMessage, content: str) -> dict[str, Any]:
    content = task.shorten_message(message.role, content)
    return {"role": message.role, "name": message.name, "time": message.ts, "content": content}


def _count_tokens_of_entry(message: WindowMessage) -> int:
    return task.count_tokens_of_entry(_message_entry(message, message.content))


def _message_tokens(message: WindowMessage) -> int:
    return count_text_tokens(message.content, "model")


TASK = SummaryTask
