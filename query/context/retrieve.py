"""Searches for a context: memories, messages and documents, and what of them belongs to the prompt."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import takewhile
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from memlog.projector.embedding.models import Models
from memlog.projector.sqlite import Connection, count_rows
from memlog.query.context import floor
from memlog.query.context.background import StoreSample
from memlog.query.context.floor import LookedUp, lines_of, look_up, telling
from memlog.query.context.request import BuildContext
from memlog.query.context.scope import of_others
from memlog.query.context.scores import (
    EntryScore,
    ListedHit,
    ScoredPrompt,
    chance,
    compared,
    embedding_once,
    is_known,
    scored,
)
from memlog.query.conversations import NEWEST_FIRST
from memlog.query.event_index import Key
from memlog.query.filters import Filters, Kind
from memlog.query.gate import is_social
from memlog.query.search import fulltext, hybrid
from memlog.query.search.fulltext import ASKING, NO_NEIGHBOURS
from memlog.query.search.hits import Candidate, Hit, Ref, Rerank, hits_of
from memlog.query.search.hybrid import Found, Quota
from memlog.query.search.request import Search
from memlog.query.time_words import NamedTime, time_in

_CANDIDATES = 2
"""Candidates for each requested memory, passage and document."""

OF_ANOTHER_CHAT = 0.6
"""The weight of what another chat says. Measured on LoCoMo 6 to 10 as five chats of one store, without
names in the questions: evidence of the own chat .781, of another .719; with 1.0 .740 and .740."""

_HITS = 50
"""Memories, facts, summaries, daily events and files together: the search ranks no fewer."""

_OF_LINES = 20
"""Things at most that only a line of a long prompt finds, of each kind."""

_OF_MEANING = 5
"""Things that each of its most telling lines finds by meaning."""

_OF_TIME = 5
"""Entries at most that are given for the time that the prompt names, whatever the floor."""

_SAVED_IN_TIME = 1.5
"""Added among these to the score of what was saved. Of the prompts of fixtures/told that name a time, .64 get
what they need, in place of .29."""

_DISTILLED = 10
"""Messages, or documents, to a memory or fact, from which on they are not listed with these: on LoCoMo,
without memories, the list would lose .187 of the answers."""

_TABLES: dict[Kind, str] = {
    "memory": "memory_chunks_fts",
    "message": "messages_fts",
    "document": "doc_chunks_fts",
}

_NOTHING = Found([], NO_NEIGHBOURS, {})

Rated = list[tuple[Hit, EntryScore]]
"""Hits with their scores, best first."""


class Below(NamedTuple):
    """A hit that is not relevant enough, and why; its score, where it was listed."""

    hit: Hit
    why: str
    score: EntryScore | None = None


class PromptSearches:
    """Searches once, for so many of each kind, and judges what is found.

    time: that the prompt names; None where it names none. silent: what did not take part, and why.
    """

    def __init__(
        self,
        db: Connection,
        request: BuildContext,
        models: Models,
        asking: Key | None,
        sample: StoreSample,
    ) -> None:
        self._db, self._request, self._asking = db, request, asking
        self._sample = sample
        self._prompt = ScoredPrompt(db, request.search, embedding_once(models), sample)
        chat = request.chat if request.scope == "chat" else None
        filters = Filters(
            chat=chat,
            joined=request.joined,
            own_scope=True,
            of_no_chat=request.scope == "chat" and chat is None,
            min_salience=request.min_salience,
            exclude=request.exclude,
        )
        self._filters: dict[Kind, Filters] = {
            "memory": replace(filters, kinds=frozenset(["memory"])),
            "message": replace(filters, kinds=frozenset(["message"]), asking=asking),
            # They belong to no conversation.
            "document": Filters(kinds=frozenset(["document"]), exclude=request.exclude),
        }
        self.time = time_in(request.text, request.zone())
        self._in_time: dict[Kind, Filters] = {}
        if self.time is not None:
            # The date of a file tells when it was read.
            named = {"since": self.time.since, "until": self.time.until}
            self._in_time = {
                kind: replace(filters, **named)
                for kind, filters in self._filters.items()
                if kind != "document"
            }
        self._faded = replace(self._filters["memory"], min_salience=0.0)
        self._found = self._search()
        self.silent: dict[str, str] = dict(self._found[self._filters["memory"]].silent)

    def listed(self) -> tuple[Rated, list[Below]]:
        """Return what belongs to the prompt, and what does not.

        First comes what is of the time that the prompt names, then the rest by its score.
        """
        kinds = self._listed_kinds
        found = [
            each for kind in kinds for each in self._measured(kind, self._hits(kind), self._filters[kind])
        ]
        measured = {_key(each.hit): each for each in [*found, *self._of_time()]}
        rated = scored(self._prompt, measured.values(), self._is_known)
        of_time = sorted(
            (each for each in rated if measured[_key(each[0])].in_time),
            key=lambda each: -each[1].total - _SAVED_IN_TIME * (each[0].kind == "memory"),
        )
        first = [(hit, replace(score, is_of_time=True)) for hit, score in of_time[:_OF_TIME]]
        taken = {id(hit) for hit, _ in first}
        rest = [each for each in rated if id(each[0]) not in taken and each[0].kind in kinds]
        kept = [each for each in rest if each[1].total >= each[1].floor]
        kept = [*first, *self._with_replies(kept, rest[len(kept) :])]
        known = {id(hit) for hit, _ in kept}
        return kept, [Below(hit, "below the floor", score) for hit, score in rest if id(hit) not in known]

    def _of_time(self) -> Iterator[ListedHit]:
        """Yield the messages and memories of the time that the prompt names."""
        for kind, filters in self._in_time.items():
            found = self._found.get(filters, _NOTHING)
            if len(found.hits) < _OF_TIME:
                found = found._replace(hits=[*found.hits, *self._newest(kind, filters, found)])
            for each in self._measured(kind, found, filters):
                yield each._replace(in_time=each.hit.kind == kind)

    def _with_replies(self, kept: Rated, below: Rated) -> Rated:
        """Return what is kept, with the reply after each question.

        A reply seldom has the words of the prompt.
        """
        if "message" not in self._listed_kinds:
            return kept
        near, found = self._hits("message").near, {}
        for hit, score in below:
            if hit.kind == "message":
                found[hit.position.stream, hit.id] = hit, score
        given: Rated = []
        for hit, score in kept:
            given.append((hit, score))
            if hit.kind == "message" and hit.content.rstrip().endswith(ASKING):
                reply = near.message_after((hit.position.stream, hit.id))
                if reply in found and found[reply][0].role != hit.role:
                    given.append(found.pop(reply))
        return given

    def passages(self) -> floor.Judged:
        """Return messages, by the floor for a store where little is distilled."""
        if "message" in self._listed_kinds:
            return floor.Judged([], [])
        few = count_rows(self._db, f"(SELECT 1 FROM messages LIMIT {floor.FEW_MESSAGES})")
        return self._judged("message", floor.OF_FEW if few < floor.FEW_MESSAGES else 1.0)

    def documents(self) -> floor.Judged:
        """Return documents, by the same floor."""
        if "document" in self._listed_kinds:
            return floor.Judged([], [])
        judged = self._judged("document")
        return judged._replace(kept=judged.kept[: self._request.documents])

    def faded(self) -> list[Hit]:
        """Return the memories that are found and have faded; only to explain a context."""
        known = {hit.id for _, hit in self._hits("memory").hits}
        return [hit for _, hit in self._found.get(self._faded, _NOTHING).hits if hit.id not in known]

    def _newest(self, kind: Kind, filters: Filters, found: Found) -> list[tuple[Candidate, Hit]]:
        known = {candidate.ref for candidate, _ in found.hits}
        new = {each.ref: each for each in fulltext.newest(self._db, _TABLES[kind], filters, _OF_TIME)}
        return self._of_own(self._unscored(each for ref, each in new.items() if ref not in known))

    def _unscored(self, candidates: Iterable[Candidate]) -> list[tuple[Candidate, Hit]]:
        return hits_of(self._db, [(each, 0.0) for each in candidates], self._prompt.question)

    @cached_property
    def _saved(self) -> int:
        return count_rows(self._db, "memories") + count_rows(self._db, "facts")

    @cached_property
    def _listed_kinds(self) -> list[Kind]:
        """The kinds that are listed; messages and documents only beside enough memories and facts."""
        most = _DISTILLED * self._saved
        tables: dict[Kind, str] = {"message": "messages", "document": "documents"}
        few = [
            kind
            for kind, table in tables.items()
            if count_rows(self._db, f"(SELECT 1 FROM {table} LIMIT {most + 1})") <= most
        ]
        return ["memory", *few]

    def _hits(self, kind: Kind) -> Found:
        return self._found.get(self._filters[kind], _NOTHING)

    def _search(self) -> dict[Filters, Found]:
        request = self._request
        most: dict[Kind, int] = {
            "memory": max(_HITS, _CANDIDATES * request.limit),
            "message": _CANDIDATES * request.passages,
            "document": _CANDIDATES * request.documents if self._has_documents() else 0,
        }
        wanted = [*self._filters.items(), *self._in_time.items()]
        if request.explain and request.min_salience > 0:
            wanted.append(("memory", self._faded))
        quotas = [Quota(most[kind], filters) for kind, filters in wanted if most[kind]]
        found = hybrid.find(self._db, request.search, quotas, self._prompt.finding)
        return {
            quota.where: of_quota._replace(hits=self._of_own(of_quota.hits))
            for quota, of_quota in zip(quotas, found, strict=True)
        }

    def _of_own(self, hits: list[tuple[Candidate, Hit]]) -> list[tuple[Candidate, Hit]]:
        """Leave out memories that were made of what the scope does not show."""
        foreign = of_others(self._db, self._request, [hit.id for _, hit in hits if hit.kind == "memory"])
        return [(candidate, hit) for candidate, hit in hits if hit.id not in foreign]

    def _has_documents(self) -> bool:
        (found,) = self._db.execute("SELECT EXISTS (SELECT 1 FROM doc_chunks)").fetchone()
        return bool(found)

    def _judged(self, kind: Kind, factor: float = 1.0) -> floor.Judged:
        """Return what a search finds, judged by words and meaning.

        factor: of the floor.
        """
        found, prompt = self._hits(kind), self._prompt
        hits = floor.measured(
            self._db,
            prompt.question,
            found.hits,
            found.near,
            prompt.vector,
            prompt.reads,
            is_read=prompt.is_read,
        )
        return floor.judged(hits, len(prompt.question.terms), factor)

    def _measured(self, kind: Kind, of_search: Found, filters: Filters) -> list[ListedHit]:
        """Return the hits of a search, with those that only a line of a long prompt finds."""
        prompt, found = self._prompt, list(of_search.hits)
        of_lines = self._of_lines(kind, found, filters)
        far = {} if prompt.multilingual is None else prompt.multilingual.nearness(found)
        whole = compared(self._db, prompt, found)
        by_line = [
            [(line.meaning(cosine), words) for cosine, words in compared(self._db, line, found)]
            for line in self._telling
        ]
        return [
            ListedHit(
                hit,
                candidate.owner,
                *whole[place],
                of_lines.get(candidate.ref, 0.0),
                self._factor(hit),
                far.get(place),
                [each[place] for each in by_line],
            )
            for place, (candidate, hit) in enumerate(found)
        ]

    @cached_property
    def _looked_up(self) -> dict[Kind, LookedUp]:
        """The candidates that the lines of a long prompt find; empty for a short one."""
        lines = lines_of(self._prompt.text)
        return {kind: look_up(self._db, _TABLES[kind], lines) for kind in self._listed_kinds} if lines else {}

    @cached_property
    def _telling(self) -> list[ScoredPrompt]:
        """The lines of a long prompt whose meaning is compared, too."""
        lines = (Search(line, mode="vector") for line in telling(self._looked_up.values()))
        prompts = (ScoredPrompt(self._db, line, self._prompt.models, self._sample) for line in lines)
        return [each for each in prompts if each.vector is not None]

    def _of_lines(self, kind: Kind, found: list[tuple[Candidate, Hit]], filters: Filters) -> dict[Ref, float]:
        """Return the cover of the best line of a long prompt for each candidate.

        What only a line finds is added to `found`.
        """
        if not self._looked_up:
            return {}
        covers = self._looked_up[kind].covers
        best = sorted(covers, key=lambda row: (-covers[row], row))[: _OF_LINES + len(found)]
        known = {candidate.ref for candidate, _ in found}
        by_ref: dict[Ref, float] = {}
        of_words: dict[Ref, Candidate] = {}
        for candidate in fulltext.among(self._db, _TABLES[kind], best, filters):
            row = candidate.message_no if kind == "message" else candidate.chunk_no
            assert row is not None
            by_ref[candidate.ref] = max(covers[row], by_ref.get(candidate.ref, 0.0))
            if candidate.ref not in known:
                of_words.setdefault(candidate.ref, candidate)
        new = {each.ref: (each, hit) for each, hit in self._unscored(of_words.values())}
        for line in self._telling:
            (near,) = hybrid.find(self._db, line.search, [Quota(_OF_MEANING, filters)], line.models)
            new |= {each.ref: (each, hit) for each, hit in near.hits if each.ref not in known | new.keys()}
        found += self._of_own([*new.values()])
        return by_ref

    def _factor(self, hit: Hit) -> float:
        """Return the factor of the odds of a hit: what another chat says counts less."""
        request = self._request
        is_own = request.chat is None or request.scope == "chat" or hit.chat in (None, request.chat_name)
        return 1.0 if is_own else OF_ANOTHER_CHAT

    def _is_known(self, name: str) -> bool:
        """Whether anything in the store has a name, other than the message that asks."""
        return is_known(self._db, name, self._asking)


def _key(hit: Hit) -> Key:
    return hit.position.stream, hit.id


NOTHING = "nothing_relevant"
"""In `silent`, why only core memory, what always holds, the window and the newest summary are given."""

_IRRELEVANT = "nothing that was found has to do with the message"

_LOOKED_AT = 1000
"""The newest messages of a chat among which the current one is looked for."""


class ContextHits(msgspec.Struct, frozen=True):
    """The hits of the searches, best first; none if they failed.

    listed: of every kind, by their scores.
    messages, documents: by floors of their own, where little is distilled.
    below: what was found and is not relevant enough.
    answered: the probability that the best one found belongs to the prompt; None where none was found.
    time: that the prompt names.
    faded: memories below the least salience, if the context is to be explained.
    silent: what did not take part, and why. asking: the message that asks, which is left out.
    """

    listed: Rated = []
    messages: Sequence[Hit] = ()
    documents: Sequence[Hit] = ()
    faded: Sequence[Hit] = ()
    below: Sequence[Below] = ()
    answered: float | None = None
    silent: dict[str, str] = {}
    asking: Key | None = None
    time: NamedTime | None = None


def find(
    db: Connection,
    request: BuildContext,
    models: Models,
    asking: Key | None,
    sample: StoreSample,
    rerank: Rerank | None = None,
) -> ContextHits:
    """Search for `request.text`.

    asking: the message with this text. sample: of the store. rerank: reranks what is relevant.

    Raises:
        sqlite3.Error (of the binding): the read model cannot be read.
    """
    if is_social(request.text):
        return ContextHits(silent={NOTHING: "a greeting or an acknowledgement alone"}, asking=asking)
    search = PromptSearches(db, request, models, asking, sample)
    listed, below = search.listed()
    passages = search.passages()
    distinct = floor.without_near_copies(passages.kept)
    documents = search.documents()
    if rerank is not None:
        scores = {id(hit): score for hit, score in listed}
        ranked = rerank(request.text, [hit for hit, _ in listed], search.silent)
        listed = [(hit, scores[id(hit)]) for hit in ranked]
        listed.sort(key=lambda each: not each[1].is_of_time)
        distinct, documents = (
            part._replace(kept=rerank(request.text, part.kept, search.silent))
            for part in (distinct, documents)
        )
    below += [Below(hit, why) for part in (passages, distinct, documents) for hit, why in part.below]
    if not (listed or distinct.kept or documents.kept):
        search.silent[NOTHING] = _IRRELEVANT if below else "nothing was found"
    answers = [floor.chance(part.best) for part in (passages, documents) if part.best is not None]
    rated = [*(score for _, score in listed), *(each.score for each in below if each.score)]
    answers += map(chance, rated)
    return ContextHits(
        listed=listed,
        messages=_weighted(distinct.kept, request),
        documents=documents.kept,
        faded=search.faded(),
        below=below,
        answered=max(answers, default=None),
        silent=search.silent,
        asking=asking,
        time=search.time,
    )


def _weighted(hits: Sequence[Hit], request: BuildContext) -> Sequence[Hit]:
    """Return hits by falling score; those of other conversations than the current one count less."""
    if request.chat is None or request.scope == "chat":
        return hits
    for hit in hits:
        if hit.chat not in (None, request.chat_name):
            hit.score *= OF_ANOTHER_CHAT
    return sorted(hits, key=lambda hit: hit.score, reverse=True)


def asking_message(db: Connection, request: BuildContext) -> Key | None:
    """Return the message that asks, which does not answer itself; None if it is not in the read model.

    That is `message_id`, else the newest message of the chat with the text, unless an assistant has spoken
    since: an earlier "yes" is history.

    Raises:
        sqlite3.Error (of the binding): the read model cannot be read.
    """
    where = ""
    values: list[str] = []
    if request.conversation is not None:
        where, values = " AND channel = ? AND chat_id = ?", [*request.conversation]
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
        f" {NEWEST_FIRST} LIMIT {_LOOKED_AT}",
        values,
    )
    unanswered = takewhile(lambda row: row[2] != "assistant", rows)
    # What a tool returns asks nothing.
    asking = (row for row in unanswered if row[2] != "tool" and row[3] == request.text)
    return next(((stream, name) for stream, name, *_ in asking), None)
