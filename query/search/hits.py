"""Search hits: content, position in the log, and why each was found."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from memlog.projector.sqlite import Connection, fetch_required_row, to_json_list
from memlog.projector.text.marks import Marks, find_first_marked_word
from memlog.query.conversations import Surroundings, format_speaker
from memlog.query.event_index import POSITION, LinePosition, make_struct_of_row
from memlog.query.filters import DAILY_EVENTS, FACTS, SUMMARIES, Kind
from memlog.query.search.request import FtsQuery, Ranking

Owner = Literal["message", "memory", "summary", "fact", "daily_event", "document"]
"""The owner of a passage. Messages, and documents of sources of kind `docs`, are hits of their own kind; all
others are hits of kind `memory`."""

SCORE_DIGITS = 6
"""The digits to which scores are rounded, so that noise does not affect the order."""

Ref = int | tuple[Owner, tuple[str, str]]
"""Identifies a candidate: a message by its number, anything else by its owner and key."""

Scores = dict[Ref, float]
"""The scores of one side's candidates, not ranked yet."""


Place = tuple[str, int, str, int]
"""A segment's day, number and writer, and an offset in it, by which messages with equal times are sorted."""

NOWHERE: Place = ("", 0, "", 0)


class Candidate(NamedTuple):
    """A message, memory or document found by one side of a search.

    key: (stream, id of an event, memory or document).
    score: its side's score, higher is better; None for a message found only by its neighbours.
    message_no: a message's number; None for other owners.
    chunk_no: the number of its best passage; None for a message found as a whole.
    start, end: the passage's position in its owner, in code points; if `end` is None, the owner's end.
    text_key: the key shared by the copies it represents. place: in the log, for a message.
    copies: the number of copies, including itself.
    """

    kind: Kind
    owner: Owner
    key: tuple[str, str]
    score: float | None
    ts: str
    message_no: int | None = None
    chunk_no: int | None = None
    start: int = 0
    end: int | None = None
    text_key: Hashable = None
    place: Place = NOWHERE
    copies: int = 1

    @property
    def ref(self) -> Ref:
        """See `Ref`."""
        return (self.owner, self.key) if self.message_no is None else self.message_no


Lists = list[list[Candidate]]
"""The candidates of one side: the full text has a list for each kind of hit."""


