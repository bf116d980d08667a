"""Searches memories, messages and documents for a context, and keeps what is relevant to the prompt."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain, takewhile
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from memlog.projector.embedding.models import Models
from memlog.projector.sqlite import Connection, count_rows
from memlog.query.context import floor, scores
from memlog.query.context.background import StoreSample
from memlog.query.context.request import BuildContext
from memlog.query.context.scope import memories_outside_scope
from memlog.query.conversations import NEWEST_FIRST
from memlog.query.event_index import Key
from memlog.query.filters import Filters, Kind
from memlog.query.gate import is_social_text
from memlog.query.search import fulltext, hybrid
from memlog.query.search.fulltext import NO_NEIGHBOURS, QUESTION_MARKS
from memlog.query.search.hits import Candidate, Hit, Ref, Rerank, make_hits_of_candidates
from memlog.query.search.hybrid import Found, Quota
from memlog.query.search.request import Search
from memlog.query.time_words import NamedTime, find_past_time

_CANDIDATES = 2
"""The number of candidates for each requested memory, passage and document."""

OF_ANOTHER_CHAT = 0.6
"""The weight of an entry from another chat. Measured on LoCoMo 6 to 10 as five chats of one store, without
names in the questions: .781 of the evidence in the current chat is found and .719 of that in another; with a
weight of 1.0, .740 and .740."""

_HITS = 50
"""The fewest candidates among memories, facts, summaries, daily events and files together."""

_MAX_BY_LINES = 20
"""The most candidates of each kind found only by the words of a single line of a long prompt."""

_MAX_BY_MEANING = 5
"""The most candidates that each of the most distinctive lines of a long prompt finds by meaning."""

_MAX_OF_TIME = 5
"""The most entries from the time that the prompt names; the floor does not apply to them."""

_SAVED_BONUS = 1.5
"""Added to the score of memories when the entries from a named time are sorted. Of the prompts of
fixtures/told that name a time, .64 get what they need, instead of .29."""

_DISTILLED = 10
"""If there are more than this many messages (or documents) per memory or fact, messages (or documents) are
not listed together with memories and facts: on LoCoMo, which has no memories, the list would lose .187 of the
answers."""

_NOTHING = Found([], NO_NEIGHBOURS, {})

Rated = list[tuple[Hit, scores.EntryScore]]
"""Hits with their scores."""


class Below(NamedTuple):
    """A hit that is not relevant enough, with the reason; listed kinds also have a score."""

    hit: Hit
    why: str
    score: scores.EntryScore | None = None


class PromptSearches:
    """Searches for hits of all kinds at once, and judges them.

    time: the time the prompt names, if any. silent: see `SearchResult`.
    """

    def __init__(
        self,
        db: Connection,
        request: BuildContext,
        models: Models,
        prompt_key: Key | None,
        sample: StoreSample,
    ) -> None:
        self._db, self._request, self._prompt_key = db, request, prompt_key
        self._sample = sample
        self._prompt = scores.ScoredPrompt(
            db, request.search_for_text, scores.wrap_to_embed_once(models), sample
        )
        chat = request.chat if request.scope == "chat" else None
        filters = Filters(
            chat=chat,
            joined=request.joined,
            own_scope=request.form != "session",
            of_no_chat=request.scope == "chat" and chat is None,
            min_salience=request.min_salience,
            exclude=request.exclude,
        )
        self._filters: dict[Kind, Filters] = {
            "memory": replace(filters, kinds=frozenset(["memory"])),
            "message": replace(filters, kinds=frozenset(["message"]), asking=prompt_key),
            # Documents belong to no conversation.
            "document": Filters(kinds=frozenset(["document"]), exclude=request.exclude),
        }
        self.time = find_past_time(request.text, request.load_time_zone())
        self._in_time: dict[Kind, Filters] = {}
        if self.time is not None:
            # Documents are excluded, since the date of a file is that of its reading.
            named = {"since": self.time.since, "until": self.time.until}
            kinds: tuple[Kind, ...] = ("memory", "message")
            self._in_time = {kind: replace(self._filters[kind], **named) for kind in kinds}
        self._faded = replace(self._filters["memory"], min_salience=0.0)
        self._found = self._search_by_filters()
        self.silent: dict[str, str] = dict(self._found[self._filters["memory"]].silent)

    def relevant_and_other_hits(self) -> tuple[Rated, list[Below]]:
        """Return the hits of the listed kinds: those that are relevant, and the rest.

        Relevant hits are sorted by score, after any from the time the prompt names.
        """
        kinds = self._listed_kinds
        found = [
            self._measure_listed_hits(kind, self._hits_of_kind(kind), self._filters[kind]) for kind in kinds
        ]
        hits = chain(*found, self._hits_of_named_time())
        measured = {_event_key(each.hit): each for each in hits}
        rated = scores.score_hits(self._prompt, measured.values(), self._prompt_key)
        of_time = sorted(
            (each for each in rated if measured[_event_key(each[0])].in_time),
            key=lambda each: -each[1].total - _SAVED_BONUS * (each[0].kind == "memory"),
        )
        first = [(hit, replace(score, is_of_time=True)) for hit, score in of_time[:_MAX_OF_TIME]]
        taken = {id(hit) for hit, _ in first}
        rest = [each for each in rated if id(each[0]) not in taken and each[0].kind in kinds]
        kept = [each for each in rest if each[1].total >= each[1].floor]
        kept = [*first, *self._add_replies_to_questions(kept, rest[len(kept) :])]
        known = {id(hit) for hit, _ in kept}
        return kept, [Below(hit, "below the floor", score) for hit, score in rest if id(hit) not in known]

    def _hits_of_named_time(self) -> Iterator[scores.ListedHit]:
        for kind, filters in self._in_time.items():
            found = self._found.get(filters, _NOTHING)
            if len(found.hits) < _MAX_OF_TIME:
                found = found._replace(
                    hits=[*found.hits, *self._newest_candidates_not_found(kind, filters, found)]
                )
            for each in self._measure_listed_hits(kind, found, filters):
                yield each._replace(in_time=each.hit.kind == kind)

    def _add_replies_to_questions(self, kept: Rated, below: Rated) -> Rated:
        """After each question in `kept`, insert the reply if it is in `below`.

        A reply rarely shares words with the prompt.
        """
        if "message" not in self._listed_kinds:
            return kept
        near, given = self._hits_of_kind("message").near, list[tuple[Hit, scores.EntryScore]]()
        found = {_event_key(hit): (hit, score) for hit, score in below if hit.kind == "message"}
        for hit, score in kept:
            given.append((hit, score))
            if hit.kind == "message" and hit.content.rstrip().endswith(QUESTION_MARKS):
                reply = near.find_message_after(_event_key(hit))
                if reply in found and found[reply][0].role != hit.role:
                    given.append(found.pop(reply))
        return given

    def judge_messages(self) -> floor.Judged:
        """Judge the messages by a floor of their own; no hits if messages are listed."""
        if "message" in self._listed_kinds:
            return floor.Judged([], [])
        few = count_rows(self._db, f"(SELECT 1 FROM messages LIMIT {floor.FEW_MESSAGES})")
        return self._judge_hits_of_kind("message", floor.OF_FEW if few < floor.FEW_MESSAGES else 1.0)

    def judge_documents(self) -> floor.Judged:
        """Judge the documents by the floor for messages; no hits if documents are listed."""
        if "document" in self._listed_kinds:
            return floor.Judged([], [])
        judged = self._judge_hits_of_kind("document")
        return judged._replace(kept=judged.kept[: self._request.documents])

    def find_faded_memories(self) -> list[Hit]:
        """Return memories that are found only when salience is ignored, to explain a context."""
        known = {hit.id for _, hit in self._hits_of_kind("memory").hits}
        return [hit for _, hit in self._found.get(self._faded, _NOTHING).hits if hit.id not in known]

    def _newest_candidates_not_found(
        self, kind: Kind, filters: Filters, found: Found
    ) -> list[tuple[Candidate, Hit]]:
        known = {candidate.ref for candidate, _ in found.hits}
        new = {each.ref: each for each in fulltext.newest_candidates(self._db, kind, filters, _MAX_OF_TIME)}
        return self._drop_memories_outside_scope(
            self._candidates_to_hits(each for ref, each in new.items() if ref not in known)
        )

    def _candidates_to_hits(self, candidates: Iterable[Candidate]) -> list[tuple[Candidate, Hit]]:
        return make_hits_of_candidates(self._db, [(each, 0.0) for each in candidates], self._prompt.question)

    @cached_property
    def _listed_kinds(self) -> list[Kind]:
        """The kinds to list: memories, plus messages or documents unless they far outnumber memories."""
        most = _DISTILLED * (count_rows(self._db, "memories") + count_rows(self._db, "facts"))
        tables: dict[Kind, str] = {"message": "messages", "document": "documents"}
        few = [
            kind
            for kind, table in tables.items()
            if count_rows(self._db, f"(SELECT 1 FROM {table} LIMIT {most + 1})") <= most
        ]
        return ["memory", *few]

    def _hits_of_kind(self, kind: Kind) -> Found:
        return self._found.get(self._filters[kind], _NOTHING)

    def _search_by_filters(self) -> dict[Filters, Found]:
        request = self._request
        has_documents = count_rows(self._db, "(SELECT 1 FROM doc_chunks LIMIT 1)")
        most: dict[Kind, int] = {
            "memory": max(_HITS, _CANDIDATES * request.limit),
            "message": _CANDIDATES * request.passages,
            "document": _CANDIDATES * request.documents if has_documents else 0,
        }
        wanted = [*self._filters.items(), *self._in_time.items()]
        if request.explain and request.min_salience > 0:
            wanted.append(("memory", self._faded))
        quotas = [Quota(most[kind], filters) for kind, filters in wanted if most[kind]]
        found = hybrid.find_hits(self._db, request.search_for_text, quotas, self._prompt.finding_models)
        return {
            quota.where: of_quota._replace(hits=self._drop_memories_outside_scope(of_quota.hits))
            for quota, of_quota in zip(quotas, found, strict=True)
        }

    def _drop_memories_outside_scope(self, hits: list[tuple[Candidate, Hit]]) -> list[tuple[Candidate, Hit]]:
        """Drop memories derived from chats outside the scope."""
        foreign = memories_outside_scope(
            self._db, self._request, [hit.id for _, hit in hits if hit.kind == "memory"]
        )
        return [(candidate, hit) for candidate, hit in hits if hit.id not in foreign]

    def _judge_hits_of_kind(self, kind: Kind, factor: float = 1.0) -> floor.Judged:
        found = self._hits_of_kind(kind)
        return self._prompt.judge_hits_of_prompt(found.hits, found.near, factor)

    def _measure_listed_hits(self, kind: Kind, of_search: Found, filters: Filters) -> list[scores.ListedHit]:
        prompt, found = self._prompt, list(of_search.hits)
        of_lines = self._rate_line_covers_and_add_hits(kind, found, filters)
        far = {} if prompt.multilingual_prompt is None else prompt.multilingual_prompt.nearness_by_hit(found)
        whole = scores.compare_hits(self._db, prompt, found)
        by_line = [
            [
                (line.cosine_to_deviations(cosine), words)
                for cosine, words in scores.compare_hits(self._db, line, found)
            ]
            for line in self._distinctive_lines_as_prompts
        ]
        return [
            scores.ListedHit(
                hit,
                candidate.owner,
                *whole[place],
                of_lines.get(candidate.ref, 0.0),
                _factor_for_same_chat(self._request, hit),
                far.get(place),
                [each[place] for each in by_line],
            )
            for place, (candidate, hit) in enumerate(found)
        ]

    @cached_property
    def _line_matches(self) -> dict[Kind, floor.LookedUp]:
        """Rows that match lines of a long prompt, keyed by kind; {} for a short prompt."""
        lines = floor.terms_by_line_of_long_prompt(self._prompt.text)
        kinds = self._listed_kinds if lines else ()
        return {kind: floor.match_lines(self._db, fulltext.INDEXES[kind].table, lines) for kind in kinds}

    @cached_property
    def _distinctive_lines_as_prompts(self) -> list[scores.ScoredPrompt]:
        """The distinctive lines of a long prompt, each also compared by meaning as a prompt of its own."""
        lines = (Search(line, mode="vector") for line in floor.distinctive_lines(self._line_matches.values()))
        prompts = (scores.ScoredPrompt(self._db, line, self._prompt.models, self._sample) for line in lines)
        return [each for each in prompts if each.vector is not None]

    def _rate_line_covers_and_add_hits(
        self, kind: Kind, found: list[tuple[Candidate, Hit]], filters: Filters
    ) -> dict[Ref, float]:
        """Return each candidate's best cover of a line of a long prompt; append new hits to `found`."""
        if not self._line_matches:
            return {}
        covers = self._line_matches[kind].covers
        best = sorted(covers, key=lambda row: (-covers[row], row))[: _MAX_BY_LINES + len(found)]
        known = {candidate.ref for candidate, _ in found}
        by_ref: dict[Ref, float] = {}
        of_words: dict[Ref, Candidate] = {}
        for candidate in fulltext.find_allowed_candidates_among(self._db, kind, best, filters):
            row = candidate.message_no if kind == "message" else candidate.chunk_no
            assert row is not None
            by_ref[candidate.ref] = max(covers[row], by_ref.get(candidate.ref, 0.0))
            if candidate.ref not in known:
                of_words.setdefault(candidate.ref, candidate)
        new = {each.ref: (each, hit) for each, hit in self._candidates_to_hits(of_words.values())}
        for line in self._distinctive_lines_as_prompts:
            (near,) = hybrid.find_hits(self._db, line.search, [Quota(_MAX_BY_MEANING, filters)], line.models)
            new |= {each.ref: (each, hit) for each, hit in near.hits if each.ref not in known | new.keys()}
        found += self._drop_memories_outside_scope([*new.values()])
        return by_ref


