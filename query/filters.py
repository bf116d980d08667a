"""Filters of a search. They apply inside both sides, before the cut."""

import json
from collections.abc import Collection, Iterable
from typing import Annotated, Any, Literal

from memlog.eventlog.categories import CATEGORIES, OTHER, known_category
from memlog.eventlog.struct_fields import Local, Reads
from memlog.query.facts.topic_keys import same_key
from memlog.query.request import ChatField, Ids, Request, Time, Unit

Kind = Literal["message", "memory", "document"]
Role = Literal["user", "assistant", "system", "tool"]
Sql = tuple[str, list[Any]]
"""A condition and its values."""

MEMORY_CHUNKS = (
    "memory_chunks c LEFT JOIN memories y ON y.memory_id = c.memory_id"
    " LEFT JOIN facts f ON f.fact_id = c.fact_id"
    " LEFT JOIN documents d ON d.document_id = c.document_id"
)
"""What `Filters.of_memories` is a condition on, where c.message_id is null."""

DOC_CHUNKS = "doc_chunks c JOIN documents d ON d.document_id = c.document_id"
"""What `Filters.of_documents` is a condition on."""

CONVERSATION = "conversation"
"""The source of messages."""

SUMMARIES = "summaries"
"""The category that summaries are found under."""

FACTS = "facts"
"""The category that facts are found under."""

DAILY_EVENTS = "daily_events"
"""The category that daily events are found under."""

FOUND_UNDER = (*CATEGORIES, FACTS, DAILY_EVENTS)
"""Every category that memlog finds a memory under."""

_CATEGORY = (
    f"CASE WHEN c.summary_id IS NOT NULL THEN '{SUMMARIES}' WHEN c.fact_id IS NOT NULL THEN '{FACTS}'"
    f" WHEN c.daily_event_id IS NOT NULL THEN '{DAILY_EVENTS}' ELSE y.category END"
)

# A daily event is of no chat, but where it names a channel or a sender it is somebody's.
_OWN_SCOPE = (
    "(c.chat_id IS NULL AND (c.daily_event_id IS NULL OR EXISTS (SELECT 1 FROM daily_events v"
    " WHERE v.stream = c.stream AND v.id = c.daily_event_id AND v.channel IS NULL AND v.sender_id IS NULL)))"
)


def _found_under(category: str) -> str:
    return category if category in FOUND_UNDER else known_category(category)


