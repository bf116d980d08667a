"""What one side of a search found, and its cut."""

from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import Any, Literal, NamedTuple, TypeVar

from memlog.query.filters import Kind

Owner = Literal["message", "memory", "summary", "document"]
"""What a passage is of. Summaries, and documents of sources of kind `memory`, are found as memories."""

SCORE_DIGITS = 6
"""Scores are rounded to these, so that noise in the last digits decides nothing."""


Name = tuple[Owner, tuple[str, str]]
"""What is the same for all candidates of one thing."""


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
    def name(self) -> Name:
        """What is the same for all candidates of one thing."""
        return self.owner, self.key


Row = TypeVar("Row", bound=tuple[Any, ...])

Scored = tuple[Candidate, float]
"""A candidate, and its score with what its neighbours add."""


class Fetched(NamedTuple):
    """Candidates by falling score, perhaps several of one thing; whether there are no more."""

    candidates: list[Scored]
    is_all: bool


def best(fetch: Callable[[int], Fetched], depth: int) -> list[Scored]:
    """The first `depth` distinct candidates, each with the best of its scores.

    Fetches past the cut until the score changes, and orders equal scores by time (newer first), kind,
    stream and id: the same question on the same log gives the same answer.
    """
    limit = depth + depth // 4 + 1
    while True:
        candidates, is_all = fetch(limit)
        first: dict[Name, Scored] = {}
        for found in candidates:
            first.setdefault(found[0].name, found)
        scores = [score for _, score in first.values()]
        if is_all or (len(scores) > depth and candidates[-1][1] < scores[depth - 1]):
            break
        limit *= 4
    return in_order(first.values())[:depth]


def in_order(rows: Iterable[Row]) -> list[Row]:
    """Rows of a candidate, its score, and more, by falling score; equal scores by time (newer first), kind,
    stream and id."""
    ordered = sorted(rows, key=lambda row: (row[0].kind, row[0].owner, row[0].key))
    ordered.sort(key=lambda row: row[0].ts, reverse=True)
    ordered.sort(key=itemgetter(1), reverse=True)
    return ordered


def as_memory_passage(
    stream: str,
    message_id: str | None,
    memory_id: str | None,
    summary_id: str | None,
    document_id: str | None,
    ts: str,
    message_no: int | None,
    chunk_no: int,
    start: int,
    end: int,
    score: float,
) -> Candidate:
    """The candidate of a passage of `memory_chunks`."""
    owners: dict[Owner, str | None] = {
        "message": message_id,
        "memory": memory_id,
        "summary": summary_id,
        "document": document_id,
    }
    owner, name = next((owner, name) for owner, name in owners.items() if name is not None)
    kind: Kind = "message" if owner == "message" else "memory"
    return Candidate(kind, owner, (stream, name), score, ts, message_no, chunk_no, start, end)


def as_document(
    stream: str, document_id: str, ts: str, chunk_no: int, start: int, end: int, score: float
) -> Candidate:
    """The candidate of a passage of `doc_chunks`."""
    return Candidate("document", "document", (stream, document_id), score, ts, None, chunk_no, start, end)


MEMORY_PASSAGE = (
    "c.stream, c.message_id, c.memory_id, c.summary_id, c.document_id, c.updated_at,"
    " (SELECT message_no FROM messages s WHERE s.stream = c.stream AND s.id = c.message_id),"
    " c.chunk_no, c.start_char, c.end_char"
)
"""The columns of `memory_chunks c` that make a candidate."""

DOC_PASSAGE = "c.stream, c.document_id, c.updated_at, c.chunk_no, c.start_char, c.end_char"
"""The columns of `doc_chunks c` that make a candidate."""
