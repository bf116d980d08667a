"""Fills a context with entries in order of priority, within its token budget."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Literal, NamedTuple

import msgspec

from memlog.eventlog.codec.content_ids import fold_content
from memlog.eventlog.log.reader import belongs_to_chat
from memlog.projector.sqlite import Connection, to_json_list
from memlog.query import memories
from memlog.query.context.entries import (
    PARTS,
    STABLE,
    ContextEntry,
    Part,
    cut_passage_of_hit,
    make_entries_of_facts,
    make_entries_of_window,
    make_entry_of_hit,
    make_entry_of_memory,
    make_entry_of_summary,
    put_newest_facts_first_and_mark_older,
    sort_facts_by_rank,
    topic_and_rank,
)
from memlog.query.context.excerpts import EXCERPT_TOKENS, Excerpts
from memlog.query.context.rendering import Printer
from memlog.query.context.request import BuildContext
from memlog.query.context.retrieve import ContextHits
from memlog.query.context.scores import EntryScore, entry_probability
from memlog.query.context.token_counters import (
    count_text_tokens,
    least_weight_of_length,
    round_weight_to_tokens,
    weigh_text,
)
from memlog.query.conversations import DEFAULT_LAST, ORDER, is_known_chat, window_of_chat
from memlog.query.event_index import Key
from memlog.query.facts.answers import Topic, all_topics, answer_question, topics_of_chat
from memlog.query.search.hits import Hit
from memlog.query.sessions import Summary, list_summaries, summary_by_event


class ChatMessage(NamedTuple):
    """A message's key and its chat, `<channel>:<chat_id>`."""

    stream: str
    id: str
    chat: str


def superseded_messages(db: Connection, messages: Iterable[ChatMessage]) -> set[Key]:
    """Return the keys of messages that yielded facts, all of which are superseded."""
    messages = list(messages)
    rows = db.execute(
        "SELECT source_message_id, chat_id, event_id FROM fact_sources"
        " WHERE source_message_id IN (SELECT value FROM json_each(?))",
        (to_json_list([message.id for message in messages]),),
    ).fetchall()
    known = [topic for chat in {chat for _, chat, _ in rows} for topic in topics_of_chat(db, chat or None)]
    current = {fact.event_id for topic in known for fact in topic.facts}
    keys = set()
    for message in messages:
        of_id = ((chat, event_id) for message_id, chat, event_id in rows if message_id == message.id)
        own = {event_id for chat, event_id in of_id if _may_be_source_of_fact(db, chat, message)}
        if own and own.isdisjoint(current):
            keys.add((message.stream, message.id))
    return keys


def covers_superseded_message(db: Connection, summary: Summary) -> bool:
    """Whether a summary covers a superseded message.

    If its first message is unknown, the summary covers the chat from the start; if its last is unknown, up to
    the time it was written.
    """
    streams = _streams_of_chat(db, summary.chat)
    first = _find_place_of_message(db, streams, summary.from_message_id) or ("",)
    last = _find_place_of_message(db, streams, summary.to_message_id) or (summary.created_at,)
    rows = db.execute(
        # CROSS JOIN: start from the facts, since a chat may have more messages than there are facts.
        "SELECT stream, id FROM (SELECT DISTINCT source_message_id AS id FROM fact_sources)"
        " CROSS JOIN messages USING (id) WHERE stream IN (SELECT value FROM json_each(?))"
        f" AND {_sql_condition_on_place('>=', first)} AND {_sql_condition_on_place('<=', last)}",
        (streams, *first, *last),
    ).fetchall()
    return bool(superseded_messages(db, (ChatMessage(stream, name, summary.chat) for stream, name in rows)))


def _sql_condition_on_place(sign: str, place: Sequence[object]) -> str:
    """Return SQL that compares a message's place in its chat with `place`, which may be just a time."""
    return f"({', '.join(ORDER[: len(place)])}) {sign} ({', '.join('?' * len(place))})"


