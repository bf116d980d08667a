"""The entries that may enter a context, part by part, and why some may not."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain
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
    topic_of,
    window_entries,
)
from memlog.query.context.request import BuildContext
from memlog.query.context.retrieve import ContextHits
from memlog.query.context.scores import EntryScore, chance
from memlog.query.context.superseded import ChatMessage, sums_up_superseded, superseded
from memlog.query.event_index import Key
from memlog.query.facts.ask import ask
from memlog.query.facts.current import Topic, all_topics, topics
from memlog.query.search.hits import Hit
from memlog.query.summaries import Summary, summaries, summary
from memlog.query.window import DEFAULT_LAST, window

SUPERSEDED = "superseded"

_LONG = 400
"""Characters. On LoCoMo 6 to 10 with long answers between the turns, contexts of 500 to 4,000 tokens hold
.762, .825, .851, .852 of the answers; in the order of the hits .754, .816, .841, .843."""


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
        self._own = [*dict.fromkeys((request.chat_name, *request.joined, None))]
        self._chat = chat if chat is not None and is_known(db, chat) else None
        entries = self._window_entries()
        found = [*hits.messages, *(hit for hit, _ in hits.listed if hit.kind == "message")]
        self._superseded = superseded(db, [*map(_message, entries), *map(_message, found)])
        self._window = {_key(entry): self._checked(entry) for entry in entries}

    def listed(self) -> Iterator[EligibleEntry]:
        """What belongs to the prompt, of every kind, best first; before it the facts that answer it."""
        answers = {each.entry.id: each for each in self._answers()}
        candidates = [self._listed(hit, score) for hit, score in self._hits.listed]
        for each in candidates:
            if each.entry.part == "fact" and each.entry.id in answers:
                answers[each.entry.id] = each
        candidates = list({each.entry.id: each for each in [*answers.values(), *candidates]}.values())
        candidates += self._corrections(candidates)
        candidates = [*self._whole_lists(candidates)]
        # Before the cut, so that a corrected memory never displaces its correction.
        by_entry = {id(each.entry): each for each in candidates}
        for entry in newest_first([each.entry for each in candidates]):
            yield by_entry[id(entry)]

    def faded(self) -> Iterator[EligibleEntry]:
        """Memories that are found and have faded; none but to explain a context."""
        for hit in self._hits.faded:
            memory = memories.memory(self._db, hit.id)
            faded = memory_entry(memory, hit)
            if memory and faded and memory.salience < self._request.min_salience:
                why = f"its salience {memory.salience:.3f} is below {self._request.min_salience:g}"
                yield EligibleEntry(faded, why)

    def passages(self) -> Iterator[EligibleEntry]:
        """Passages of messages by their own floor.

        Long ones that only their neighbours found come last: each takes the room of some turns.
        """
        hits = self._hits.messages
        late = [hit for hit in hits if hit.only_context and len(hit.content) > _LONG]
        for hit in [*(hit for hit in hits if hit not in late), *late]:
            yield self._passage(hit)

    def documents(self) -> Iterator[EligibleEntry]:
        """Passages of documents by their own floor."""
        return map(_document, self._hits.documents)

    def summaries(self) -> Iterator[EligibleEntry]:
        """The newest summary of the chat."""
        for newest in summaries(self._db, self._chat)[-1:] if self._chat is not None else ():
            if newest.id not in self._request.excluded:
                yield self._summary(newest, None)

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

    def _listed(self, hit: Hit, score: EntryScore) -> EligibleEntry:
        """The candidate of a hit that is listed by its score."""
        found = self._candidate(hit)
        found.entry.score, found.entry.relevance_score = score, round(chance(score), 3)
        return found

    def _corrections(self, listed: Iterable[EligibleEntry]) -> list[EligibleEntry]:
        """What was found below the floor and tells anew what is listed, which would else be given alone."""
        dates: dict[object, str] = {}
        for each in listed:
            if each.why is None and (topic := topic_of(each.entry)) is not None:
                dates[topic] = max(dates.get(topic, ""), each.entry.ts or "")
        if not dates:
            return []
        below = (self._listed(each.hit, each.score) for each in self._hits.below if each.score is not None)
        return [each for each in below if (each.entry.ts or "") > dates.get(topic_of(each.entry), "9999")]

    def _whole_lists(self, listed: Sequence[EligibleEntry]) -> Iterator[EligibleEntry]:
        """What is listed, with all ranks of a list behind the first one: a part would pass for the whole."""
        known = {each.entry.id: each for each in listed}
        given = set[str]()
        for each in listed:
            topic = self._by_fact.get(each.entry.id) if each.entry.rank and each.why is None else None
            for one in [each] if topic is None else self._facts_of(topic):
                if one.entry.id not in given:
                    given.add(one.entry.id)
                    yield known.get(one.entry.id, one)

    def _candidate(self, hit: Hit) -> EligibleEntry:
        if hit.kind == "message":
            return self._passage(hit)
        if hit.kind == "document":
            return _document(hit)
        match _event_type(self._db, hit):
            case "memory_saved" | "memory_updated":
                entry = memory_entry(memories.memory(self._db, hit.id), hit)
                return EligibleEntry(entry or hit_entry(hit, "memory", "FACT"), None if entry else SUPERSEDED)
            case "fact_stored":
                return self._fact(hit)
            case "summary_written":
                found = summary(self._db, *_key(hit))
                if found is not None:
                    return self._summary(found, hit.score)
            case "daily_event_recorded":
                return EligibleEntry(hit_entry(hit, "memory", "EVENT"))
            case "document_indexed":
                file = hit_entry(hit, "memory", "FILE", title=hit.source, content=passage(self._db, hit))
                return EligibleEntry(file)
        return EligibleEntry(hit_entry(hit, "memory", "FACT"), SUPERSEDED)

    def _passage(self, hit: Hit) -> EligibleEntry:
        """A message by its best sentences; of the window the whole message."""
        in_window = self._window.get(_key(hit))
        if in_window is not None:
            in_window.entry.relevance_score = hit.score
            return in_window
        members = {"content": passage(self._db, hit), "role": hit.role, "name": hit.name}
        return self._checked(hit_entry(hit, "passage", "CONVERSATION", **members))._replace(by_excerpt=True)

    def _summary(self, found: Summary, score: float | None) -> EligibleEntry:
        why = SUPERSEDED if sums_up_superseded(self._db, found) else None
        return EligibleEntry(summary_entry(found, score), why)

    def _fact(self, hit: Hit) -> EligibleEntry:
        """A fact, if it is current."""
        topic = self._by_fact.get(hit.id)
        found = [each for each in self._facts_of(topic) if each.entry.id == hit.id] if topic else []
        return found[0] if found else EligibleEntry(hit_entry(hit, "fact", "FACT"), SUPERSEDED)

    @cached_property
    def _by_fact(self) -> dict[str, Topic]:
        """The topic of each current fact."""
        own = (topics(self._db, chat) for chat in self._own)
        known = all_topics(self._db) if self._is_of_all else chain.from_iterable(own)
        return {fact.fact_id: topic for topic in known for fact in topic.facts}

    def _answers(self) -> Iterator[EligibleEntry]:
        """The facts that answer the text, if it is a question of a fact, whatever a search found."""
        if not self._by_fact:
            return
        own = [] if self._is_of_all and self._request.chat is None else self._own
        asked = [*((chat, False) for chat in own), *([(None, True)] if self._is_of_all else [])]
        answers = [ask(self._db, self._request.text, chat=chat, any_chat=every) for chat, every in asked]
        ids = dict.fromkeys(fact.fact_id for answer in answers for fact in answer.facts)
        for name in ids:
            topic = self._by_fact.get(name)
            yield from (each for each in self._facts_of(topic) if each.entry.id == name) if topic else ()

    def _facts_of(self, topic: Topic) -> Iterator[EligibleEntry]:
        chat = self._request.chat_name
        # Across chats, each says its date.
        is_other = chat is not None and topic.chat is None and not self._is_of_all
        known = self._by_fact.values() if is_other else ()
        has_own = any((each.chat, each.key) == (chat, topic.key) for each in known)
        for fact, entry in zip(topic.facts, fact_entries(topic), strict=True):
            if self._request.excluded.isdisjoint((fact.fact_id, fact.event_id)):
                yield EligibleEntry(entry, f"{chat} has its own" if has_own else None)


def _document(hit: Hit) -> EligibleEntry:
    lines = f"{hit.start_line}" if hit.start_line == hit.end_line else f"{hit.start_line}-{hit.end_line}"
    title = f"{hit.source}/{hit.file}:{lines}"
    entry = hit_entry(hit, "document", "DOCUMENT", title=title, content=hit.content.strip())
    return EligibleEntry(entry, by_excerpt=True)


def _event_type(db: Connection, hit: Hit) -> str:
    """The type of the event with the content of a hit."""
    row = db.execute(
        "SELECT type FROM events WHERE stream = ? AND id = ?", (hit.position.stream, hit.event_id)
    ).fetchone()
    return row[0] if row else ""


def _key(entry: ContextEntry | Hit) -> Key:
    return entry.position.stream, entry.id


def _message(entry: ContextEntry | Hit) -> ChatMessage:
    return ChatMessage(*_key(entry), entry.chat or "")
