"""Search filters. Both sides of a search apply them before cutting off at the best candidates."""

import json
from collections.abc import Collection, Iterable
from typing import Annotated, Literal

from memlog.eventlog.categories import CATEGORIES, OTHER, find_known_category
from memlog.eventlog.fields import Chat, Local, Reads
from memlog.eventlog.text import equivalent_forms
from memlog.query.event_index import Sql, join_sql_conditions
from memlog.query.facts.topic_keys import normalise_key_for_comparison, normalise_stored_topic_key
from memlog.query.request import ChatField, End, Ids, Request, Time, Unit

Kind = Literal["message", "memory", "document"]
Role = Literal["user", "assistant", "system", "tool"]

MEMORY_CHUNKS = (
    "memory_chunks c LEFT JOIN memories y ON y.memory_id = c.memory_id"
    " LEFT JOIN facts f ON f.fact_id = c.fact_id"
    " LEFT JOIN documents d ON d.document_id = c.document_id"
)
"""The rows to which the condition `Filters.of_memories` applies, if c.message_id is null."""

DOC_CHUNKS = "doc_chunks c JOIN documents d ON d.document_id = c.document_id"
"""The rows to which the condition `Filters.of_documents` applies."""

CONVERSATION = "conversation"
"""The source of messages."""

SUMMARIES, FACTS, DAILY_EVENTS = "summaries", "facts", "daily_events"
"""The categories of summaries, facts and daily events, which are hits of kind `memory`."""

FOUND_UNDER = (*CATEGORIES, FACTS, DAILY_EVENTS)
"""Every category that a search can filter by."""

_CATEGORY = (
    f"CASE WHEN c.summary_id IS NOT NULL THEN '{SUMMARIES}' WHEN c.fact_id IS NOT NULL THEN '{FACTS}'"
    f" WHEN c.daily_event_id IS NOT NULL THEN '{DAILY_EVENTS}' ELSE y.category END"
)

# A daily event has no chat, but one with a channel or a sender is not the store's own.
_OWN_SCOPE = (
    "(c.chat_id IS NULL AND (c.daily_event_id IS NULL OR EXISTS (SELECT 1 FROM daily_events v"
    " WHERE v.stream = c.stream AND v.id = c.daily_event_id AND v.channel IS NULL AND v.sender_id IS NULL)))"
)