def _streams_of_chat(db: Connection, chat: str) -> str:
    """Return the chat's streams as a JSON list. Messages are indexed by stream and id."""
    channel, _, chat_id = chat.partition(":")
    rows = db.execute("SELECT DISTINCT stream FROM checkpoints")
    return to_json_list([stream for (stream,) in rows if belongs_to_chat(stream, (channel, chat_id))])


def _find_place_of_message(db: Connection, streams: str, message_id: str | None) -> tuple[object, ...]:
    """Return a message's place in its chat, as values of `ORDER`; () if the message is unknown."""
    row: tuple[object, ...] | None = db.execute(
        f"SELECT {', '.join(ORDER)} FROM messages"
        " WHERE stream IN (SELECT value FROM json_each(?)) AND id = ?",
        (streams, message_id),
    ).fetchone()
    return row or ()


def _may_be_source_of_fact(db: Connection, chat: str, message: ChatMessage) -> bool:
    """Whether a fact's source is this message, rather than one with the same id in the fact's own chat.

    chat: the fact's chat; "" for the store's own scope.
    """
    return chat in ("", message.chat) or not _find_place_of_message(
        db, _streams_of_chat(db, chat), message.id
    )


SUPERSEDED = "superseded"

_LONG = 400
"""A passage with more characters than this comes late if only its neighbours matched. On LoCoMo 6 to 10 with
long answers between the turns, contexts of 500 to 4,000 tokens then hold .762, .825, .851, .852 of the
answers, compared with .754, .816, .841, .843 in the order of the hits."""


class EligibleEntry(NamedTuple):
    """A candidate for a context.

    why: why it must be left out; None if it may be taken. by_excerpt: whether to cut a long text to its best
        sentences.
    """

    entry: ContextEntry
    why: str | None = None
    by_excerpt: bool = False