def _factor_for_same_chat(request: BuildContext, hit: Hit) -> float:
    is_own = (
        request.chat is None or request.scope == "chat" or hit.chat in (None, request.name_of_current_chat)
    )
    return 1.0 if is_own else OF_ANOTHER_CHAT


def _event_key(hit: Hit) -> Key:
    return hit.position.stream, hit.id


NOTHING = "nothing_relevant"
"""The key in `silent` for the reason why only core memory, what always holds, the window and the newest
summary are given."""

_IRRELEVANT = "nothing that was found is relevant to the message"

_SEARCHED_MESSAGES = 1000
"""How many of a chat's newest messages are searched for the prompt's own message."""


class ContextHits(msgspec.Struct, frozen=True):
    """The hits of the searches, best first; empty if the searches failed.

    listed: hits of all listed kinds.
    messages, documents: hits of kinds that are not listed, because too little of them has been distilled;
        judged by a floor of their own.
    below: hits that are not relevant enough.
    answered: the probability that the best hit belongs to the prompt; None if there are no hits.
    time: the time the prompt names, if any.
    faded: memories below the salience threshold, to explain the context.
    silent: see `SearchResult`. prompt_key: the key of the prompt's own message, which is left out.
    """

    listed: Rated = []
    messages: Sequence[Hit] = ()
    documents: Sequence[Hit] = ()
    faded: Sequence[Hit] = ()
    below: Sequence[Below] = ()
    answered: float | None = None
    silent: dict[str, str] = {}
    prompt_key: Key | None = None
    time: NamedTime | None = None