class Filters(Request, frozen=True, kw_only=True):
    """The properties a hit must have. Kinds of hits that lack a filtered property are left out: memories have
    no role, messages no category, documents no role, category or chat.

    Raises:
        BadInput: a value has the wrong type, or the category is unknown.
    """

    kinds: Annotated[frozenset[Kind] | None, "Only hits of these kinds; all by default."] = None
    chat: Annotated[ChatField | None, "Only hits of this conversation."] = None
    role: Annotated[Role | None, "Only messages of this role."] = None
    speaker: Annotated[str | None, "Only messages of the speaker with this name."] = None
    category: Annotated[
        str | None,
        "Only memories of this category; `other` includes unknown categories.",
        Reads(
            lambda name: name if name in FOUND_UNDER else find_known_category(name),
            "category",
            choices=FOUND_UNDER,
        ),
    ] = None
    source: Annotated[
        str | None,
        (
            "Only hits of this source, as hits name it: conversation, manual, summary, fact, daily_event, a"
            " memory file, a source of documents."
        ),
    ] = None
    topic: Annotated[str | None, "Only memories and facts of this topic, in any spelling."] = None
    tag: Annotated[str | None, "Only memories with this tag."] = None
    min_salience: Annotated[Unit, "Leave out memories that have faded below this salience."] = 0.0
    since: Annotated[
        Time | None, "Only hits from this time on: 2026-02-24, RFC 3339, or words such as last week."
    ] = None
    until: Annotated[
        End | None, "Only hits before this time, or up to the end of a day or period, such as last week."
    ] = None
    exclude: Annotated[Ids, "Leave out these events, memories or documents."] = frozenset()
    asking: Annotated[
        tuple[str, str] | None, Local(is_callback=False), "Leave out this message: its stream and id."
    ] = None
    own_scope: Annotated[
        bool, Local(is_callback=False), "Include memories of no chat besides those of `chat`."
    ] = False
    joined: Annotated[
        tuple[str, ...], Local(is_callback=False), "Include further chats besides `chat`, as channel:chat_id."
    ] = ()
    of_no_chat: Annotated[bool, Local(is_callback=False), "Only what belongs to no chat."] = False

    @property
    def is_empty(self) -> bool:
        """Whether no filter is set."""
        return self == _NONE

    def of_messages(self) -> Sql | None:
        """Return the SQL condition on `messages m`; None if messages are excluded altogether."""
        if (
            self._selects_only_memories
            or self.of_no_chat
            or self.source not in (None, CONVERSATION)
            or not self._wants_kind("message")
        ):
            return None
        chats = self._chats
        pairs = [part for chat in chats for part in chat]
        return join_sql_conditions(
            ("m.type <> ?", "session_break"),
            (f"({' OR '.join(['m.channel = ? AND m.chat_id = ?'] * len(chats))})", pairs or None),
            ("m.role = ?", self.role),
            ("m.name IN (SELECT value FROM json_each(?))", equivalent_forms_json(self.speaker)),
            *self._exclusion_conditions("m.id"),
            ("(m.stream, m.id) <> (?, ?)", self.asking),
            *self._time_conditions("m.created_at"),
        )

    def of_memories(self) -> Sql | None:
        """Return the SQL condition on `MEMORY_CHUNKS`; None if memories are excluded altogether."""
        if self._selects_only_messages or not self._wants_kind("memory"):
            return None
        category, topic = self.category, self.topic
        owner = "coalesce(c.memory_id, c.summary_id, c.fact_id, c.daily_event_id, c.document_id)"
        names = [str(chat) for chat in self._chats]
        of_chats = f"c.chat_id IN ({', '.join('?' * len(names))})"
        return join_sql_conditions(
            (f"{_OWN_SCOPE} = ?", self.of_no_chat or None),
            (f"({of_chats} OR {_OWN_SCOPE})" if self.own_scope else of_chats, names or None),
            *(
                []
                if category is None
                else [sql_condition_on_categories(_CATEGORY, [category], known=FOUND_UNDER)]
            ),
            ("c.source = ?", self.source),
            (
                # `teach_topics` defines it for the connection.
                "topic_key(coalesce(y.topic, f.topic_key)) = ?",
                None if topic is None else normalise_key_for_comparison(normalise_stored_topic_key(topic)),
            ),
            (
                "EXISTS (SELECT 1 FROM json_each(y.tags) t JOIN json_each(?) g ON t.value = g.value)",
                equivalent_forms_json(self.tag),
            ),
            ("coalesce(y.salience, 1) >= ?", self.min_salience or None),
            *self._exclusion_conditions(owner, "coalesce(y.event_id, f.event_id, d.event_id, '')"),
            *self._time_conditions("c.updated_at"),
        )

    def of_documents(self) -> Sql | None:
        """Return the SQL condition on `DOC_CHUNKS`; None if documents are excluded altogether."""
        if (
            self._selects_only_memories
            or self._selects_only_messages
            or self.chat
            or not self._wants_kind("document")
        ):
            return None
        return join_sql_conditions(
            ("d.source_id = ?", self.source),
            *self._exclusion_conditions("c.document_id", "d.event_id"),
            *self._time_conditions("c.updated_at"),
        )

    @property
    def _chats(self) -> list[Chat]:
        return [] if self.chat is None else [Chat.of(chat) for chat in (self.chat, *self.joined)]

    @property
    def _selects_only_memories(self) -> bool:
        """Whether any filter is on a property that only memories have."""
        return (self.category, self.topic, self.tag) != (None, None, None)

    @property
    def _selects_only_messages(self) -> bool:
        return (self.role, self.speaker) != (None, None)

    def _exclusion_conditions(self, *columns: str) -> Iterable[tuple[str, str | None]]:
        ids = json.dumps(sorted(self.exclude)) if self.exclude else None
        return ((f"{column} NOT IN (SELECT value FROM json_each(?))", ids) for column in columns)

    def _wants_kind(self, kind: Kind) -> bool:
        return self.kinds is None or kind in self.kinds

    def _time_conditions(self, column: str) -> Iterable[tuple[str, object]]:
        return (f"{column} >= ?", self.since), (f"{column} < ?", self.until)


_NONE = Filters()


def equivalent_forms_json(text: str | None) -> str | None:
    """Return the canonically equivalent forms of `text` (NFC, NFD) as a JSON list; None for None."""
    return None if text is None else json.dumps(equivalent_forms(text))


def sql_condition_on_categories(
    column: str, categories: Iterable[str], *, known: Collection[str] = CATEGORIES
) -> Sql:
    """Return an SQL condition that `column` is in `categories`; `other` matches everything not in `known`.

    Raises:
        BadInput: a category is unknown.
    """
    chosen = {category if category in known else find_known_category(category) for category in categories}
    sign, names = ("NOT IN", {*known} - chosen) if OTHER in chosen else ("IN", chosen)
    return f"{column} {sign} (SELECT value FROM json_each(?))", [json.dumps(sorted(names))]
