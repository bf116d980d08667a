"""The core memory: the newest event that set or deleted a key decides.

A profile, which memlog writes for each group of chats, sets what nobody else has set.
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
        is_profile, chat = said.source == PROFILE, said.chat_id or ""
        of_all = as_json([said.section, said.key])
        own = as_json([said.section, said.key, PROFILE, chat]) if is_profile else of_all
        if isinstance(said, CoreMemoryDeleted):
            bury(db, own, placed)
            older = (said.section, said.key, placed.precedence)
            # A profile removes its own value alone.
            rest, values = (" AND is_profile AND chat_id = ?", (chat,)) if is_profile else ("", ())
            delete(db, "core_values", f"section = ? AND key = ? AND precedence < ?{rest}", (*older, *values))
        elif placed.precedence > buried(db, placed.stream, of_all, own):
            origin = said.extraction
            row = placed.row(
                *("section", "key", "value", "source"),
                chat_id=chat if is_profile else "",
                is_profile=is_profile,
                memory_ids=as_json([] if origin is None else origin.memory_ids),
                extraction_id=None if origin is None else origin.id,
                updated_at=placed.ts,
            )
            upsert(db, "core_values", ("section", "key", "chat_id", "is_profile"), row, newer_by="precedence")
