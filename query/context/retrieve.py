"""Searches for a context: memories, messages and documents, and what of them belongs to the prompt."""

from collections.abc import Sequence
from itertools import takewhile

import msgspec

from memlog.projector.embedding.models import Models
from memlog.projector.sqlite import Connection
from memlog.query.context import floor
from memlog.query.context.background import StoreSample
from memlog.query.context.request import BuildContext
from memlog.query.context.scores import chance
from memlog.query.context.searches import OF_ANOTHER_CHAT, Below, PromptSearches, Rated
from memlog.query.event_index import Key
from memlog.query.gate.rules import is_social
from memlog.query.search.hits import Hit, Rerank
from memlog.query.time_words import NamedTime
from memlog.query.window import NEWEST_FIRST

NOTHING = "nothing_relevant"
"""In `silent`, why only core memory, what always holds, the window and the newest summary are given."""

_IRRELEVANT = "nothing that was found has to do with the message"

_LOOKED_AT = 1000
"""The newest messages of a chat among which the current one is looked for."""


class ContextHits(msgspec.Struct, frozen=True):
    """The hits of the searches, best first; none if they failed.

    listed: of every kind, by their scores.
    messages, documents: by floors of their own, where little is distilled.
    below: what was found and is not relevant enough.
    answered: the probability that the best one found belongs to the prompt; None where none was found.
    time: that the prompt names.
    faded: memories below the least salience, if the context is to be explained.
    silent: what did not take part, and why. asking: the message that asks, which is left out.
    """

    listed: Rated = []
    messages: Sequence[Hit] = ()
    documents: Sequence[Hit] = ()
    faded: Sequence[Hit] = ()
    below: Sequence[Below] = ()
    answered: float | None = None
    silent: dict[str, str] = {}
    asking: Key | None = None
    time: NamedTime | None = None


def find(
    db: Connection,
    request: BuildContext,
    models: Models,
    asking: Key | None,
    sample: StoreSample,
    rerank: Rerank | None = None,
) -> ContextHits:
    """Search for `request.text`.

    asking: the message with this text. sample: of the store. rerank: ranks what is relevant anew.

    Raises:
        sqlite3.Error (of the binding): the read model cannot be read.
    """
    if is_social(request.text):
        return ContextHits(silent={NOTHING: "a greeting or an acknowledgement alone"}, asking=asking)
    search = PromptSearches(db, request, models, asking, sample)
    listed, below = search.listed()
    passages = search.passages()
    distinct = floor.without_near_copies(passages.kept)
    documents = search.documents()
    if rerank is not None:
        scores = {id(hit): score for hit, score in listed}
        ranked = rerank(request.text, [hit for hit, _ in listed], search.silent)
        listed = [(hit, scores[id(hit)]) for hit in ranked]
        listed.sort(key=lambda each: not each[1].is_of_time)
        distinct, documents = (
            part._replace(kept=rerank(request.text, part.kept, search.silent))
            for part in (distinct, documents)
        )
    below += [Below(hit, why) for part in (passages, distinct, documents) for hit, why in part.below]
    if not (listed or distinct.kept or documents.kept):
        search.silent[NOTHING] = _IRRELEVANT if below else "nothing was found"
    answers = [floor.chance(part.best) for part in (passages, documents) if part.best is not None]
    rated = [*(score for _, score in listed), *(each.score for each in below if each.score)]
    answers += map(chance, rated)
    return ContextHits(
        listed=listed,
        messages=_weighted(distinct.kept, request),
        documents=documents.kept,
        faded=search.faded(),
        below=below,
        answered=max(answers, default=None),
        silent=search.silent,
        asking=asking,
        time=search.time,
    )


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
