"""The entries that may enter a context, part by part, and why some may not."""

from collections.abc import Collection, Iterator
from typing import NamedTuple

from memlog.projector.sqlite import Connection
from memlog.query import memories
from memlog.query.chats import is_known
from memlog.query.context.entries import (
    ContextEntry,
    fact_entries,
    hit_entry,
    memory_entry,
    newest_first,
    passage,
    summary_entry,
    window_entries,
)
from memlog.query.context.request import BuildContext
from memlog.query.context.retrieve import CANDIDATES, ContextHits
from memlog.query.context.superseded import ChatMessage, sums_up_superseded, superseded
from memlog.query.event_index import Key
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

_LONG = 400
"""Characters. On LoCoMo 6 to 10 with long answers between the turns, contexts of 500 to 4,000 tokens hold
.762, .825, .851, .852 of the answers; in the order of the hits .754, .816, .841, .843."""

_FOUND_SUMMARIES = 2
"""Beside the newest one of the chat."""


class EligibleEntry(NamedTuple):
    """A candidate for a context; `why` it is left out, if that is known; whether its best sentences do."""

    entry: ContextEntry
    why: str | None = None
    by_excerpt: bool = False


class EligibleEntries:
    """The eligible entries of each part, in order of priority. A chat that is new has no window."""

    def __init__(self, db: Connection, request: BuildContext, hits: ContextHits) -> None:
        self._db, self._request, self._hits = db, request, hits
        chat = request.conversation
        self._is_of_all = request.scope == "store"
        self._chat = chat if chat is not None and is_known(db, chat) else None
        self._typed_hits = [(_event_type(db, hit), hit) for hit in hits.memories]
        entries = self._window_entries()
        self._superseded = superseded(db, [*map(_message, entries), *map(_message, hits.messages)])
        self._window = {_key(entry): self._checked(entry) for entry in entries}

    def facts(self) -> Iterator[EligibleEntry]:
        """Facts of topics that the text names, then the facts that were found."""
        known = self._topics()
        by_fact = {fact.fact_id: topic for topic in known for fact in topic.facts}
        names = named_topics({topic.key for topic in known}, self._request.text[:LONGEST_QUESTION])
        named = [*self._answering(by_fact), *(topic for topic in known if topic.key in names)]
        chosen: dict[tuple[str, str], tuple[Topic, float | None]] = {
            _scope(topic): (topic, None) for topic in named
        }
        most = len(chosen) + _FOUND_TOPICS
        for hit in self._hits_of("fact_stored"):
            topic = by_fact.get(hit.id)
            if topic is None:
                yield EligibleEntry(hit_entry(hit, "fact", "FACT"), SUPERSEDED)
            elif len(chosen) < most:
                chosen.setdefault(_scope(topic), (topic, hit.score))
        for topic, score in chosen.values():
            yield from self._facts_of(topic, score, known)

    def memories(self) -> Iterator[EligibleEntry]:
        """Memories, daily events and files of memories that were found."""
        entries = (self._memory(event_type, hit) for event_type, hit in self._typed_hits)
        # Before the cut, so that a corrected memory never displaces its correction.
        found = newest_first([*filter(None, entries)])
        for entry in found[: CANDIDATES * self._request.limit]:
            yield EligibleEntry(entry)
        for hit in self._hits.faded:
            memory = memories.memory(self._db, hit.id)
            faded = memory_entry(memory, hit)
            if memory and faded and memory.salience < self._request.min_salience:
                why = f"its salience {memory.salience:.3f} is below {self._request.min_salience:g}"
                yield EligibleEntry(faded, why)

    def passages(self) -> Iterator[EligibleEntry]:
        """Passages of messages that were found, by their best sentences; of the window the whole message.

        Long ones that only their neighbours found come last: each takes the room of some turns.
        """
        hits = self._hits.messages
        late = [hit for hit in hits if hit.only_context and len(hit.content) > _LONG]
        for hit in [*(hit for hit in hits if hit not in late), *late]:
            in_window = self._window.get(_key(hit))
            if in_window is not None:
                in_window.entry.relevance_score = hit.score
                yield in_window
            else:
                members = {"content": passage(self._db, hit), "role": hit.role, "name": hit.name}
                checked = self._checked(hit_entry(hit, "passage", "CONVERSATION", **members))
                yield checked._replace(by_excerpt=True)

    def documents(self) -> Iterator[EligibleEntry]:
        """Passages of documents that were found."""
        for hit in self._hits.documents:
            lines = (
                f"{hit.start_line}" if hit.start_line == hit.end_line else f"{hit.start_line}-{hit.end_line}"
            )
            title = f"{hit.source}/{hit.file}:{lines}"
            entry = hit_entry(hit, "document", "DOCUMENT", title=title, content=hit.content.strip())
            yield EligibleEntry(entry, by_excerpt=True)

    def summaries(self) -> Iterator[EligibleEntry]:
        """The newest summary of the chat, then the summaries that were found."""
        chosen: dict[Key, tuple[Summary, float | None]] = {}
        if self._chat is not None:
            for newest in summaries(self._db, self._chat)[-1:]:
                chosen[newest.position.stream, newest.id] = newest, None
        for hit in self._hits_of("summary_written")[:_FOUND_SUMMARIES]:
            older = summary(self._db, *_key(hit))
            if older is not None:
                chosen.setdefault(_key(hit), (older, hit.score))
        for each, score in chosen.values():
            if each.id not in self._request.excluded:
                why = SUPERSEDED if sums_up_superseded(self._db, each) else None
                yield EligibleEntry(summary_entry(each, score), why)

    def window(self) -> list[EligibleEntry]:
        """The chat's window, the newest message first."""
        return list(self._window.values())

    def _window_entries(self) -> list[ContextEntry]:
        chat = self._chat
        if chat is None:
            return []
        messages = window(self._db, chat, last=DEFAULT_LAST).messages
        kept = [each for each in messages if each.id not in self._request.excluded and each.content.strip()]
        entries = window_entries(self._db, chat, kept)
        return [entry for entry in entries if _key(entry) != self._hits.asking]

    def _checked(self, entry: ContextEntry) -> EligibleEntry:
        return EligibleEntry(entry, SUPERSEDED if _key(entry) in self._superseded else None)

    def _hits_of(self, event_type: str) -> list[Hit]:
        return [hit for own_type, hit in self._typed_hits if own_type == event_type]

    def _memory(self, event_type: str, hit: Hit) -> ContextEntry | None:
        match event_type:
            case "memory_saved" | "memory_updated":
                return memory_entry(memories.memory(self._db, hit.id), hit)
            case "daily_event_recorded":
                return hit_entry(hit, "memory", "EVENT")
            case "document_indexed":
                return hit_entry(hit, "memory", "FILE", title=hit.source, content=passage(self._db, hit))
        return None

    def _topics(self) -> list[Topic]:
        if self._is_of_all:
            return all_topics(self._db)
        return [*topics(self._db, self._request.chat_name), *topics(self._db, None)]

    def _answering(self, by_fact: dict[str, Topic]) -> list[Topic]:
        """The topics that answer the text, if it is a question of a fact."""
        if not by_fact:
            return []
        own = [self._request.chat_name, None] if self._request.chat is not None else []
        text = self._request.text
        answers = [ask(self._db, text, chat=chat, any_chat=False) for chat in own]
        if self._is_of_all:
            answers.append(ask(self._db, text, chat=None, any_chat=True))
        facts = [fact for answer in answers for fact in answer.facts]
        return [by_fact[fact.fact_id] for fact in facts if fact.fact_id in by_fact]

    def _facts_of(
        self, topic: Topic, score: float | None, known: Collection[Topic]
    ) -> Iterator[EligibleEntry]:
        chat = self._request.chat_name
        # Across chats, each says its date.
        is_other = chat is not None and topic.chat is None and not self._is_of_all
        has_own = is_other and any((each.chat, each.key) == (chat, topic.key) for each in known)
        for fact, entry in zip(topic.facts, fact_entries(topic, score), strict=True):
            if self._request.excluded.isdisjoint((fact.fact_id, fact.event_id)):
                yield EligibleEntry(entry, f"{chat} has its own" if has_own else None)


def _event_type(db: Connection, hit: Hit) -> str:
    """The type of the event with the content of a hit."""
    row = db.execute(
        "SELECT type FROM events WHERE stream = ? AND id = ?", (hit.position.stream, hit.event_id)
    ).fetchone()
    return row[0] if row else ""


def _scope(topic: Topic) -> tuple[str, str]:
    return topic.chat or "", topic.key


def _key(entry: ContextEntry | Hit) -> Key:
    return entry.position.stream, entry.id


def _message(entry: ContextEntry | Hit) -> ChatMessage:
    return ChatMessage(*_key(entry), entry.chat or "")
