"""Searches for a context: one among memories, one among messages."""

from collections.abc import Sequence
from functools import cache, cached_property
from itertools import takewhile
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from memlog.projector.embedding.models import Embedder, Kind
from memlog.projector.sqlite import Connection
from memlog.query.context import floor
from memlog.query.context.request import BuildContext
from memlog.query.event_index import Key
from memlog.query.filters import Filters
from memlog.query.gate.rules import is_social
from memlog.query.search import hybrid, nearest
from memlog.query.search.fts_query import parse
from memlog.query.search.hits import Hit, Rerank
from memlog.query.search.hybrid import Found
from memlog.query.search.request import Search
from memlog.query.window import NEWEST_FIRST

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CANDIDATES = 2
"""Candidates for each requested memory and passage."""

OF_ANOTHER_CHAT = 0.6
"""The weight of what another chat says. Measured on LoCoMo 6 to 10 as five chats of one store, without
names in the questions: evidence of the own chat .781, of another .719; with 1.0 .740 and .740."""

_HITS = 50
"""Memories, facts, summaries, daily events and files together: the search ranks no fewer."""

NOTHING = "nothing_relevant"
"""In `silent`, why only the core memory, the window and the newest summary are given."""

_IRRELEVANT = "nothing that was found has to do with the message"

_LOOKED_AT = 1000
"""The newest messages of a chat among which the current one is looked for."""


class ContextHits(msgspec.Struct, frozen=True):
    """The hits of the searches, best first; none if they failed.

    memories: including facts, summaries, daily events and files of memories.
    below: what was found and is not relevant enough, with why. best: the greatest relevance of a hit.
    faded: memories below the least salience, if the context is to be explained.
    silent: what did not take part, and why. asking: the message that asks, which is left out.
    """

    memories: Sequence[Hit] = ()
    messages: Sequence[Hit] = ()
    documents: Sequence[Hit] = ()
    faded: Sequence[Hit] = ()
    below: Sequence[tuple[Hit, str]] = ()
    best: float | None = None
    silent: dict[str, str] = {}
    asking: Key | None = None


def find(
    db: Connection,
    request: BuildContext,
    embedder: Embedder | None,
    asking: Key | None,
    rerank: Rerank | None = None,
) -> ContextHits:
    """Search for `request.text`. asking: the message with this text. rerank: ranks what is relevant anew.

    Raises:
        sqlite3.Error (of the binding): the read model cannot be read.
    """
    if is_social(request.text):
        return ContextHits(silent={NOTHING: "a greeting or an acknowledgement alone"}, asking=asking)
    search = _Searches(db, request.text, embedder)
    chat = request.chat if request.scope == "chat" else None
    filters = Filters(chat=chat, own_scope=True, min_salience=request.min_salience, exclude=request.exclude)
    of_memories = replace(filters, kinds=frozenset(["memory"]))
    of_messages = replace(filters, kinds=frozenset(["message"]), asking=asking)
    memories = search(of_memories, _of_memories(request), floor.OF_FEW)
    messages = search(of_messages, max(1, CANDIDATES * request.passages), _factor(db))
    documents = _documents(db, request, search)
    faded: list[Hit] = []
    if request.explain and request.min_salience > 0:
        every = search.found(replace(of_memories, min_salience=0.0), _of_memories(request))
        known = {hit.id for hit in (*memories.kept, *(hit for hit, _ in memories.below))}
        faded = [hit for _, hit in every.hits if hit.id not in known]
    distinct = floor.without_near_copies(messages.kept)
    if rerank is not None:
        memories, distinct, documents = (
            part._replace(kept=rerank(request.text, part.kept, search.silent))
            for part in (memories, distinct, documents)
        )
    parts = (memories, messages, documents)
    below = [each for part in (*parts, distinct) for each in part.below]
    if not any(part.kept for part in parts):
        search.silent[NOTHING] = _IRRELEVANT if below else "nothing was found"
    return ContextHits(
        memories=_weighted(memories.kept, request),
        messages=_weighted(distinct.kept, request),
        documents=documents.kept,
        faded=faded,
        below=below,
        best=max((part.best for part in parts if part.best is not None), default=None),
        silent=search.silent,
        asking=asking,
    )


class _Searches:
    """Searches for one question, and judges what they find.

    silent: what did not take part, and why.
    """

    def __init__(self, db: Connection, text: str, embedder: Embedder | None) -> None:
        self._db, self._text = db, text
        self._embedder = None if embedder is None else _EmbedsOnce(embedder)
        self._question = parse(text)
        self.silent: dict[str, str] = {}

    def found(self, filters: Filters, k: int) -> Found:
        """What a search finds, whether relevant or not."""
        found = hybrid.find(self._db, Search(self._text, k=k, filters=filters), self._embedder)
        self.silent |= found.silent
        return found

    def __call__(self, filters: Filters, k: int, factor: float = 1.0) -> floor.Judged:
        """What a search finds, judged. factor: of the floor."""
        found = self.found(filters, k)
        question = self._question
        hits = floor.measured(
            self._db,
            question,
            found.hits,
            found.near,
            self._vector,
            self._reads,
            is_read=self._reads(self._text),
        )
        return floor.judged(hits, len(question.terms), factor)

    @cached_property
    def _vector(self) -> bytes | None:
        """The vector of the question; None if the model does not read its language."""
        if self._embedder is None or self._reads(self._text) is False:
            return None
        return nearest.embed_query(self._text, self._db, self._embedder, {})

    def _reads(self, text: str) -> bool | None:
        return False if self._embedder is None else floor.reads(self._embedder, text)


def _factor(db: Connection) -> float:
    """Of the floor for messages."""
    limit = floor.FEW_MESSAGES
    (count,) = db.execute("SELECT count(*) FROM (SELECT 1 FROM messages LIMIT ?)", (limit,)).fetchone()
    return floor.OF_FEW if count < limit else 1.0


def _documents(db: Connection, request: BuildContext, search: _Searches) -> floor.Judged:
    """Passages of documents, which belong to no conversation; none are searched where there are none."""
    (has_documents,) = db.execute("SELECT EXISTS (SELECT 1 FROM doc_chunks)").fetchone()
    if not has_documents or not request.documents:
        return floor.Judged([], [])
    filters = Filters(kinds=frozenset(["document"]), exclude=request.exclude)
    return search(filters, request.documents)


def _weighted(hits: Sequence[Hit], request: BuildContext) -> Sequence[Hit]:
    """Hits by falling score, where those of other conversations than the current one count less."""
    if request.chat is None or request.scope == "chat":
        return hits
    for hit in hits:
        if hit.chat not in (None, request.chat_name):
            hit.score *= OF_ANOTHER_CHAT
    return sorted(hits, key=lambda hit: hit.score, reverse=True)


def asking_message(db: Connection, request: BuildContext) -> Key | None:
    """The message that asks, which does not answer itself; None if it is not in the read model.

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


def _of_memories(request: BuildContext) -> int:
    return max(_HITS, CANDIDATES * request.limit)


class _EmbedsOnce:
    """An embedder that embeds the question of several searches once."""

    def __init__(self, embedder: Embedder) -> None:
        self.id, self.dimension = embedder.id, embedder.dimension
        self.is_remote = embedder.is_remote
        self._embed = cache(embedder.embed)

    def embed(self, texts: Sequence[str], kind: Kind = "passage") -> "NDArray[np.float32]":
        """See `Embedder.embed`."""
        return self._embed(tuple(texts), kind)