class EligibleEntries:
    """Candidates from each source, best first."""

    def __init__(self, db: Connection, request: BuildContext, hits: ContextHits) -> None:
        self._db, self._request, self._hits = db, request, hits
        chat = request.current_chat
        self._is_of_all = request.scope == "store"
        self._own = [*dict.fromkeys((request.name_of_current_chat, *request.joined, None))]
        self._chat = chat if chat is not None and is_known_chat(db, chat) else None
        entries = self._window_entries()
        found = [*hits.messages, *(hit for hit, _ in hits.listed if hit.kind == "message")]
        self._superseded = superseded_messages(
            db, [*map(_key_of_message_in_chat, entries), *map(_key_of_message_in_chat, found)]
        )
        self._window = {_event_key(entry): self._mark_superseded(entry) for entry in entries}

    def facts_and_listed_hits(self) -> Iterator[EligibleEntry]:
        """Yield the facts that answer the prompt, then the listed hits of every kind, best first.

        The newest fact of a topic and rank precedes those it corrects.
        """
        rated = (self._candidate_with_score(hit, score) for hit, score in self._hits.listed)
        candidates = [*{each.entry.id: each for each in (*self._answering_facts(), *rated)}.values()]
        candidates += self._newer_facts_below_floor(candidates)
        candidates = [*self._complete_ranked_lists(candidates)]
        # Before the cut, so that a corrected memory never displaces its correction.
        by_entry = {id(each.entry): each for each in candidates}
        for entry in put_newest_facts_first_and_mark_older([each.entry for each in candidates]):
            yield by_entry[id(entry)]

    def session_memories(self) -> Iterator[EligibleEntry]:
        """Yield the listed memories of the chat itself."""
        own = self._request.name_of_current_chat
        return (
            each for each in self.facts_and_listed_hits() if each.entry.is_memory and each.entry.chat == own
        )

    def omitted_faded_memories(self) -> Iterator[EligibleEntry]:
        """Yield memories left out because they have faded, with the reason; used to explain a context."""
        for hit in self._hits.faded:
            memory = memories.find_memory(self._db, hit.id)
            faded = make_entry_of_memory(memory, hit)
            if memory and faded and memory.salience < self._request.min_salience:
                why = f"its salience {memory.salience:.3f} is below {self._request.min_salience:g}"
                yield EligibleEntry(faded, why)

    def passages_of_messages(self) -> Iterator[EligibleEntry]:
        """Yield passages of messages; none if messages are listed.

        Long passages found only through their neighbours come last: each takes the space of several turns.
        """
        hits = self._hits.messages
        late = [hit for hit in hits if hit.only_context and len(hit.content) > _LONG]
        for hit in [*(hit for hit in hits if hit not in late), *late]:
            yield self._passage_candidate(hit)

    def passages_of_documents(self) -> Iterator[EligibleEntry]:
        """Yield passages of documents; none if documents are listed."""
        return map(_document_candidate, self._hits.documents)

    def newest_summary_if_any(self) -> Iterator[EligibleEntry]:
        """Yield the chat's newest summary, if it has one that is not excluded."""
        for newest in list_summaries(self._db, self._chat)[-1:] if self._chat is not None else ():
            if newest.id not in self._request.excluded_ids:
                yield self._summary_candidate(newest, None)

    def messages_of_window(self) -> list[EligibleEntry]:
        """Return the chat's window, newest message first."""
        return list(self._window.values())

    def _window_entries(self) -> list[ContextEntry]:
        chat = self._chat
        if chat is None or self._request.is_sent:
            return []
        messages = window_of_chat(self._db, chat, last=DEFAULT_LAST).messages
        kept = [
            each for each in messages if each.id not in self._request.excluded_ids and each.content.strip()
        ]
        entries = make_entries_of_window(self._db, chat, kept)
        return [entry for entry in entries if _event_key(entry) != self._hits.prompt_key]

    def _mark_superseded(self, entry: ContextEntry) -> EligibleEntry:
        return EligibleEntry(entry, SUPERSEDED if _event_key(entry) in self._superseded else None)

    def _candidate_with_score(self, hit: Hit, score: EntryScore) -> EligibleEntry:
        found = self._candidate_of_hit(hit)
        found.entry.score, found.entry.relevance_score = score, round(entry_probability(score), 3)
        return found

    def _newer_facts_below_floor(self, listed: Iterable[EligibleEntry]) -> list[EligibleEntry]:
        """Return facts below the floor that are newer than a listed fact of the same topic and rank."""
        dates: dict[object, str] = {}
        for each in listed:
            if each.why is None and (topic := topic_and_rank(each.entry)) is not None:
                dates[topic] = max(dates.get(topic, ""), each.entry.ts or "")
        if not dates:
            return []
        below = (
            self._candidate_with_score(each.hit, each.score)
            for each in self._hits.below
            if each.score is not None
        )
        return [
            each for each in below if (each.entry.ts or "") > dates.get(topic_and_rank(each.entry), "9999")
        ]

    def _complete_ranked_lists(self, listed: Sequence[EligibleEntry]) -> Iterator[EligibleEntry]:
        """Yield the listed entries with all ranked lists complete, since a part would pass for the whole."""
        known = {each.entry.id: each for each in listed}
        given = set[str]()
        for each in listed:
            topic = self._topics_by_fact.get(each.entry.id) if each.entry.rank and each.why is None else None
            for one in [each] if topic is None else self._facts_of_topic(topic):
                if one.entry.id not in given:
                    given.add(one.entry.id)
                    yield known.get(one.entry.id, one)

    def _candidate_of_hit(self, hit: Hit) -> EligibleEntry:
        if hit.kind == "message":
            return self._passage_candidate(hit)
        if hit.kind == "document":
            return _document_candidate(hit)
        key = hit.position.stream, hit.event_id
        row = self._db.execute("SELECT type FROM events WHERE stream = ? AND id = ?", key).fetchone()
        match row and row[0]:
            case "memory_saved" | "memory_updated":
                entry = make_entry_of_memory(memories.find_memory(self._db, hit.id), hit)
                return EligibleEntry(
                    entry or make_entry_of_hit(hit, "memory", "FACT"), None if entry else SUPERSEDED
                )
            case "fact_stored":
                return self._find_fact(hit.id) or EligibleEntry(
                    make_entry_of_hit(hit, "fact", "FACT"), SUPERSEDED
                )
            case "summary_written":
                found = summary_by_event(self._db, *_event_key(hit))
                if found is not None:
                    return self._summary_candidate(found, hit.score)
            case "daily_event_recorded":
                return EligibleEntry(make_entry_of_hit(hit, "memory", "EVENT"))
            case "document_indexed":
                passage = cut_passage_of_hit(self._db, hit)
                return EligibleEntry(
                    make_entry_of_hit(hit, "memory", "FILE", title=hit.source, content=passage)
                )
        return EligibleEntry(make_entry_of_hit(hit, "memory", "FACT"), SUPERSEDED)

    def _passage_candidate(self, hit: Hit) -> EligibleEntry:
        """Return the passage found in a message, or the window's entry if the message is in the window."""
        in_window = self._window.get(_event_key(hit))
        if in_window is not None:
            in_window.entry.relevance_score = hit.score
            return in_window
        members = {"content": cut_passage_of_hit(self._db, hit), "role": hit.role, "name": hit.name}
        entry = make_entry_of_hit(hit, "passage", "CONVERSATION", **members)
        return self._mark_superseded(entry)._replace(by_excerpt=True)

    def _summary_candidate(self, found: Summary, score: float | None) -> EligibleEntry:
        why = SUPERSEDED if covers_superseded_message(self._db, found) else None
        return EligibleEntry(make_entry_of_summary(found, score), why)

    def _find_fact(self, fact_id: str) -> EligibleEntry | None:
        topic = self._topics_by_fact.get(fact_id)
        of_topic = () if topic is None else self._facts_of_topic(topic)
        return next((each for each in of_topic if each.entry.id == fact_id), None)

    @cached_property
    def _topics_by_fact(self) -> dict[str, Topic]:
        own = (topics_of_chat(self._db, chat) for chat in self._own)
        known = all_topics(self._db) if self._is_of_all else chain.from_iterable(own)
        return {fact.fact_id: topic for topic in known for fact in topic.facts}

    def _answering_facts(self) -> Iterator[EligibleEntry]:
        """Yield the facts that answer the prompt if it asks for facts, whatever the search found."""
        if not self._topics_by_fact:
            return
        own = [] if self._is_of_all and self._request.chat is None else self._own
        request = [*((chat, False) for chat in own), *([(None, True)] if self._is_of_all else [])]
        answers = [
            answer_question(self._db, self._request.text, chat=chat, any_chat=every)
            for chat, every in request
        ]
        ids = dict.fromkeys(fact.fact_id for answer in answers for fact in answer.facts)
        yield from filter(None, map(self._find_fact, ids))

    def _facts_of_topic(self, topic: Topic) -> Iterator[EligibleEntry]:
        chat = self._request.name_of_current_chat
        # In the scope `store`, the facts of all chats are shown, each with its date.
        is_other = chat is not None and topic.chat is None and not self._is_of_all
        known = self._topics_by_fact.values() if is_other else ()
        has_own = any((each.chat, each.key) == (chat, topic.key) for each in known)
        for fact, entry in zip(topic.facts, make_entries_of_facts(topic), strict=True):
            if self._request.excluded_ids.isdisjoint((fact.fact_id, fact.event_id)):
                yield EligibleEntry(entry, f"{chat} has its own" if has_own else None)


