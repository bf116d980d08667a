"""What may enter a context, part by part, and why some of it may not, whatever room there is."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from memlog.projector.sqlite import Connection
from memlog.query import memories
from memlog.query.context.entries import (
    ContextEntry,
    core_entries,
    event_entry,
    fact_entries,
    fact_entry,
    file_entry,
    memory_entry,
    passage_entry,
    summary_entry,
    type_of,
    window_entries,
)
from memlog.query.context.request import BuildContext
from memlog.query.context.retrieve import CANDIDATES, ContextHits
from memlog.query.context.superseded import ChatMessage, sums_up_superseded, superseded
from memlog.query.facts.ask import ask
from memlog.query.facts.current import Topic, all_topics, topics
from memlog.query.search.fts_query import LONGEST_QUESTION
from memlog.query.search.hits import Hit
from memlog.query.search.priors import named_topics
from memlog.query.summaries import Summary, summaries, summary
from memlog.query.window import DEFAULT_LAST, window

SUPERSEDED = "superseded"

_FOUND_TOPICS = 5
"""Topics of facts at most that the text does not name."""

_FOUND_SUMMARIES = 2
"""Beside the newest one of the chat."""

Key = tuple[str, str]
"""(stream, id) of an entry; (chat, key) of a topic."""


class EligibleEntry(NamedTuple):
    """An entry that may be taken; `why` it may not, where that is known."""

    entry: ContextEntry
    why: str | None = None


class EligibleEntries:
    """The eligible entries of each part, in order of priority.

    Raises:
        NotFound: the store has events, but none of this chat.
    """

    def __init__(self, db: Connection, asked: BuildContext, found: ContextHits) -> None:
        self._db, self._asked, self._found = db, asked, found
        self._types = [type_of(db, hit) for hit in found.memories]
        entries = self._window_entries()
        self._gone = superseded(db, [*map(_said, entries), *(map(_said_of, found.messages))])
        self._window = {_key(entry): self._checked(entry) for entry in entries}

    def core(self) -> list[EligibleEntry]:
        """All of the core memory."""
        entries = core_entries(self._db)
        return [EligibleEntry(entry) for entry in entries if entry.id not in self._asked.excluded]

    def facts(self) -> Iterator[EligibleEntry]:
        """Facts of topics that the text names, then those that were found."""
        standing = self._topics()
        by_fact = {fact.fact_id: topic for topic in standing for fact in topic.facts}
        named = [*self._answering(by_fact), *self._named(standing)]
        chosen: dict[Key, tuple[Topic, float | None]] = {_scope(topic): (topic, None) for topic in named}
        most = len(chosen) + _FOUND_TOPICS
        for hit in self._of_type("fact_stored"):
            topic = by_fact.get(hit.id)
            if topic is None:
                yield EligibleEntry(fact_entry(hit), SUPERSEDED)
            elif len(chosen) < most:
                chosen.setdefault(_scope(topic), (topic, hit.score))
        for topic, score in chosen.values():
            yield from self._facts_of(topic, score, standing)

    def memories(self) -> Iterator[EligibleEntry]:
        """Memories, daily events and files of memories that were found."""
        of_memories = [*self._memories()]
        yield from of_memories[: CANDIDATES * self._asked.limit]
        for hit in self._found.faded:
            memory = memories.memory(self._db, hit.id)
            entry = memory_entry(self._db, hit)
            if memory and entry and memory.salience < self._asked.min_salience:
                why = f"its salience {memory.salience:.3f} is below {self._asked.min_salience:g}"
                yield EligibleEntry(entry, why)

    def passages(self) -> Iterator[EligibleEntry]:
        """Passages of messages that were found; of a message of the window the whole."""
        for hit in self._found.messages:
            in_window = self._window.get((hit.position.stream, hit.id))
            if in_window is not None:
                in_window.entry.relevance_score = hit.score
                yield in_window
            else:
                yield self._checked(passage_entry(self._db, hit))

    def summaries(self) -> Iterator[EligibleEntry]:
        """The newest summary of the chat, then those that were found."""
        chosen: dict[Key, tuple[Summary, float | None]] = {}
        if self._asked.conversation is not None:
            for newest in summaries(self._db, self._asked.conversation)[-1:]:
                chosen[newest.position.stream, newest.id] = newest, None
        for hit in self._of_type("summary_written")[:_FOUND_SUMMARIES]:
            told = summary(self._db, hit.position.stream, hit.id)
            if told is not None:
                chosen.setdefault((hit.position.stream, hit.id), (told, hit.score))
        for told, score in chosen.values():
            if told.id not in self._asked.excluded:
                gone = sums_up_superseded(self._db, told)
                yield EligibleEntry(summary_entry(told, score), SUPERSEDED if gone else None)

    def window(self) -> list[EligibleEntry]:
        """The chat's window, the newest message first."""
        return list(self._window.values())

    def _window_entries(self) -> list[ContextEntry]:
        chat = self._asked.conversation
        if chat is None:
            return []
        found = window(self._db, chat, last=DEFAULT_LAST).messages
        kept = [each for each in found if each.id not in self._asked.excluded and each.content.strip()]
        return list(window_entries(self._db, chat, kept))

    def _checked(self, entry: ContextEntry) -> EligibleEntry:
        return EligibleEntry(entry, SUPERSEDED if _key(entry) in self._gone else None)

    def _of_type(self, name: str) -> list[Hit]:
        pairs = zip(self._found.memories, self._types, strict=True)
        return [hit for hit, kind in pairs if kind == name]

    def _memories(self) -> Iterator[EligibleEntry]:
        for hit, kind in zip(self._found.memories, self._types, strict=True):
            if kind in ("memory_saved", "memory_updated"):
                entry = memory_entry(self._db, hit)
                if entry is not None:
                    yield EligibleEntry(entry)
            elif kind == "daily_event_recorded":
                yield EligibleEntry(event_entry(hit))
            elif kind == "document_indexed":
                yield EligibleEntry(file_entry(self._db, hit))

    def _topics(self) -> list[Topic]:
        if self._asked.chat is None:
            return all_topics(self._db)
        return [*topics(self._db, self._asked.chat_name), *topics(self._db, None)]

    def _answering(self, by_fact: dict[str, Topic]) -> list[Topic]:
        """The topics that answer the text, read as a question of a fact."""
        chats = [None] if self._asked.chat is None else [self._asked.chat_name, None]
        is_any = self._asked.chat is None
        answers = [ask(self._db, self._asked.text, chat=chat, any_chat=is_any) for chat in chats]
        facts = [fact for answer in answers for fact in answer.facts]
        return [by_fact[fact.fact_id] for fact in facts if fact.fact_id in by_fact]

    def _named(self, standing: Sequence[Topic]) -> list[Topic]:
        names = named_topics({topic.key for topic in standing}, self._asked.text[:LONGEST_QUESTION])
        return [topic for topic in standing if topic.key in names]

    def _facts_of(
        self, topic: Topic, score: float | None, standing: Collection[Topic]
    ) -> Iterable[EligibleEntry]:
        chat = self._asked.chat_name
        is_other = chat is not None and topic.chat is None
        has_own = is_other and any((each.chat, each.key) == (chat, topic.key) for each in standing)
        for fact, entry in zip(topic.facts, fact_entries(topic, score), strict=True):
            if self._asked.excluded.isdisjoint((fact.fact_id, fact.event_id)):
                yield EligibleEntry(entry, f"{chat} has its own" if has_own else None)


def _scope(topic: Topic) -> Key:
    return topic.chat or "", topic.key


def _key(entry: ContextEntry) -> Key:
    return entry.position.stream, entry.id


def _said(entry: ContextEntry) -> ChatMessage:
    return ChatMessage(entry.position.stream, entry.id, entry.chat or "")


def _said_of(hit: Hit) -> ChatMessage:
    return ChatMessage(hit.position.stream, hit.id, hit.chat or "")
