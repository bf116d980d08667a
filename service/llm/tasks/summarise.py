"""Summarises conversations: the older part of a long session, and sessions that have ended.

A summary is one event, and covers its session up to a message; the next summary continues from there.
"""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import Any

import msgspec

from memlog.eventlog import timestamps
from memlog.eventlog.codec.encode import new_id
from memlog.eventlog.events import Extraction, SummaryWritten
from memlog.eventlog.fields import Chat
from memlog.eventlog.secrets.detection import masked
from memlog.query.buffer import Unsummarised, chats_with_new_messages, unsummarised_sessions
from memlog.query.context.token_counters import count_text_tokens
from memlog.query.conversations import WindowMessage
from memlog.query.sendable import mask_messages
from memlog.service.engine.engine import Engine
from memlog.service.engine.prompts import SUMMARISE, read_prompt
from memlog.service.llm.answers import read_summary
from memlog.service.llm.task import (
    Items,
    Outcome,
    Questions,
    entry_size,
    pack_batches,
    set_aside_note,
    shorten_message,
)

_LEAST = 500
"""The fewest unsummarised tokens of an ended session that are worth a summary."""

_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"summary": {"type": "string"}},
    "required": ["summary"],
    "additionalProperties": False,
}


class Summariser:
    """Summarises the conversations of a store.

    room: the most tokens of a request, and of the newest messages, which stay unsummarised.
    """

    def __init__(self, engine: Engine, questions: Questions, room: int) -> None:
        self._engine, self._questions, self._room = engine, questions, room
        self._seen, self._day = 0, ""

    def run(self, summarised: Callable[[int], None]) -> Outcome:
        """Summarise the sessions that are due, and return the number of messages covered.

        summarised: called after each request with the number of messages; raising in it ends the run.

        Raises:
            ProviderError: the model fails; summaries already written stay.
        """
        today, done = timestamps.today(), 0
        # On a new day, messages that were set aside are sent again.
        since = self._seen if self._day == today else 0
        news, seen = self._engine.decide(lambda db: chats_with_new_messages(db, since))
        items = self._questions.begin("summarise")
        for chat in news:
            for stretch in self._engine.decide(partial(unsummarised_sessions, chat=chat)):
                told = [*stretch.covered, *(each.id for each in stretch.messages)]
                if not all(self._questions.may_be_sent(chat.channel, each) for each in told):
                    continue
                for covered in self._summarise_stretch(items, chat, stretch):
                    done += covered
                    summarised(covered)
        set_aside = [each.why for each in items.end()]
        self._seen, self._day = seen, today
        return Outcome(done, set_aside_note(set_aside))

    def _summarise_stretch(self, items: Items, chat: Chat, stretch: Unsummarised) -> Iterator[int]:
        due = stretch.messages if stretch.is_over else self._all_but_newest(stretch.messages)
        if sum(map(_message_tokens, due)) < (_LEAST if stretch.is_over else self._room):
            return
        before = stretch.before
        while due:
            part = self._first_part(due, self._room_beside(before))
            ids = [message.id for message in part]
            if items.is_set_aside(str(chat), ids):
                return
            work = partial(self._summarise, chat, stretch.first, before, part)
            written = items.attempt(str(chat), ids, work)
            if written is None:  # the next part would continue from this one
                return
            before = written
            yield len(part)
            due = due[len(part) :]

    def _room_beside(self, before: str) -> int:
        """Return how many tokens of a request remain for messages beside the previous summary."""
        return max(1, self._room - entry_size({"before": before, "messages": []}))

    def _all_but_newest(self, messages: list[WindowMessage]) -> list[WindowMessage]:
        """Return all messages except the newest, which a context shows in full."""
        room, kept = self._room, 0
        for message in reversed(messages):
            room -= _message_tokens(message)
            if room < 0:
                break
            kept += 1
        return messages[: len(messages) - kept]

    def _first_part(self, messages: list[WindowMessage], room: int) -> list[WindowMessage]:
        """Return the first messages that fit into `room` tokens, at least one."""
        count = 0
        for message in messages:
            room -= entry_size(_message_entry(message, message.content))
            if count and room < 0:
                break
            count += 1
        return messages[:count]

    def _summarise(self, chat: Chat, first: str, before: str, messages: list[WindowMessage]) -> str:
        used = read_prompt(SUMMARISE)
        contents = self._engine.decide(lambda db: mask_messages(db, chat, messages))
        shown = [_message_entry(each, content) for each, content in zip(messages, contents, strict=True)]
        if len(shown) == 1:  # truncate a message that is too long
            (shown,) = islice(pack_batches(shown, "content", self._room_beside(before)), 1)
        request = msgspec.json.encode({"before": before, "messages": shown}).decode()
        answer, _ = self._questions.ask(used.text, request, _SCHEMA, read_summary)
        name, text = new_id(), masked(answer)
        summary = SummaryWritten(
            id=name,
            channel=chat.channel,
            chat_id=chat.chat_id,
            content=text,
            from_message_id=first,
            to_message_id=messages[-1].id,
            extraction=Extraction(name, self._questions.model, used.id),
        )
        self._questions.append([summary])
        return text


def _message_entry(message: WindowMessage, content: str) -> dict[str, Any]:
    content = shorten_message(message.role, content)
    return {"role": message.role, "name": message.name, "time": message.ts, "content": content}


def _message_tokens(message: WindowMessage) -> int:
    return count_text_tokens(message.content, "model")