def _document_candidate(hit: Hit) -> EligibleEntry:
    lines = f"{hit.start_line}" if hit.start_line == hit.end_line else f"{hit.start_line}-{hit.end_line}"
    title = f"{hit.source}/{hit.file}:{lines}"
    entry = make_entry_of_hit(hit, "document", "DOCUMENT", title=title, content=hit.content.strip())
    return EligibleEntry(entry, by_excerpt=True)


def _event_key(entry: ContextEntry | Hit) -> Key:
    return entry.position.stream, entry.id


def _key_of_message_in_chat(entry: ContextEntry | Hit) -> ChatMessage:
    return ChatMessage(*_event_key(entry), entry.chat or "")


_MIN_REDUNDANT = 12
"""A passage with fewer characters is not redundant, even if another entry contains it."""

_BEST = 2
"""The number of entries for the prompt that come before core memory."""

_LAST_TURNS = 4
"""The most window messages that come before the other entries for the prompt."""

_FEWEST_TURNS = 2
_SHARE_OF_TURNS = 4
"""More than `_FEWEST_TURNS` of these messages are taken only while they fit into a quarter of the budget:
otherwise, at 500 tokens, .044 of LoCoMo's answers are lost."""

_NO_ROOM = "no room"
_WHOLE: tuple[Part, ...] = (*STABLE, "fact")
"""Parts whose entries are never cut."""


class OmittedEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A candidate that was left out.

    part, id, score: see `ContextEntry`. why: a readable reason.
    tokens: its size; 0 if size was not the reason.
    """

    part: Part
    id: str
    why: str
    tokens: int
    score: EntryScore | None = None


_PRIVATE = "private: a credential, or what looks like a key"


class _Share:
    """Candidates with limits on how many may be taken, in total and per part."""

    def __init__(
        self,
        candidates: Iterable[EligibleEntry],
        most: int | None = None,
        of_part: Mapping[Part, int] | None = None,
    ) -> None:
        self.candidates = iter(candidates)
        self._limits: dict[Part | None, int] = {**(of_part or {})} | ({} if most is None else {None: most})
        self._taken: dict[Part | None, set[str]] = {}

    def why_full(self, entry: ContextEntry) -> str | None:
        """Return a message about the limit that rules an entry out; None if no limit does."""
        for part in (entry.part, None):
            most = self._limits.get(part)
            if (
                most is not None
                and len(self._taken.get(part, set()) | {_key_to_count_entry_by(entry)}) > most
            ):
                return f"beyond the {most} that were requested"
        return None

    def count_as_taken(self, entry: ContextEntry) -> None:
        """Count an entry as taken."""
        for part in (entry.part, None):
            self._taken.setdefault(part, set()).add(_key_to_count_entry_by(entry))


def _key_to_count_entry_by(entry: ContextEntry) -> str:
    """Return the key under which an entry counts towards a limit; all ranks of a list share one."""
    return f"{entry.part} {entry.topic if entry.part == 'fact' else entry.id} {entry.chat}"


class Filling:
    """Takes the entries that fit, in the order they are offered."""

    def __init__(
        self,
        request: BuildContext,
        printer: Printer,
        core: Sequence[ContextEntry],
        always: Sequence[EligibleEntry],
        may_be_sent: Callable[[ContextEntry], bool],
    ) -> None:
        self._request, self._printer, self._may_be_sent = request, printer, may_be_sent
        self._used = weigh_text(printer.frame_around_entries(), request.counter)
        self._has_frame = self._fits_into_budget(0)
        self.taken: list[ContextEntry] = []
        self._window: list[EligibleEntry] = []
        self._cites = 0
        self._seen: set[tuple[str, str, Part, str | None]] = set()
        self.left_out: list[OmittedEntry] = []
        self._uncited: tuple[Part, ...] = PARTS if request.form == "session" else STABLE
        self._always = [] if request.part == "turn" else always
        self._held = {each.entry.id: each for each in always if each.why is None}
        holding = [each.entry for each in self._held.values()]
        self._by_text = {fold_content(entry.content): entry for entry in holding}
        if request.part == "turn":
            # The stable half, printed by another call, uses these citations and texts.
            self._cites = 0 if self._uncited else len(core) + len(holding)
            self._by_text |= {fold_content(entry.content): entry for entry in core}
        self._first = 1 + self._cites
        self._core = [] if request.part == "turn" else [*map(EligibleEntry, core)]

    def offer_candidates(self, candidates: EligibleEntries | None) -> None:
        """Offer the candidates by priority; None offers only the stable half.

        The two best entries for the prompt come first, so that even a small context answers it; then core
        memory, the last turns, and the rest. With core memory first, contexts of 200 tokens held only .03 of
        what the prompts of fixtures/told need, instead of .45.
        """
        if candidates is None:
            self._offer_candidates_within(_Share([*self._core, *self._always]))
            return
        request = self._request
        if request.form == "session":
            self._offer_candidates_within(_Share(candidates.session_memories(), request.limit))
            return
        of_part: dict[Part, int] = {"document": request.documents, "passage": request.passages}
        listed = _Share(
            self._replace_held_memories(candidates.facts_and_listed_hits()), request.limit, of_part
        )
        documents = _Share(candidates.passages_of_documents(), request.documents)
        passages = _Share(candidates.passages_of_messages(), request.passages)
        self._window = candidates.messages_of_window()
        window = _Share(self._window)
        for share in (listed, documents, passages):
            self._offer_candidates_within(share, _BEST - len(self.taken))
        self._offer_candidates_within(_Share(self._core))
        self._offer_candidates_within(window, _LAST_TURNS, within=request.max_tokens // _SHARE_OF_TURNS)
        self._offer_candidates_within(listed)
        self._offer_candidates_within(_Share(chain(candidates.omitted_faded_memories(), self._always)))
        self._offer_candidates_within(documents)
        self._offer_candidates_within(passages)
        self._offer_candidates_within(_Share(candidates.newest_summary_if_any()))
        self._offer_candidates_within(window)
        found = [each for each in self.taken if each.part != "always" and each.relevance_score is not None]
        for each in found[:_BEST]:
            each.is_best = True

    @cached_property
    def _excerpts(self) -> Excerpts:
        return Excerpts(self._request.search_for_text.parsed_question, self._request.counter)

    def _replace_held_memories(self, listed: Iterable[EligibleEntry]) -> Iterator[EligibleEntry]:
        """Yield the listed entries, with stable-half entries in place of memories that always hold.

        If the stable half is printed by another call, such a memory is marked as left out.
        """
        for each in listed:
            if not (each.entry.is_memory and each.entry.id in self._held):
                yield each
            elif self._request.part == "turn":
                yield each._replace(why="it always holds: the stable half has it")
            else:
                holding = self._held[each.entry.id]
                holding.entry.score = each.entry.score
                holding.entry.relevance_score = each.entry.relevance_score
                yield holding

    def render_taken_entries(self) -> tuple[str, int, list[ContextEntry]]:
        """Return the printed text, its token count, and its entries with their citations."""
        while self._has_frame:
            entries = self._number_citations()
            text = self._printer.render_entries(entries)
            count = count_text_tokens(text, self._request.counter)
            if count <= self._request.max_tokens:
                return text, count, entries
            # Counters are not additive: a text may weigh a little more than the sum of its pieces.
            self._record_left_out(self.taken.pop(), _NO_ROOM)
        return "", 0, []

    def _offer_candidates_within(
        self, share: "_Share", most: int | None = None, within: int | None = None
    ) -> None:
        """Offer candidates until `most` are taken, or another one would probably exceed `within` tokens.

        The first `_FEWEST_TURNS` are offered whatever their size.
        """
        taken, before = 0, self._used
        while most is None or taken < most:
            used = round_weight_to_tokens(self._used - before, self._request.counter)
            if within is not None and taken >= _FEWEST_TURNS and used * (taken + 1) > within * taken:
                return
            candidate = next(share.candidates, None)
            if candidate is None:
                return
            # What always holds does not count towards the limits: it is given in any case.
            holds = candidate.entry.part == "always"
            is_taken = self._take_or_leave_out(candidate, None if holds else share.why_full(candidate.entry))
            if is_taken and not holds:
                share.count_as_taken(candidate.entry)
            taken += is_taken

    def _take_or_leave_out(self, candidate: EligibleEntry, full: str | None) -> bool:
        """Take a candidate or record why it is left out; return whether it was taken."""
        entry = candidate.entry
        key = (entry.position.stream, entry.id, entry.part, entry.title)
        # A message of the window that exceeds the limit of passages will be offered again with the window.
        if key in self._seen or (full is not None and entry.part == "window"):
            return False
        self._seen.add(key)
        if why := candidate.why or full:
            # Its tokens are not counted: counting is most of the work.
            return self._record_left_out(entry, why)
        if not self._may_be_sent(entry):
            return self._record_left_out(entry, _PRIVATE)
        added = self._weigh_entry(entry)
        is_long = (
            candidate.by_excerpt and round_weight_to_tokens(added, self._request.counter) > EXCERPT_TOKENS
        )
        if is_long or (not self._fits_into_budget(added) and self._may_be_cut(entry)):
            entry.content = self._excerpts.cut_to_best_sentences(entry.content)
            added = self._weigh_entry(entry)
        entry.tokens = round_weight_to_tokens(added, self._request.counter)
        # An entry that does not fit is not compared with others: it may have millions of characters.
        if why := (None if self._fits_into_budget(added) else _NO_ROOM) or self._why_redundant(entry):
            return self._record_left_out(entry, why)
        self._used += added
        self.taken.append(entry)
        self._cites += entry.part not in self._uncited
        self._by_text.setdefault(fold_content(entry.content), entry)
        return True

    def _may_be_cut(self, entry: ContextEntry) -> bool:
        """Whether an entry may be cut to its best sentences: a turn of the window, or one of the `_BEST`."""
        if entry.part == "window":
            return True
        return entry.part not in _WHOLE and sum(each.part not in _WHOLE for each in self.taken) < _BEST

    def _weigh_entry(self, entry: ContextEntry) -> float:
        if (
            round_weight_to_tokens(least_weight_of_length(entry.content), self._request.counter)
            > self._request.max_tokens
        ):
            return least_weight_of_length(entry.content)
        # The final number may differ, but all entries together have the same set of numbers.
        entry.citation = "" if entry.part in self._uncited else f"M{self._cites + 1}"
        return weigh_text(self._printer.text_of_entry(entry), self._request.counter)

    def _fits_into_budget(self, more: float) -> bool:
        return round_weight_to_tokens(self._used + more, self._request.counter) <= self._request.max_tokens

    def _record_left_out(self, entry: ContextEntry, why: str) -> Literal[False]:
        omitted = OmittedEntry(part=entry.part, id=entry.id, why=why, tokens=entry.tokens, score=entry.score)
        self.left_out.append(omitted)
        return False

    def _why_redundant(self, entry: ContextEntry) -> str | None:
        """Return the reason why a memory or passage is redundant; None if no taken entry has its text."""
        if entry.part not in ("memory", "passage"):
            return None
        content = fold_content(entry.content)
        other = self._by_text.get(content)
        if other is None and entry.part == "passage" and len(content) >= _MIN_REDUNDANT:
            other = next((each for text, each in self._by_text.items() if content in text), None)
        return None if other is None else f"the {other.part} {other.id} has this text"

    def _number_citations(self) -> list[ContextEntry]:
        """Return the taken entries in printing order, with numbered citations."""
        # The stable half must be the same bytes for every prompt.
        in_order: dict[Part, list[ContextEntry]] = {
            "window": [candidate.entry for candidate in self._window][::-1],
            "always": [candidate.entry for candidate in self._always],
        }
        taken = {id(entry) for entry in self.taken}
        entries = [
            entry
            for part in PARTS
            for entry in in_order.get(part, self.taken)
            if entry.part == part and id(entry) in taken
        ]
        entries = sort_facts_by_rank(put_newest_facts_first_and_mark_older(entries))
        cited = (entry for entry in entries if entry.part not in self._uncited)
        for number, entry in enumerate(cited, start=self._first):
            entry.citation = f"M{number}"
        return entries
