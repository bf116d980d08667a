"""Candidates: what one side of a search found."""

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Literal, NamedTuple

from memlog.query.filters import Kind

Owner = Literal["message", "memory", "summary", "fact", "daily_event", "document"]
"""What has a passage. All but messages, and documents of sources of kind `docs`, are found as memories."""

SCORE_DIGITS = 6
"""Digits of a score: noise in the last ones decides nothing."""

Ref = int | tuple[Owner, tuple[str, str]]
"""Identifies what was found: the number of a message, the owner and key of anything else."""

Scores = dict[Ref, float]
"""A list of one side before it is ranked, with what neighbours add."""


Place = tuple[str, int, str, int]
"""Day, number and writer of a segment, and the offset in it: tells the newer of two messages of one time."""

NOWHERE: Place = ("", 0, "", 0)


class Candidate(NamedTuple):
    """A message, memory or document that one side found.

    key: (stream, id of an event, a memory, or a document).
    score: of its side, higher is better; None for a message that only its neighbours brought.
    message_no: of a message.
    chunk_no: its best passage; None for a message that was found as a whole.
    start, end: of the passage in its owner, in code points; the whole if `end` is None.
    says: what it has in common with its copies, for which it stands. place: in the log, of a message.
    copies: how many there are with it.
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
    says: Hashable = None
    place: Place = NOWHERE
    copies: int = 1

    @property
    def ref(self) -> Ref:
        """See `Ref`."""
        return (self.owner, self.key) if self.message_no is None else self.message_no


Lists = list[list[Candidate]]
"""The candidates of one side: the full text has a list for each kind of hit."""


def in_order(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Candidates of equal scores in their order: newer first, then by kind, stream and id."""
    ordered = sorted(candidates, key=lambda candidate: (candidate.kind, candidate.owner, candidate.key))
    ordered.sort(key=lambda candidate: candidate.ts, reverse=True)
    return ordered


def candidate_of(row: Sequence[Any], score: float) -> Candidate:
    """The candidate of a row of the columns below."""
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
