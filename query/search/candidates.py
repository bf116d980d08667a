"""What one side of a search found, and its cut."""

from collections.abc import Callable, Iterable
from typing import Literal, NamedTuple

from memlog.query.filters import Kind

Owner = Literal["message", "memory", "summary", "fact", "daily_event", "document"]
"""What a passage is of. All but messages, and documents of sources of kind `docs`, are found as memories."""

SCORE_DIGITS = 6
"""Scores are rounded to these, so that noise in the last digits decides nothing."""

Ref = int | tuple[Owner, tuple[str, str]]
"""What is the same for all candidates of one thing: a message's number, the owner and key of all else."""

Scores = dict[Ref, float]
"""A list of one side before it is ranked: what was found, each with what its neighbours add."""


class Candidate(NamedTuple):
    """A message, memory or document that one side found.

    key: (stream, id): the id of an event, of a memory, or of a document.
    score: as its side has it, higher is better; None for a message that only its neighbours brought.
    message_no: of a message.
    chunk_no: its best passage; None for a message that was found as a whole.
    start, end: of the passage, in code points of what it is of; the whole where `end` is None.
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

    @property
    def ref(self) -> Ref:
        """What is the same for all candidates of one thing."""
        return (self.owner, self.key) if self.message_no is None else self.message_no


class Fetched(NamedTuple):
    """Candidates by falling score, perhaps several of one thing; whether there are no more."""

    candidates: list[Candidate]
    is_all: bool


def best(fetch: Callable[[int], Fetched], depth: int) -> list[Candidate]:
    """The first `depth` distinct candidates, each with the best of its scores.

    Fetches past the cut until the score changes, and orders equal scores: the same question on the same log
    gives the same answer.
    """
    limit = depth + depth // 4 + 1
    while True:
        candidates, is_all = fetch(limit)
        first: dict[Ref, Candidate] = {}
        for found in candidates:
            first.setdefault(found.ref, found)
        scores = [_score(found) for found in first.values()]
        if is_all or (len(scores) > depth and _score(candidates[-1]) < scores[depth - 1]):
            break
        limit *= 4
    return sorted(in_order(first.values()), key=_score, reverse=True)[:depth]


def in_order(candidates: Iterable[Candidate]) -> list[Candidate]:
    """As those of equal scores stand: by time (newer first), kind, stream and id."""
    ordered = sorted(candidates, key=lambda found: (found.kind, found.owner, found.key))
    ordered.sort(key=lambda found: found.ts, reverse=True)
    return ordered


def _score(found: Candidate) -> float:
    return 0.0 if found.score is None else found.score


def as_passage(
    owner: Owner,
    stream: str,
    name: str,
    ts: str,
    message_no: int | None,
    chunk_no: int,
    start: int,
    end: int,
    score: float,
) -> Candidate:
    """The candidate of a passage of `memory_chunks`."""
    kind: Kind = "message" if owner == "message" else "memory"
    return Candidate(kind, owner, (stream, name), score, ts, message_no, chunk_no, start, end)


def as_document(
    stream: str, document_id: str, ts: str, chunk_no: int, start: int, end: int, score: float
) -> Candidate:
    """The candidate of a passage of `doc_chunks`."""
    return Candidate("document", "document", (stream, document_id), score, ts, None, chunk_no, start, end)


MEMORY_PASSAGE = (
    "CASE WHEN c.message_id IS NOT NULL THEN 'message' WHEN c.memory_id IS NOT NULL THEN 'memory'"
    " WHEN c.summary_id IS NOT NULL THEN 'summary' WHEN c.fact_id IS NOT NULL THEN 'fact'"
    " WHEN c.daily_event_id IS NOT NULL THEN 'daily_event' ELSE 'document' END, c.stream,"
    " coalesce(c.message_id, c.memory_id, c.summary_id, c.fact_id, c.daily_event_id, c.document_id),"
    " c.updated_at,"
    " (SELECT message_no FROM messages s WHERE s.stream = c.stream AND s.id = c.message_id),"
    " c.chunk_no, c.start_char, c.end_char"
)
"""The columns of `memory_chunks c` that make a candidate."""

DOC_PASSAGE = "c.stream, c.document_id, c.updated_at, c.chunk_no, c.start_char, c.end_char"
"""The columns of `doc_chunks c` that make a candidate."""