def find_context_hits(
    db: Connection,
    request: BuildContext,
    models: Models,
    prompt_key: Key | None,
    sample: StoreSample,
    rerank: Rerank | None = None,
) -> ContextHits:
    """Search for `request.text`, and judge what is found. A greeting on its own finds nothing.

    prompt_key: the key of the prompt's own message, which is left out; None if unknown.
    sample: a sample of the store's passages. rerank: reorders the relevant hits.

    Raises:
        sqlite3.Error: the read model cannot be read.
    """
    if is_social_text(request.text):
        return ContextHits(silent={NOTHING: "a greeting or an acknowledgement alone"}, prompt_key=prompt_key)
    search = PromptSearches(db, request, models, prompt_key, sample)
    listed, below = search.relevant_and_other_hits()
    passages = search.judge_messages()
    distinct = floor.keep_newest_of_near_copies(passages.kept)
    documents = search.judge_documents()
    if rerank is not None:
        of_hits = {id(hit): score for hit, score in listed}
        ranked = rerank(request.text, [hit for hit, _ in listed], search.silent)
        listed = [(hit, of_hits[id(hit)]) for hit in ranked]
        listed.sort(key=lambda each: not each[1].is_of_time)
        distinct, documents = (
            part._replace(kept=rerank(request.text, part.kept, search.silent))
            for part in (distinct, documents)
        )
    below += [Below(hit, why) for part in (passages, distinct, documents) for hit, why in part.below]
    if not (listed or distinct.kept or documents.kept):
        search.silent[NOTHING] = _IRRELEVANT if below else "nothing was found"
    answers = [floor.answer_probability(part.best) for part in (passages, documents) if part.best is not None]
    rated = [*(score for _, score in listed), *(each.score for each in below if each.score)]
    answers += map(scores.entry_probability, rated)
    for hit in distinct.kept:
        hit.score *= _factor_for_same_chat(request, hit)
    return ContextHits(
        listed=listed,
        messages=sorted(distinct.kept, key=lambda hit: hit.score, reverse=True),
        documents=documents.kept,
        faded=search.find_faded_memories(),
        below=below,
        answered=max(answers, default=None),
        silent=search.silent,
        prompt_key=prompt_key,
        time=search.time,
    )


