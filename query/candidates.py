"""What one side of a search found, and its cut."""

from collections.abc import Callable
from typing import Literal, NamedTuple

from memlog.query.filters import Kind

Owner = Literal["message", "memory", "summary", "document"]
"""What a passage is of. Summaries, and documents of sources of kind `memory`, are found as memories."""

COST_DIGITS = 6
"""Costs are rounded to these, so that noise in the last digits decides nothing."""


class Candidate(NamedTuple):
    """A message, memory or document that one side found.

    key: (stream, id): the id of an event, of a memory, or of a document.
    cost: lower is better.
    chunk_no: its best passage; None for a message that was found as a whole.
    start, end: of the passage, in code points of what it is of; the whole where `end` is None.
    """

    kind: Kind
    owner: Owner
    key: tuple[str, str]
    cost: float
    ts: str
    chunk_no: int | None = None
    start: int = 0
    end: int | None = None

    @property
    def name(self) -> tuple[Owner, tuple[str, str]]:
        """What is the same for all candidates of one thing."""
        return self.owner, self.key


class Fetched(NamedTuple):
    """Candidates by rising cost, perhaps several of one thing; whether there are no more."""

    candidates: list[Candidate]
    is_all: bool


def best(fetch: Callable[[int], Fetched], depth: int) -> list[Candidate]:
    """The first `depth` distinct candidates.

    Fetches past the cut until the score changes, and orders equal scores by time (newer first), kind,
    stream and id: the same question on the same log gives the same answer.
    """
    limit = 2 * depth
    while True:
        candidates, is_all = fetch(limit)
        first: dict[tuple[Owner, tuple[str, str]], Candidate] = {}
        for candidate in candidates:
            first.setdefault(candidate.name, candidate)
        costs = [candidate.cost for candidate in first.values()]
        if is_all or (len(costs) > depth and candidates[-1].cost > costs[depth - 1]):
            break
        limit *= 4
    ordered = sorted(first.values(), key=lambda candidate: (candidate.kind, candidate.key))
    ordered.sort(key=lambda candidate: candidate.ts, reverse=True)
    ordered.sort(key=lambda candidate: candidate.cost)
    return ordered[:depth]


def as_memory_passage(
    stream: str,
    message_id: str | None,
    memory_id: str | None,
    summary_id: str | None,
    document_id: str | None,
    ts: str,
    chunk_no: int,
    start: int,
    end: int,
    cost: float,
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
    return Candidate(kind, owner, (stream, name), round(cost, COST_DIGITS), ts, chunk_no, start, end)


def as_document(
    stream: str, document_id: str, ts: str, chunk_no: int, start: int, end: int, cost: float
) -> Candidate:
    """The candidate of a passage of `doc_chunks`."""
    cost = round(cost, COST_DIGITS)
    return Candidate("document", "document", (stream, document_id), cost, ts, chunk_no, start, end)


MEMORY_PASSAGE = (
    "c.stream, c.message_id, c.memory_id, c.summary_id, c.document_id, c.updated_at, c.chunk_no,"
    " c.start_char, c.end_char"
)
"""The columns of `memory_chunks c` that make a candidate."""

DOC_PASSAGE = "c.stream, c.document_id, c.updated_at, c.chunk_no, c.start_char, c.end_char"
"""The columns of `doc_chunks c` that make a candidate."""
