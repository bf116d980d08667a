"""What is recorded of a context: ids and hashes, and no word of what it says."""

import re
from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from memlog.eventlog.chat import Chat
from memlog.eventlog.events import ContextGiven
from memlog.eventlog.given import GivenEntry
from memlog.projector.rows import as_list
from memlog.projector.sqlite import Connection
from memlog.query.context.compose import Context, compose
from memlog.query.context.entries import ContextEntry
from memlog.query.context.request import DEFAULT_TOKENS, BuildContext
from memlog.query.context.retrieve import ContextHits
from memlog.query.event_index import Key

_EVENTS_BY_NAME = {
    "facts": "SELECT fact_id, event_id FROM facts WHERE fact_id IN (SELECT value FROM json_each(?))",
    "documents": "SELECT document_id, event_id FROM documents"
    " WHERE document_id IN (SELECT value FROM json_each(?))",
}
"""By stream, how to find the events of entries with names that tell a topic or a path."""


class GivenContext(msgspec.Struct, frozen=True):
    """A context to be recorded.

    event: without the hashes. stable, turn: the blocks to be hashed; None for what is no block.
    """

    event: ContextGiven
    stable: str | None
    turn: str | None


def given_of(db: Connection, request: BuildContext, context: Context, asking: Key | None) -> GivenContext:
    """What is to be recorded of a context, read in the transaction that composed it. asking: the message."""
    tokens: dict[str, int] = {}
    for entry in context.entries:
        tokens[entry.part] = tokens.get(entry.part, 0) + entry.tokens
    stable = turn = _block(context)
    if request.part == "turn":
        # It is printed by a call with a budget of its own.
        of_core = replace(request, part="stable", max_tokens=max(request.max_tokens, DEFAULT_TOKENS))
        stable = _block(compose(db, of_core, ContextHits(), synced=context.synced))
    event = ContextGiven(
        chat_id=request.chat_name or _chat_of(db, asking),
        message_id=asking[1] if asking is not None else _as_id(request.message_id),
        entries=_entries(db, context.entries),
        tokens=tokens,
    )
    return GivenContext(event, stable, turn)


def _as_id(given: str | None) -> str | None:
    """The id of a message that the log does not have yet; None for a text."""
    return given if given is not None and re.fullmatch(r"\S{1,128}", given) else None


def _block(context: Context) -> str | None:
    """The text from the first line to the last one, as an agent's prompt has it; None without one."""
    if context.form == "messages":
        return next((each["content"] for each in context.messages if each["role"] == "system"), None)
    return context.text if context.form == "text" and context.text else None


def _chat_of(db: Connection, asking: Key | None) -> str | None:
    """The chat of the asking message."""
    if asking is None:
        return None
    query = "SELECT channel, chat_id FROM messages WHERE (stream, id) = (?, ?)"
    found = db.execute(query, asking).fetchone()
    return None if found is None else str(Chat(*found))


def _entries(db: Connection, entries: Sequence[ContextEntry]) -> list[GivenEntry]:
    """One for each event and part: an event may have several passages, or facts of a list."""
    events = _events_by_name(db, entries)
    given: dict[tuple[str, str | None, str], GivenEntry] = {}
    for entry in entries:
        stream = None if entry.is_memory else entry.position.stream
        name = events.get((stream, entry.id)) if stream in _EVENTS_BY_NAME else entry.id
        if name is None:
            continue
        score = None if entry.relevance_score is None else round(entry.relevance_score, 3)
        # The first is the best passage.
        given.setdefault(
            (entry.part, stream, name), GivenEntry(entry.part, name, stream, score, entry.is_best)
        )
    return [*given.values()]


def _events_by_name(db: Connection, entries: Sequence[ContextEntry]) -> dict[tuple[str | None, str], str]:
    """The events of facts and documents, by stream and name."""
    events: dict[tuple[str | None, str], str] = {}
    for stream, query in _EVENTS_BY_NAME.items():
        names = [entry.id for entry in entries if entry.position.stream == stream]
        if names:
            events |= {(stream, name): event_id for name, event_id in db.execute(query, (as_list(names),))}
    return events
