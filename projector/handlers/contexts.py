"""Contexts that agents were given."""

from collections.abc import Sequence
from typing import cast

from memlog.eventlog.events import ContextGiven
from memlog.projector.handlers.accepted import Placed, as_json
from memlog.projector.passages.chunking import ChunkSizes
from memlog.projector.rows import insert
from memlog.projector.sqlite import Connection


def add(db: Connection, events: Sequence[Placed], sizes: ChunkSizes) -> None:  # noqa: ARG001
    """Note contexts with what they gave."""
    contexts, entries = [], []
    for placed in events:
        said = cast(ContextGiven, placed.event)
        blocks = (said.stable, said.turn)
        asked = (said.chat_id, said.message_id)
        contexts.append((placed.stream, placed.id, *asked, as_json(said.tokens), *blocks, placed.ts))
        for number, each in enumerate(said.entries):
            entry = (each.part, each.stream or "", each.id, each.score)
            entries.append((placed.stream, placed.id, number, *entry))
    insert(db, "contexts_given", "stream, id, chat_id, message_id, tokens, stable, turn, ts", contexts)
    insert(db, "given_entries", "stream, event_id, number, part, entry_stream, entry_id, score", entries)
