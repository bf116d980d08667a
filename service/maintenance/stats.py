"""Counts and sizes of a store, and how far the read model and the vectors are behind the log."""

import os
from contextlib import suppress
from pathlib import Path

import msgspec

from memlog.eventlog import disk
from memlog.eventlog.layout import CACHE
from memlog.projector import catchup
from memlog.projector.passages import index, vectors
from memlog.projector.sqlite import Connection, count_rows, transaction
from memlog.query import counts
from memlog.service.providers.breaker import count_errors
from memlog.service.read_model import ReadModel


class Stats(msgspec.Struct, kw_only=True):
    """Counts and sizes of a store. Counts by name are sorted by name.

    synced: whether the read model was caught up with the log, so that everything is counted.
    unread_bytes, unread_lines: of the log, that the read model lacked before it caught up.
    events_by_type, events_by_day: accepted events; a day is the UTC day on which they happened.
    messages_by_role, messages_by_chat: without session breaks; a chat is `<channel>:<chat_id>`.
    memories_by_category, memories_by_kind: including archived ones, which memories_archived counts.
    passages: that are searched; vectors: how many have one; vectors_pending: how many have none yet.
    log_bytes, model_bytes, cache_bytes: of the files in these folders.
    counters: `memory.saved.count`, saves; `memory.retrieved.count`, memories given to an agent, each as often
        as it was; `memory.extraction.count`, `.success`, `.errors`, `.tokens`: requests to a language model,
        of which the cache knows the errors.
    """

    synced: bool
    unread_bytes: int
    unread_lines: int
    events_by_type: dict[str, int]
    events_by_day: dict[str, int]
    messages_by_role: dict[str, int]
    messages_by_chat: dict[str, int]
    memories_by_category: dict[str, int]
    memories_by_kind: dict[str, int]
    memories_archived: int
    passages: int
    vectors: int
    vectors_pending: int
    log_bytes: int
    model_bytes: int
    cache_bytes: int
    counters: dict[str, int]


def stats_of(read_model: ReadModel) -> Stats:
    """Measure how far the read model is behind, catch up, and count."""
    log = read_model.projector.log
    behind, _ = read_model.latest(sync=False)
    unread_bytes, unread_lines = catchup.unread_bytes(behind, log), catchup.unread_lines(behind, log)
    db, synced = (behind, False) if read_model.is_read_only else read_model.latest()
    with transaction(db, "DEFERRED"):
        by_type = counts.count_by(db, "type", "events")
        messages = "messages WHERE type <> 'session_break'"
        return Stats(
            synced=synced,
            unread_bytes=unread_bytes,
            unread_lines=unread_lines,
            events_by_type=by_type,
            events_by_day=counts.count_by(db, "substr(ts, 1, 10)", "events"),
            messages_by_role=counts.count_by(db, "role", messages),
            messages_by_chat=counts.count_by(db, "channel || ':' || chat_id", messages),
            memories_by_category=counts.count_by(db, "category", "memories"),
            memories_by_kind=counts.count_by(db, "kind", "memories"),
            memories_archived=count_rows(db, "memories WHERE archived_at IS NOT NULL"),
            passages=index.count(db),
            vectors=sum(vectors.count(db, of) for of in vectors.SETS),
            vectors_pending=index.count_all_pending(db),
            log_bytes=_bytes_below(log),
            model_bytes=_bytes_below(read_model.projector.generations.folder),
            cache_bytes=_bytes_below(read_model.path / CACHE),
            counters=_counters(db, by_type, read_model.path),
        )


def _counters(db: Connection, by_type: dict[str, int], store: Path) -> dict[str, int]:
    """With the requests to a language model that failed: of them no event tells."""
    found = counts.counters(db, by_type)
    errors = count_errors(store, "language_model")
    return found | {
        "memory.extraction.errors": errors,
        "memory.extraction.count": found["memory.extraction.success"] + errors,
    }


def _bytes_below(folder: Path) -> int:
    """The size of the files below a folder, without those that vanish meanwhile, as SQLite's do."""
    total = 0
    for parent, _, files in os.walk(folder):
        for name in files:
            with suppress(FileNotFoundError):
                total += disk.look(Path(parent, name)).st_size
    return total
