"""Contexts given to agents."""

from collections.abc import Sequence
from typing import cast

from memlog.eventlog.events import ContextGiven
from memlog.eventlog.log.layout import CONVERSATIONS
from memlog.eventlog.log.streams import conversation_stream
from memlog.projector.passages.chunking import ChunkSizes
from memlog.projector.sqlite import Connection, insert_rows
from memlog.projector.subjects import memories
from memlog.projector.subjects.accepted import Handlers, PositionedEvent, encode_as_json


def record_contexts_and_accesses(
    db: Connection,
    events: Sequence[PositionedEvent],
    sizes: ChunkSizes,  # noqa: ARG001
) -> None:
    """Record contexts with their entries, and protect the best memories for each message from decay."""
    contexts, named, best = [], [], []
    for placed in events:
        event = cast(ContextGiven, placed.event)
        gave = (encode_as_json(event.entries), encode_as_json(event.tokens), event.stable, event.turn)
        contexts.append((placed.stream, placed.id, event.chat_id, event.message_id, *gave, placed.ts))
        things = {(each.stream or "", each.id) for each in event.entries}
        if event.message_id is not None:
            things.add((find_stream_of_chat(event.chat_id), event.message_id))
        # Only the entries of memories name no stream.
        spared = {each.id for each in event.entries if each.is_best and each.stream is None}
        best += [(memory_id, placed.ts[:10], placed.stream, placed.id) for memory_id in sorted(spared)]
        named += [(*thing, placed.stream, placed.id) for thing in sorted(things)]
    columns = "stream, id, chat_id, message_id, entries, tokens, stable, turn, ts"
    insert_rows(db, "contexts_given", columns, contexts)
    insert_rows(db, "named_in_contexts", "thing_stream, thing_id, stream, event_id", named)
    insert_rows(db, "best_in_contexts", "memory_id, day, stream, event_id", best)
    memories.recompute_salience(db, {memory_id for memory_id, *_ in best})


def find_stream_of_chat(chat: str | None) -> str:
    """Return the stream of a chat such as `telegram:7`; `conversations` if `chat` has another form."""
    channel, _, chat_id = (chat or "").partition(":")
    return conversation_stream(channel, chat_id) if channel and chat_id else CONVERSATIONS


HANDLERS: Handlers = {record_contexts_and_accesses: (ContextGiven,)}