def find_prompt_message(db: Connection, request: BuildContext) -> Key | None:
    """Return the key of the prompt's own message, so that it can't answer itself; None if not found.

    This is `message_id` if given; otherwise the chat's newest message with the same text, unless an assistant
    has spoken since: an earlier "yes" is history.

    Raises:
        sqlite3.Error: the read model cannot be read.
    """
    where = ""
    values: list[str] = []
    if request.current_chat is not None:
        where, values = " AND channel = ? AND chat_id = ?", [*request.current_chat]
    if request.message_id is not None:
        found = db.execute(
            f"SELECT stream, id FROM messages WHERE id = ?{where} {NEWEST_FIRST} LIMIT 1",
            [request.message_id, *values],
        ).fetchone()
        return None if found is None else (found[0], found[1])
    if not where:
        return None
    rows = db.execute(
        f"SELECT stream, id, role, content FROM messages WHERE type <> 'session_break'{where}"
        f" {NEWEST_FIRST} LIMIT {_SEARCHED_MESSAGES}",
        values,
    )
    unanswered = takewhile(lambda row: row[2] != "assistant", rows)
    # The output of a tool asks nothing.
    matching = (row for row in unanswered if row[2] != "tool" and row[3] == request.text)
    return next(((stream, name) for stream, name, *_ in matching), None)
