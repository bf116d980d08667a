"""The core memory: the newest event that set or deleted a key decides."""

from collections.abc import Sequence
from typing import cast

from memlog.eventlog.events import CoreMemoryDeleted, CoreMemoryUpdated
from memlog.projector.handlers.accepted import Placed, as_json, buried, bury
from memlog.projector.passages.chunking import ChunkSizes
from memlog.projector.rows import delete, upsert
from memlog.projector.sqlite import Connection


def fold(db: Connection, events: Sequence[Placed], sizes: ChunkSizes) -> None:  # noqa: ARG001
    """Set and delete keys."""
    for placed in events:
        said = cast("CoreMemoryUpdated | CoreMemoryDeleted", placed.event)
        thing = as_json([said.section, said.key])
        if isinstance(said, CoreMemoryDeleted):
            bury(db, thing, placed)
            older = (said.section, said.key, placed.precedence)
            delete(db, "core_memory", "section = ? AND key = ? AND precedence < ?", older)
        elif placed.precedence > buried(db, placed.stream, thing):
            row = placed.row("section", "key", "value", "source", updated_at=placed.ts)
            upsert(db, "core_memory", ("section", "key"), row, newer_by="precedence")
