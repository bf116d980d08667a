"""A hit: what was found, what it says, where it stands in the log, and why it was found."""

import msgspec

from memlog.projector.sqlite import Connection, required_row
from memlog.query.event_index import LinePosition
from memlog.query.filters import DAILY_EVENTS, FACTS, SUMMARIES, Kind
from memlog.query.search.candidates import Candidate, Owner
from memlog.query.search.fts_query import FtsQuery
from memlog.query.search.snippet import snippet
from memlog.query.speakers import speaker
from memlog.query.surroundings import Surroundings


class Evidence(msgspec.Struct, frozen=True):
    """Why one side of a search found a hit.

    rank: from 1, among the hits of that side; the full text ranks each kind apart.
    score: as that side has it, higher is better: bm25 with its sign turned, or the cosine similarity; None
        for a message that only its neighbours brought.
    found: the score with what its neighbours add; of the vector side, by how much it is nearer than the
        farthest candidate.
    prior: what was added for its length, its speaker or topic, and not being a question, where scores go from
        0 to 1.
    weight: how much the side counts.
    """

    rank: int
    score: float | None
    found: float
    prior: float
    weight: float


class Hit(msgspec.Struct, kw_only=True):
    """A message, memory or document that was found. Summaries, facts and daily events are found as memories.

    id: of the message's, summary's or daily event's event, the memory_id, `source_id/file` of a document, or
        `topic_key/rank` of a fact, with `/channel:chat_id` behind it where it is a chat's.
    event_id: of the event whose content this is.
    score: 0 to 1: the fused score over the best possible of the sides that took part.
    similarity: cosine similarity of its best passage, 0 to 1; None where only the full text found it.
    only_context: whether it was found for what was said around it alone.
    content: all that it says; of a document the passage.
    source: `conversation`, `manual`, `summary`, `fact`, `daily_event` …; of a document its source.
    ts: of a daily event the beginning of its day.
    file, section, start_line, end_line: of a document's passage; lines count from 1.
    explain: by side (`text`, `vector`); None where it was not asked for.
    around: the messages beside a message, the text beside a document's passage; None where it was not asked
        for, and for memories.
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

    @property
    def speaker(self) -> str:
        """The role and the name of a message: `user/Anna`; "" for other hits."""
        return speaker(self.role, self.name)


_EVENT = "e.id, e.stream, e.segment, e.offset, e.line"
_OF_EVENT = "JOIN events e ON e.stream = o.stream AND e.id ="
_ROWS: dict[Owner, str] = {
    "message": f"SELECT {_EVENT}, o.content, o.channel || ':' || o.chat_id, o.created_at, o.role, o.name,"
    f" NULL, NULL, 'conversation' FROM messages o {_OF_EVENT} o.id WHERE o.stream = ? AND o.id = ?",
    "memory": f"SELECT {_EVENT}, o.content, o.chat_id, o.updated_at, NULL, NULL,"
    " o.title, o.category, o.source"
    f" FROM memories o {_OF_EVENT} o.event_id WHERE o.stream = ? AND o.memory_id = ?",
    "summary": f"SELECT {_EVENT}, o.content, o.channel || ':' || o.chat_id, o.created_at, NULL, NULL,"
    f" NULL, '{SUMMARIES}', 'summary' FROM summaries o {_OF_EVENT} o.id WHERE o.stream = ? AND o.id = ?",
    "fact": f"SELECT {_EVENT}, o.content, nullif(o.chat_id, ''), o.updated_at, NULL, NULL,"
    f" NULL, '{FACTS}', 'fact' FROM facts o {_OF_EVENT} o.event_id WHERE o.stream = ? AND o.fact_id = ?",
    "daily_event": f"SELECT {_EVENT}, o.summary, NULL, o.event_date || 'T00:00:00.000Z', NULL, NULL,"
    f" NULL, '{DAILY_EVENTS}', 'daily_event' FROM daily_events o {_OF_EVENT} o.id"
    " WHERE o.stream = ? AND o.id = ?",
    "document": f"SELECT {_EVENT}, o.content, NULL, o.indexed_at, NULL, NULL, o.file, NULL, o.source_id"
    f" FROM documents o {_OF_EVENT} o.event_id WHERE o.stream = ? AND o.document_id = ?",
}
"""Of each owner, by (stream, id): its event, and what it says."""


def hit_of(db: Connection, found: Candidate, score: float, question: FtsQuery) -> Hit:
    """The hit of a candidate, with a snippet for a question; it does not say yet who found it.

    score: from 0 to 1.
    """
    row = required_row(db.execute(_ROWS[found.owner], found.key))
    event_id, stream, segment, offset, line, content, chat, ts, role, name, title, category, source = row
    hit = Hit(
        kind=found.kind,
        id=found.key[1],
        event_id=event_id,
        score=round(score, 6),
        similarity=None,
        only_context=False,
        snippet=snippet(content, question.marks, found.start, found.end),
        content=content,
        chat=chat,
        role=role,
        name=name,
        title=title,
        category=category,
        source=source,
        ts=ts,
        position=LinePosition(stream, segment, offset, line),
    )
    if found.owner == "document":
        _say_passage(db, found, hit)
    return hit


def _say_passage(db: Connection, found: Candidate, hit: Hit) -> None:
    """Of a document the passage alone, and where it is in the file."""
    hit.file, hit.title = hit.title, None
    if found.kind == "memory":
        # A file of memories is found as one: its name is its source.
        hit.source = hit.file or hit.source
        return
    passage = db.execute(
        "SELECT content, section, start_line, end_line FROM doc_chunks WHERE chunk_no = ?", (found.chunk_no,)
    )
    hit.content, hit.section, hit.start_line, hit.end_line = required_row(passage)
