"""What is found for a context: a search among memories, and one among messages."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from msgspec.structs import replace

from memlog.projector.embedding.models import Embedder
from memlog.projector.sqlite import Connection
from memlog.query.chats import check_known
from memlog.query.context.request import BuildContext
from memlog.query.filters import Filters
from memlog.query.search.hits import Hit
from memlog.query.search.hybrid import search
from memlog.query.search.request import Search
from memlog.query.window import ORDER

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CANDIDATES = 2
"""So many candidates are looked at for each memory and passage that is asked for."""

_FOUND = 50
"""Of memories, facts, summaries, daily events and files together so many are found: the search ranks no
fewer."""

_LOOKED_AT = 1000
"""Of a chat's newest messages so many are looked at for the one that asks."""


@dataclass(frozen=True)
class ContextHits:
    """What the searches found, best first; nothing where they failed.

    memories: and what is found as one: facts, summaries, daily events, files of memories.
    faded: memories that have faded, where they were asked for.
    silent: what did not take part, and why.
    """

    memories: Sequence[Hit] = ()
    messages: Sequence[Hit] = ()
    faded: Sequence[Hit] = ()
    silent: dict[str, str] = field(default_factory=dict)


def find(db: Connection, asked: BuildContext, embedder: Embedder | None) -> ContextHits:
    """Search for what `asked.text` is about.

    Raises:
        NotFound: the store has events, and none of the chat that is asked for.
        sqlite3.Error (of the binding): the read model cannot be read.
    """
    if asked.conversation is not None:
        check_known(db, asked.conversation)
    once = None if embedder is None else _EmbedsOnce(embedder)
    filters = Filters(chat=asked.chat, own_scope=True, min_salience=asked.min_salience, exclude=asked.exclude)
    of_memories = replace(filters, kinds=frozenset(["memory"]))
    of_messages = replace(filters, kinds=frozenset(["message"]))
    memories = search(db, Search(asked.text, k=_of_memories(asked), filters=of_memories), once)
    messages = search(
        db, Search(asked.text, k=max(1, CANDIDATES * asked.passages), filters=of_messages), once
    )
    faded: list[Hit] = []
    if asked.explain and asked.min_salience > 0:
        every = Search(asked.text, k=_of_memories(asked), filters=replace(of_memories, min_salience=0.0))
        known = {hit.id for hit in memories.hits}
        faded = [hit for hit in search(db, every, once).hits if hit.id not in known]
    return ContextHits(memories.hits, messages.hits, faded, memories.silent | messages.silent)


def without_the_question(db: Connection, asked: BuildContext) -> BuildContext:
    """`asked`, leaving out the newest message of the chat that says its text: it asks, and answers nothing.

    Raises:
        sqlite3.Error (of the binding): the read model cannot be read.
    """
    if asked.chat is None:
        return asked
    newest = ", ".join(f"{column} DESC" for column in ORDER)
    row = db.execute(
        "SELECT id FROM (SELECT id, content, type FROM messages WHERE channel = ? AND chat_id = ?"
        f" ORDER BY {newest} LIMIT {_LOOKED_AT}) WHERE content = ? AND type <> 'session_break' LIMIT 1",
        (*asked.chat, asked.text),
    ).fetchone()
    return replace(asked, exclude=asked.excluded.union(row or ()))


def _of_memories(asked: BuildContext) -> int:
    return max(_FOUND, CANDIDATES * asked.limit)


class _EmbedsOnce:
    """An embedder that keeps the one question that several searches ask."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.id, self.dimension = embedder.id, embedder.dimension
        self._known: dict[tuple[str, ...], NDArray[np.float32]] = {}

    def embed(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """See `Embedder.embed`."""
        asked = tuple(texts)
        if asked not in self._known:
            self._known[asked] = self._embedder.embed(texts)
        return self._known[asked]