class Filters(Request, frozen=True, kw_only=True):
    """What hits must be. A kind of hit that lacks a filtered property is left out: a memory has no role, a
    message no category, a document neither of them and no chat.

    Raises:
        BadInput: a value is not of its field's type, or there is no such category.
    """

    kinds: Annotated[frozenset[Kind] | None, "Only hits of these kinds; all by default."] = None
    chat: Annotated[ChatField | None, "Only hits of this conversation."] = None
    role: Annotated[Role | None, "Only messages of this role."] = None
    speaker: Annotated[str | None, "Only messages of the speaker with this name."] = None
    category: Annotated[
        str | None,
        "Only memories of this category; `other` includes categories that memlog does not know.",
        Reads(_found_under, "category", choices=FOUND_UNDER),
    ] = None
    source: Annotated[
        str | None,
        (
            "Only hits of this source, as hits name it: conversation, manual, summary, fact, daily_event, a"
            " file of memories, a source of documents."
        ),
    ] = None
    topic: Annotated[str | None, "Only memories and facts of this topic, in any spelling."] = None
    tag: Annotated[str | None, "Only memories with this tag."] = None
    min_salience: Annotated[Unit, "Leave out memories that have faded below this salience."] = 0.0
    since: Annotated[Time | None, "Only hits from this time on (2026-02-24, or RFC 3339)."] = None
    until: Annotated[Time | None, "Only hits before this time."] = None
    exclude: Annotated[Ids, "Leave out these events, memories or documents."] = frozenset()
    own_scope: Annotated[
        bool, Local(is_callback=False), "Include memories of no chat beside those of `chat`."
    ] = False

    @property
    def is_empty(self) -> bool:
        """Whether everything may be a hit."""
        return self == Filters()

    def of_messages(self) -> Sql | None:
        """On `messages m`; None where no message can be a hit."""
        if self._is_of_memories or self.source not in (None, CONVERSATION) or not self._wants("message"):
            return None
        given: list[Sql] = [("m.type <> ?", ["session_break"])]
        if self.chat is not None:
            given.append(("m.channel = ? AND m.chat_id = ?", [*self.chat]))
        if self.role is not None:
            given.append(("m.role = ?", [self.role]))
        if self.speaker is not None:
            given.append(("m.name = ?", [self.speaker]))
        return _all(given + self._not_excluded("m.id") + self._times("m.created_at"))

    def of_memories(self) -> Sql | None:
        """On `MEMORY_CHUNKS`; None where no memory can be a hit."""
        if self._is_of_messages or not self._wants("memory"):
            return None
        given: list[Sql] = []
        if self.chat is not None:
            scope = f"(c.chat_id = ? OR {_OWN_SCOPE})" if self.own_scope else "c.chat_id = ?"
            given.append((scope, [":".join(self.chat)]))
        if self.category is not None:
            given.append(of_categories(_CATEGORY, [self.category], known=FOUND_UNDER))
        if self.source is not None:
            given.append(("c.source = ?", [self.source]))
        if self.topic is not None:
            is_topic = "(coalesce(y.topic, f.topic_key) = ? OR f.topic_key = ?)"
            given.append((is_topic, [self.topic, same_key(self.topic)]))
        if self.tag is not None:
            given.append(("? IN (SELECT value FROM json_each(y.tags))", [self.tag]))
        if self.min_salience > 0:
            given.append(("coalesce(y.salience, 1) >= ?", [self.min_salience]))
        owner = "coalesce(c.memory_id, c.summary_id, c.fact_id, c.daily_event_id, c.document_id)"
        given += self._not_excluded(owner, "coalesce(y.event_id, f.event_id, d.event_id, '')")
        return _all(given + self._times("c.updated_at"))

    def of_documents(self) -> Sql | None:
        """On `DOC_CHUNKS`; None where no document can be a hit."""
        if self._is_of_memories or self._is_of_messages or self.chat is not None:
            return None
        if not self._wants("document"):
            return None
        given: list[Sql] = [("d.source_id = ?", [self.source])] if self.source is not None else []
        return _all(given + self._not_excluded("c.document_id", "d.event_id") + self._times("c.updated_at"))

    @property
    def _is_of_memories(self) -> bool:
        """Whether something is asked for that memories alone have, and what is found as they are."""
        return (self.category, self.topic, self.tag) != (None, None, None)

    @property
    def _is_of_messages(self) -> bool:
        """Whether a property is filtered that only messages have."""
        return (self.role, self.speaker) != (None, None)

    def _not_excluded(self, *columns: str) -> list[Sql]:
        if not self.exclude:
            return []
        ids = json.dumps(sorted(self.exclude))
        return [(f"{column} NOT IN (SELECT value FROM json_each(?))", [ids]) for column in columns]

    def _wants(self, kind: Kind) -> bool:
        return self.kinds is None or kind in self.kinds

    def _times(self, column: str) -> list[Sql]:
        bounds = ((self.since, ">="), (self.until, "<"))
        return [(f"{column} {sign} ?", [time]) for time, sign in bounds if time is not None]


def of_categories(column: str, categories: Iterable[str], *, known: Collection[str] = CATEGORIES) -> Sql:
    """On a `column` of categories: that it is one of `categories`. What is not `known` is `other`.

    Raises:
        BadInput: there is no such category.
    """
    asked = {each if each in known else known_category(each) for each in categories}
    sign, names = ("NOT IN", {*known} - asked) if OTHER in asked else ("IN", asked)
    return f"{column} {sign} (SELECT value FROM json_each(?))", [json.dumps(sorted(names))]


def _all(conditions: list[Sql]) -> Sql:
    sql = " AND ".join(condition for condition, _ in conditions)
    return sql or "1", [value for _, values in conditions for value in values]