def sort_candidates_with_equal_scores(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Sort candidates with equal scores: newest first, then by kind, stream and id."""
    ordered = sorted(candidates, key=lambda candidate: (candidate.kind, candidate.owner, candidate.key))
    ordered.sort(key=lambda candidate: candidate.ts, reverse=True)
    return ordered


def make_candidate_of_row(row: Sequence[Any], score: float) -> Candidate:
    """Build a candidate from a row with the columns below."""
    kind, owner, stream, name, ts, *place = row
    return Candidate(kind, owner, (stream, name), score, ts, *place)


MESSAGE = "'message', 'message', m.stream, m.id, m.created_at, m.message_no"
"""The columns of `messages m` that make a candidate."""

MEMORY_PASSAGE = (
    "iif(c.message_id IS NULL, 'memory', 'message'),"
    " CASE WHEN c.message_id IS NOT NULL THEN 'message' WHEN c.memory_id IS NOT NULL THEN 'memory'"
    " WHEN c.summary_id IS NOT NULL THEN 'summary' WHEN c.fact_id IS NOT NULL THEN 'fact'"
    " WHEN c.daily_event_id IS NOT NULL THEN 'daily_event' ELSE 'document' END, c.stream,"
    " coalesce(c.message_id, c.memory_id, c.summary_id, c.fact_id, c.daily_event_id, c.document_id),"
    " c.updated_at,"
    " (SELECT message_no FROM messages s WHERE s.stream = c.stream AND s.id = c.message_id),"
    " c.chunk_no, c.start_char, c.end_char"
)
"""The columns of `memory_chunks c` that make a candidate."""

DOC_PASSAGE = (
    "'document', 'document', c.stream, c.document_id, c.updated_at, NULL,"
    " c.chunk_no, c.start_char, c.end_char"
)
"""The columns of `doc_chunks c` that make a candidate."""


_HIGHEST = 1.5
"""The highest possible sum of a scaled score and a prior."""

InOrder = Callable[[Iterable[Ref]], list[Ref]]
"""Sorts entries with equal scores."""

TextKeyOf = Callable[[Ref], Hashable]
"""Returns the key that an entry shares with its copies (only the best copy is taken); None for an entry that
must be skipped."""


def _ref_as_text_key(ref: Ref) -> Hashable:
    return ref


class Ranked(NamedTuple):
    """An entry of a ranked list.

    found: its score, including what its neighbours add. prior: how likely it is to answer any question.
    scaled: `found` scaled from 0 (lowest of the list) to 1 (highest), plus the prior.
    """

    ref: Ref
    found: float
    prior: float
    scaled: float


class Ranks(NamedTuple):
    """A ranked list, best first, and its weight in the fusion."""

    weight: float
    ranked: list[Ranked]


def rank_entries(
    scores: Mapping[Ref, float],
    priors: Mapping[Ref, float],
    cut: int,
    in_order: InOrder,
    text_key: TextKeyOf = _ref_as_text_key,
) -> list[Ranked]:
    """Return the best `cut` entries by scaled score plus prior."""
    if not scores:
        return []
    low = min(scores.values())
    span = max(scores.values()) - low
    scaled = {
        ref: round(((score - low) / span if span else 1.0) + priors.get(ref, 0.0), SCORE_DIGITS)
        for ref, score in scores.items()
    }
    return [
        Ranked(ref, scores[ref], priors.get(ref, 0.0), score)
        for ref, score in _take_best_without_copies(scaled, cut, in_order, text_key)
    ]


def fuse_lists(
    lists: Iterable[Ranks],
    ranking: Ranking,
    factors: Mapping[Ref, float],
    cut: int,
    in_order: InOrder,
    text_key: TextKeyOf = _ref_as_text_key,
) -> list[tuple[Ref, float]]:
    """Fuse ranked lists: return the best `cut` entries with their fused scores, best first.

    rrf: Σ weight / (k + rank) (Cormack, Clarke & Büttcher, SIGIR 2009). convex: Σ weight · scaled score
    (Bruch, Gai & Ingber, ACM TOIS 2023, https://arxiv.org/abs/2210.11934).
    factors: a factor for each entry's score; 1 by default.
    """
    scores: dict[Ref, float] = {}
    for weight, rows in lists:
        for rank, row in enumerate(rows, start=1):
            part = 1 / (ranking.rank_constant + rank) if ranking.fusion == "rrf" else row.scaled
            scores[row.ref] = scores.get(row.ref, 0.0) + weight * part
    multiplied = {
        ref: round(score * factors.get(ref, 1.0), 2 * SCORE_DIGITS) for ref, score in scores.items()
    }
    return _take_best_without_copies(multiplied, cut, in_order, text_key)


def _take_best_without_copies(
    scores: Mapping[Ref, float], cut: int, in_order: InOrder, text_key: TextKeyOf
) -> list[tuple[Ref, float]]:
    """Return the best `cut` entries without copies, by descending score, sorting ties only where needed."""
    by_score: dict[float, list[Ref]] = {}
    for ref, score in scores.items():
        by_score.setdefault(score, []).append(ref)
    taken: dict[Hashable, tuple[Ref, float]] = {}
    for score in sorted(by_score, reverse=True):
        refs = by_score[score]
        for ref in in_order(refs) if len(refs) > 1 else refs:
            text = text_key(ref)
            if text is not None:
                taken.setdefault(text, (ref, score))
            if len(taken) == cut:
                return [*taken.values()]
    return [*taken.values()]


def best_possible_score(weights: Iterable[float], ranking: Ranking) -> float:
    """Return the score of an entry that tops every list with the highest possible prior."""
    first = 1 / (ranking.rank_constant + 1)
    return sum(weights) * (first if ranking.fusion == "rrf" else _HIGHEST if ranking.priors else 1.0)


SNIPPET_LENGTH = 200
"""The maximum length of a snippet, in characters, including the `…` where the text was cut."""

LATER = "(a later entry may change this)"

_LEAD = 60


class Evidence(msgspec.Struct, frozen=True):
    """Why one side of a search found a hit.

    rank: from 1, among that side's hits; full text ranks each kind separately.
    score: that side's score, higher is better: -bm25 or the cosine similarity; None for a message found only
        by its neighbours.
    found: the score plus what its neighbours add; on the vector side, how much nearer it is than the farthest
        candidate.
    prior: the bonus for its length, speaker, topic, and not being a question, on a scale from 0 to 1.
    weight: the side's weight.
    """

    rank: int
    score: float | None
    found: float
    prior: float
    weight: float


class Hit(msgspec.Struct, kw_only=True):
    """A message, memory or document found by a search. Summaries, facts and daily events have kind `memory`.

    id: the event id of a message, summary or daily event; the memory_id; `source_id/file` for a document;
        `topic_key/rank` for a fact, followed by `/channel:chat_id` if it belongs to a chat.
    event_id: the id of the event with this content.
    score: from 0 to 1: the fused score divided by the best possible on the sides searched. Hits that a
        provider reranks trade scores, so that scores stay in order.
    similarity: cosine similarity of its best passage, from 0 to 1; None if it has no vector, or for a
        message found only by full text.
    relevance: the probability that a memory, fact or document belongs to the question; None for messages.
    only_context: whether only its neighbours matched.
    content: the whole text; for a document, the passage.
    source: `conversation`, `manual`, `summary`, `fact`, `daily_event` …; for a document, its source.
    ts: for a daily event, the start of its day.
    file, section, start_line, end_line: of a document's passage; lines count from 1.
    explain: the evidence, keyed by side (`text`, `vector`); None unless requested.
    around: a message's neighbours, or the text around a document's passage; None for memories, or if not
        requested.
    changed_by: a later memory that may change this one, if any.
    copies: the number of copies (same words, kind, role and speaker), of which this is the newest; 1 for a
        message found only by its neighbours.
    """

    kind: Kind
    id: str
    event_id: str
    score: float
    similarity: float | None
    only_context: bool
    snippet: str
    content: str
    chat: str | None
    role: str | None
    name: str | None
    title: str | None
    category: str | None
    source: str
    ts: str
    position: LinePosition
    file: str | None = None
    section: str | None = None
    start_line: int | None = None
    end_line: int | None = None
    explain: dict[str, Evidence] | None = None
    around: Surroundings | None = None
    copies: int = 1
    changed_by: str | None = None
    relevance: float | None = None

    @property
    def speaker(self) -> str:
        """The role and name of a message's author: `user/Anna`; "" for other hits."""
        return format_speaker(self.role, self.name)

    @property
    def note(self) -> str | None:
        """A note that a later memory may change this one, or None."""
        return LATER if self.changed_by is not None else None


Rerank = Callable[[str, list[Hit], dict[str, str]], list[Hit]]
"""Reorders the hits for a question, or writes into `silent` why it did not."""


def read_text_of_document(db: Connection, event_id: str) -> str:
    """Return the full text of the document that `event_id` indexed; "" if since removed."""
    row = db.execute("SELECT content FROM documents WHERE event_id = ?", (event_id,)).fetchone()
    return str(row[0]) if row else ""


_CHAT = "o.channel || ':' || o.chat_id"
_DAY = "o.event_date || 'T00:00:00.000Z'"
_OWNERS: dict[Owner, tuple[str, str]] = {
    "message": ("messages", f"o.content, {_CHAT}, o.role, o.name, NULL, NULL, 'conversation', o.created_at"),
    "memory": ("memories", "o.content, o.chat_id, NULL, NULL, o.title, o.category, o.source, o.updated_at"),
    "summary": ("summaries", f"o.content, {_CHAT}, NULL, NULL, NULL, '{SUMMARIES}', 'summary', o.created_at"),
    "fact": ("facts", f"o.content, nullif(o.chat_id, ''), NULL, NULL, NULL, '{FACTS}', 'fact', o.updated_at"),
    "daily_event": (
        "daily_events",
        f"o.summary, NULL, NULL, NULL, NULL, '{DAILY_EVENTS}', 'daily_event', {_DAY}",
    ),
    "document": ("documents", "o.content, NULL, NULL, NULL, o.file, NULL, o.source_id, o.dated_at"),
}
"""For each owner, its table `o`, and the columns for the fields of a `Hit` from `content` to `ts`."""

_EVENTS: tuple[Owner, ...] = ("message", "summary", "daily_event")
"""Owners that are identified by the id of their event."""


def make_hits_of_candidates(
    db: Connection, scored: Sequence[tuple[Candidate, float]], question: FtsQuery
) -> list[tuple[Candidate, Hit]]:
    """Turn candidates into hits, with snippets for `question`; `add_evidence_to_hits` fills in the rest.

    scored: candidates with their scores, from 0 to 1.
    """
    rows: dict[int, Sequence[Any]] = {}
    by_owner: dict[Owner, list[tuple[int, str, str]]] = {}
    for place, (candidate, _) in enumerate(scored):
        by_owner.setdefault(candidate.owner, []).append((place, *candidate.key))
    for owner, keys in by_owner.items():
        table, columns = _OWNERS[owner]
        key, event = ("id", "id") if owner in _EVENTS else (f"{owner}_id", "event_id")
        sql = (
            f"SELECT a.value ->> 0, e.id, {columns}, {POSITION} FROM json_each(?) a CROSS JOIN {table} o"
            f" ON o.stream = a.value ->> 1 AND o.{key} = a.value ->> 2"
            f" CROSS JOIN events e ON e.stream = o.stream AND e.id = o.{event}"
        )
        rows |= _rows_by_place(db, sql, keys)
    of_documents = [(n, each.chunk_no) for n, (each, _) in enumerate(scored) if each.kind == "document"]
    passages = _rows_by_place(db, _PASSAGES, of_documents) if of_documents else {}
    found = []
    for place, (candidate, score) in enumerate(scored):
        hit = make_struct_of_row(
            Hit,
            rows[place],
            kind=candidate.kind,
            id=candidate.key[1],
            score=round(score, SCORE_DIGITS),
            similarity=None,
            only_context=False,
            snippet="",
            copies=candidate.copies,
        )
        hit.snippet = make_snippet(hit.content, question.marks, candidate.start, candidate.end)
        if candidate.owner == "document":
            hit.file, hit.title = hit.title, None
            if candidate.kind == "document":
                hit.content, hit.section, hit.start_line, hit.end_line = passages[place]
            else:
                # A memory file is a hit of kind `memory`, and its name is the source.
                hit.source = hit.file or hit.source
        found.append((candidate, hit))
    return found


_PASSAGES = (
    "SELECT a.value ->> 0, c.content, c.section, c.start_line, c.end_line FROM json_each(?) a"
    " CROSS JOIN doc_chunks c ON c.chunk_no = a.value ->> 1"
)


def _rows_by_place(db: Connection, sql: str, given: Sequence[Sequence[Any]]) -> dict[int, Sequence[Any]]:
    """Run `sql` for the `given` keys, each starting with its place, and return the rows by place."""
    rows = db.execute(sql, (to_json_list(given),))
    return {place: row for place, *row in (fetch_required_row(rows) for _ in given)}


def make_snippet(text: str, marks: Marks, start: int = 0, end: int | None = None) -> str:
    """Return up to 200 characters of `text` between `start` and `end`, around the first of `marks`."""
    if len(text) <= SNIPPET_LENGTH:
        return text
    passage = text[start:end]
    match = find_first_marked_word(passage, marks)
    begin = start if match <= SNIPPET_LENGTH - _LEAD else start + match - _LEAD
    stop = min(begin + SNIPPET_LENGTH - 2, start + len(passage))
    return ("…" if begin > 0 else "") + text[begin:stop] + ("…" if stop < len(text) else "")


def add_evidence_to_hits(
    hits: Mapping[Ref, Hit], sides: Mapping[str, Lists], ranks: Mapping[str, list[Ranks]], *, explain: bool
) -> None:
    """Set each hit's similarity and, with `explain`, its rank and score on each side."""
    found: dict[Ref, dict[str, Evidence]] = {ref: {} for ref in hits}
    for side, lists in ranks.items():
        scores = {candidate.ref: candidate.score for rows in sides[side] for candidate in rows}
        for weight, rows in lists:
            for rank, row in enumerate(rows, start=1):
                if row.ref in hits:
                    prior = round(row.prior, SCORE_DIGITS)
                    found[row.ref][side] = Evidence(rank, scores.get(row.ref), row.found, prior, weight)
    for ref, hit in hits.items():
        evidence = found[ref]
        if "vector" in evidence and (similarity := evidence["vector"].score) is not None:
            hit.similarity = max(0.0, similarity)
        hit.only_context = all(side.score is None for side in evidence.values())
        if explain:
            hit.explain = evidence
