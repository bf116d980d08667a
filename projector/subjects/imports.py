"""Imports: the events that each run added, and the events that do not count because their import was undone.

An event is hidden if an undone import appended it, or it was derived from such events, and no later import
brought it back. Streams with such events are replayed without them, so no other handler has to know of this.
"""

import json
from collections.abc import Collection, Iterator, Sequence
from typing import cast

from memlog.eventlog import events as ev
from memlog.projector.passages.chunking import ChunkSizes
from memlog.projector.sqlite import Connection, delete_rows, insert_rows, to_json_list
from memlog.projector.subjects.accepted import Handlers, PositionedEvent, encode_as_json

STREAM = ev.ImportUndone.STREAM

Key = tuple[str, str]
"""(stream, event id)."""


def fold_imports(db: Connection, events: Sequence[PositionedEvent], sizes: ChunkSizes) -> None:  # noqa: ARG001
    """Record imports and undone imports, and hide or bring back their events."""
    brought, undone = [], []
    for placed in events:
        if isinstance(placed.event, ev.EventsImported):
            brought.append(placed)
        else:
            undone.append(placed)
    columns = "stream, event_id, run, format, path, appended, met, ts, precedence"
    insert_rows(db, "imported_events", columns, (_imported_row(placed) for placed in brought))
    columns = "stream, event_id, run, kept, derived, ts, precedence"
    insert_rows(db, "undone_imports", columns, (_undone_row(placed) for placed in undone))
    undone_at = dict(db.execute("SELECT run, max(precedence) FROM undone_imports GROUP BY run"))
    is_late = any(placed.precedence < undone_at.get(_run_of(placed), "") for placed in brought)
    if undone or is_late:
        _recompute_hidden_events(db)
    elif undone_at:
        _bring_back_events(db, brought)


def mark_streams_with_hidden_events(db: Connection) -> None:
    """Mark all streams with hidden events for a replay, before the rows of imports are removed."""
    rows = db.execute("SELECT DISTINCT target_stream FROM hidden_events")
    _mark_for_replay(db, [stream for (stream,) in rows])


def find_hidden_ids(db: Connection, stream: str, ids: Collection[str]) -> set[str]:
    """Return the `ids` that are hidden in `stream`."""
    if (
        db.execute("SELECT 1 FROM hidden_events WHERE target_stream = ? LIMIT 1", (stream,)).fetchone()
        is None
    ):
        return set()
    rows = db.execute(
        "SELECT target_id FROM hidden_events"
        " WHERE target_stream = ? AND target_id IN (SELECT value FROM json_each(?))",
        (stream, to_json_list(list(ids))),
    )
    return {name for (name,) in rows}


def list_streams_to_replay(db: Connection) -> list[str]:
    """Return the streams in which events have become hidden or visible since they were projected."""
    return [name for (name,) in db.execute("SELECT target_stream FROM streams_to_replay ORDER BY 1")]


def keys_in_json(text: str) -> Iterator[Key]:
    """Yield (stream, id) of each event in a JSON object that lists ids by stream."""
    for stream, ids in json.loads(text).items():
        for name in ids:
            yield stream, name


def _run_of(placed: PositionedEvent) -> str:
    return cast("ev.EventsImported | ev.ImportUndone", placed.event).run


def _imported_row(placed: PositionedEvent) -> tuple[str, ...]:
    event = cast(ev.EventsImported, placed.event)
    ids = encode_as_json(event.appended), encode_as_json(event.met)
    return placed.stream, placed.id, event.run, event.format, event.path, *ids, placed.ts, placed.precedence


def _undone_row(placed: PositionedEvent) -> tuple[str, ...]:
    event = cast(ev.ImportUndone, placed.event)
    ids = encode_as_json(event.kept), encode_as_json(event.derived)
    return placed.stream, placed.id, event.run, *ids, placed.ts, placed.precedence


def _recompute_hidden_events(db: Connection) -> None:
    """Recompute the hidden events from all imports, by precedence; mark changed streams for a replay."""
    hidden: dict[Key, str] = {}
    rows = db.execute(
        "SELECT precedence, run, appended, NULL, NULL FROM imported_events"
        " UNION ALL SELECT precedence, run, NULL, kept, derived FROM undone_imports ORDER BY precedence"
    )
    for precedence, run, appended, kept, derived in rows.fetchall():
        if appended is not None:
            for key in keys_in_json(appended) if hidden else ():
                hidden.pop(key, None)
            continue
        stays = {*keys_in_json(kept)}
        brought = db.execute("SELECT appended FROM imported_events WHERE run = ?", (run,))
        keys = [key for (ids,) in brought for key in keys_in_json(ids) if key not in stays]
        hidden |= dict.fromkeys([*keys, *keys_in_json(derived)], precedence)
    before = {
        (stream, name) for stream, name in db.execute("SELECT target_stream, target_id FROM hidden_events")
    }
    delete_rows(db, "hidden_events", "stream = ?", (STREAM,))
    values = ((*key, STREAM, precedence) for key, precedence in hidden.items())
    insert_rows(db, "hidden_events", "target_stream, target_id, stream, precedence", values)
    _mark_for_replay(db, {stream for stream, _ in before ^ hidden.keys()})


def _bring_back_events(db: Connection, brought: Sequence[PositionedEvent]) -> None:
    """Bring back the hidden events that newer imports have met again."""
    changed: set[str] = set()
    for placed in brought:
        for stream, ids in cast(ev.EventsImported, placed.event).appended.items():
            found = find_hidden_ids(db, stream, ids)
            of_found = (
                "target_stream = ? AND precedence < ? AND target_id IN (SELECT value FROM json_each(?))"
            )
            values = stream, placed.precedence, to_json_list(sorted(found))
            delete_rows(db, "hidden_events", of_found, values)
            changed |= {stream} if found else set()
    _mark_for_replay(db, changed)


def _mark_for_replay(db: Connection, streams: Collection[str]) -> None:
    """Mark streams for a replay, except those that have not been projected yet."""
    rows = db.execute(
        "SELECT DISTINCT stream FROM checkpoints WHERE stream IN (SELECT value FROM json_each(?))"
        " AND stream NOT IN (SELECT target_stream FROM streams_to_replay)",
        (to_json_list(sorted(streams)),),
    )
    insert_rows(db, "streams_to_replay", "target_stream", rows.fetchall())


HANDLERS: Handlers = {fold_imports: (ev.EventsImported, ev.ImportUndone)}
