"""The core memory: the newest event that set or deleted a key decides.

The profile, which memlog writes, sets what nobody else has set.
"""

from collections.abc import Sequence
from typing import cast

from memlog.eventlog.events import CoreMemoryDeleted, CoreMemoryUpdated
from memlog.projector.handlers.accepted import Placed, as_json, buried, bury
from memlog.projector.passages.chunking import ChunkSizes
from memlog.projector.rows import delete, upsert
from memlog.projector.sqlite import Connection

PROFILE = "profile"
"""The source of values that memlog makes of memories."""


def fold(db: Connection, events: Sequence[Placed], sizes: ChunkSizes) -> None:  # noqa: ARG001
    """Set and delete keys."""
    for placed in events:
        said = cast("CoreMemoryUpdated | CoreMemoryDeleted", placed.event)
        thing = as_json([said.section, said.key])
        if isinstance(said, CoreMemoryDeleted):
            bury(db, thing, placed)
            older = (said.section, said.key, placed.precedence)
            delete(db, "core_values", "section = ? AND key = ? AND precedence < ?", older)
        elif placed.precedence > buried(db, placed.stream, thing):
            memory_ids = [] if said.extraction is None else said.extraction.memory_ids
            row = placed.row(
                *("section", "key", "value", "source"),
                is_profile=said.source == PROFILE,
                memory_ids=as_json(memory_ids),
                updated_at=placed.ts,
            )
            upsert(db, "core_values", ("section", "key", "is_profile"), row, newer_by="precedence")
