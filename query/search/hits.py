"""Hits: what a search found, its content and place in the log, and why it was found."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from memlog.projector.rows import as_list
from memlog.projector.sqlite import Connection, required_row
from memlog.projector.text.marks import Marks, first_place
from memlog.query.event_index import LinePosition
from memlog.query.filters import DAILY_EVENTS, FACTS, SUMMARIES, Kind
from memlog.query.rows import POSITION, record
from memlog.query.search.candidates import SCORE_DIGITS, Candidate, Lists, Owner, Ref
from memlog.query.search.fts_query import FtsQuery
from memlog.query.search.fusion import Ranks
from memlog.query.speakers import speaker
from memlog.query.surroundings import Surroundings

SNIPPET_LENGTH = 200
"""At most, in characters, including the `…` at a cut."""

LATER = "(a later entry may change this)"

_LEAD = 60


class Evidence(msgspec.Struct, frozen=True):
    """Why one side of a search found a hit.

    rank: from 1, among the hits of that side; the full text ranks each kind separately.
    score: of that side, higher is better: -bm25 or the cosine similarity; None for a message that only its
        neighbours brought.
    found: the score with what its neighbours add; on the vector side, how much nearer it is than the
        farthest candidate.
    prior: the addition for its length, speaker, topic, and not being a question, on a scale from 0 to 1.
    weight: of the side.
    """

    rank: int
    score: float | None
    found: float
    prior: float
    weight: float


class Hit(msgspec.Struct, kw_only=True):
    """A message, memory or document that was found. Summaries, facts and daily events are found as memories.

    id: of the event of a message, summary or daily event; the memory_id; `source_id/file` of a document;
        `topic_key/rank` of a fact, followed by `/channel:chat_id` if it is a chat's.
    event_id: of the event with this content.
    score: 0 to 1: the fused score over the best possible of the sides that took part. Where a provider ranks
        hits anew, they change places, and the scores stay where they are.
    similarity: cosine similarity of its best passage, 0 to 1; None if it has none, or if only the full text
        found a message.
    relevance: the probability that a memory, fact or document belongs to the question; None of messages.
    only_context: whether only its neighbours were found.
    content: the whole text; of a document the passage.
    source: `conversation`, `manual`, `summary`, `fact`, `daily_event` …; of a document its source.
    ts: of a daily event the beginning of its day.
    file, section, start_line, end_line: of a document's passage; lines count from 1.
    explain: by side (`text`, `vector`); None unless requested.
    around: the messages beside a message, the text beside a document's passage; None unless requested, and
        for memories.
    changed_by: a later memory that may change this one; None without one.
    copies: how many say the same, of one kind, role and speaker, with this one, which is the newest; 1 for a
        message that only its neighbours found.
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
        """The role and the name of a message: `user/Anna`; "" for other hits."""
        return speaker(self.role, self.name)

    @property
    def note(self) -> str | None:
        """What a reader is to know of it; None without anything."""
        return LATER if self.changed_by is not None else None


Rerank = Callable[[str, list[Hit], dict[str, str]], list[Hit]]
"""Gives the hits for a question in another order; notes in `silent` why it did not."""


def document_text(db: Connection, event_id: str) -> str:
    """The whole text of the document that an event brought; "" if it has gone."""
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
"""The table `o` of each owner, and the columns of a `Hit` from `content` to `ts`."""

_EVENTS: tuple[Owner, ...] = ("message", "summary", "daily_event")
"""Owners with the id of their event."""


def hits_of(
    db: Connection, scored: Sequence[tuple[Candidate, float]], question: FtsQuery
) -> list[tuple[Candidate, Hit]]:
    """Candidates with their hits, with snippets for a question; `add_evidence` completes them.

    scored: with their scores, from 0 to 1.
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
        rows |= _by_place(db, sql, keys)
    of_documents = [(n, each.chunk_no) for n, (each, _) in enumerate(scored) if each.kind == "document"]
    passages = _by_place(db, _PASSAGES, of_documents) if of_documents else {}
    found = []
    for place, (candidate, score) in enumerate(scored):
        hit = record(
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
        hit.snippet = snippet(hit.content, question.marks, candidate.start, candidate.end)
        if candidate.owner == "document":
            hit.file, hit.title = hit.title, None
            if candidate.kind == "document":
                hit.content, hit.section, hit.start_line, hit.end_line = passages[place]
            else:
                # A file of memories is found as one: its name is its source.
                hit.source = hit.file or hit.source
        found.append((candidate, hit))
    return found


_PASSAGES = (
    "SELECT a.value ->> 0, c.content, c.section, c.start_line, c.end_line FROM json_each(?) a"
    " CROSS JOIN doc_chunks c ON c.chunk_no = a.value ->> 1"
)


def _by_place(db: Connection, sql: str, given: Sequence[Sequence[Any]]) -> dict[int, Sequence[Any]]:
    """By its place the row of each list that is given, which begins with its place."""
    rows = db.execute(sql, (as_list(given),))
    return {place: row for place, *row in (required_row(rows) for _ in given)}


def snippet(text: str, marks: Marks, start: int = 0, end: int | None = None) -> str:
    """At most 200 characters of `text` between `start` and `end`, around the first of `marks` there."""
    if len(text) <= SNIPPET_LENGTH:
        return text
    passage = text[start:end]
    match = first_place(passage, marks)
    begin = start if match <= SNIPPET_LENGTH - _LEAD else start + match - _LEAD
    stop = min(begin + SNIPPET_LENGTH - 2, start + len(passage))
    return ("…" if begin > 0 else "") + text[begin:stop] + ("…" if stop < len(text) else "")


def add_evidence(
    hits: Mapping[Ref, Hit], sides: Mapping[str, Lists], ranks: Mapping[str, list[Ranks]], *, explain: bool
) -> None:
    """Set the similarity of each hit, and with `explain` the rank and score that each side gave it."""
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
