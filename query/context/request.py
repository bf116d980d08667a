"""What a context is made for, and what is found for it: a search among memories, and one among messages."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

from msgspec.structs import replace

from memlog.eventlog.chat import Chat
from memlog.eventlog.errors import BadInput
from memlog.projector.embedding.models import Embedder
from memlog.projector.sqlite import Connection
from memlog.query.chats import check_known
from memlog.query.context.rendering import Form
from memlog.query.context.token_counters import Counter
from memlog.query.filters import Filters
from memlog.query.request import ChatField, Count, Ids, OfText, Synced, Unit
from memlog.query.search.hits import Hit
from memlog.query.search.hybrid import Search, search
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


class BuildContext(OfText, frozen=True, kw_only=True):
    """Build the memory context for the message `text`: core memory, facts, memories, passages of
    conversations, summaries, and the newest messages of `chat`, in at most `max_tokens`.

    Entries that do not fit are left out whole. Each entry has a citation, such as [M1], by which the answer
    gives its place in the log. What memory holds is data: it cannot end the block that contains it. Where the
    search fails, core memory and window are still given, and the answer says why.

    Raises:
        BadInput: a value is out of its range, or the text is empty.
        NotFound: the store has events, and none of this chat.
        DatabaseError: the read model cannot be read, nor rebuilt.
    """

    chat: Annotated[
        ChatField | None,
        (
            "The current conversation, whose window is given. Passages and summaries are then of it alone,"
            " facts and memories of it or of no chat."
        ),
    ] = None
    max_tokens: Annotated[Count, "Tokens of all that is printed, at most."] = 4000
    counter: Annotated[
        Counter,
        (
            "What a token is: of the shipped vocabulary (model); 4 characters (chars4); a Chinese character"
            " is 1.5, a word 0.75 (heuristic)."
        ),
    ] = "model"
    form: Annotated[
        Form,
        "text for a prompt; json for programs; messages as a language model is sent them.",
    ] = "text"
    limit: Annotated[Count, "Memories at most."] = 5
    passages: Annotated[Count, "Passages of conversations at most."] = 20
    min_salience: Annotated[Unit, "Leave out memories that have faded below this salience."] = 0.3
    exclude: Annotated[Ids, "Leave out these events, memories or documents."] = frozenset()
    record: Annotated[
        bool,
        "Record that the memories were given: one memory_accessed. Where that fails, the answer says why.",
    ] = True
    explain: Annotated[bool, "Tell which entries were taken, which were left out, and why."] = False
    sync: Synced = True

    def __post_init__(self) -> None:
        """Refuse what no context can be made for."""
        super().__post_init__()
        if not self.text.strip():
            raise BadInput("the message is empty", hint="say what the context is for")

    @property
    def conversation(self) -> Chat | None:
        """The chat."""
        return None if self.chat is None else Chat.of(self.chat)

    @property
    def excluded(self) -> frozenset[str]:
        """What is left out."""
        return frozenset(self.exclude)

    @property
    def chat_name(self) -> str | None:
        """`<channel>:<chat_id>`."""
        return None if self.chat is None else str(self.chat)


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
