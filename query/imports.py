"""Finds a store's imports, their events, and the messages and memories changed since."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain, groupby
from operator import itemgetter
from typing import NamedTuple

import msgspec

from memlog.eventlog.log.layout import CONVERSATIONS
from memlog.eventlog.log.streams import conversation_stream
from memlog.projector.sqlite import Connection, to_json_list
from memlog.projector.subjects.imports import Key, find_hidden_ids, keys_in_json


class ImportRun(msgspec.Struct, kw_only=True):
    """An import that appended events, or met events from other sources.

    run: its id. ts: when it began. formats, paths: the formats and paths of the sources it read.
    appended: the number of its events, with descriptions of chats.
    met: the number of events that other sources had already added. is_undone: whether it was undone.
    """

    run: str
    ts: str
    formats: list[str]
    paths: list[str]
    appended: int
    met: int
    is_undone: bool


def is_undone(db: Connection, run: str) -> bool:
    """Whether an import was undone."""
    return db.execute("SELECT 1 FROM undone_imports WHERE run = ?", (run,)).fetchone() is not None


def list_imports(db: Connection) -> list[ImportRun]:
    """Return all imports, newest last."""
    undone = {run for (run,) in db.execute("SELECT DISTINCT run FROM undone_imports")}
    counted = "(SELECT coalesce(sum(json_array_length(value)), 0) FROM json_each({}))"
    rows = db.execute(
        f"SELECT run, ts, format, path, {counted.format('appended')}, {counted.format('met')}"
        " FROM imported_events ORDER BY run, precedence"
    ).fetchall()
    found = []
    for run, group in groupby(rows, key=itemgetter(0)):
        parts = [*group]
        found.append(
            ImportRun(
                run=run,
                ts=parts[0][1],
                formats=list(dict.fromkeys(part[2] for part in parts)),
                paths=list(dict.fromkeys(part[3] for part in parts)),
                appended=sum(part[4] for part in parts),
                met=sum(part[5] for part in parts),
                is_undone=run in undone,
            )
        )
    return sorted(found, key=lambda each: (each.ts, each.run))


def events_of_import(db: Connection, run: str) -> Iterator[Key]:
    """Yield the keys of the events that an import appended, in no particular order."""
    for (appended,) in db.execute("SELECT appended FROM imported_events WHERE run = ?", (run,)):
        yield from keys_in_json(appended)


def imports_that_met(db: Connection, run: str, events: Collection[Key]) -> list[str]:
    """Return the imports from other sources that were not undone and met or appended any of `events`."""
    rows = db.execute(
        "SELECT run, appended, met FROM imported_events WHERE run <> ?1"
        " AND path NOT IN (SELECT path FROM imported_events WHERE run = ?1)"
        " AND run NOT IN (SELECT run FROM undone_imports) ORDER BY precedence",
        (run,),
    )
    found = {
        other: None
        for other, *lists in rows
        if any(key in events for ids in lists for key in keys_in_json(ids))
    }
    return [*found]


def events_of_other_sources(db: Connection, format: str, path: str) -> Iterator[Key]:
    """Yield the keys of events that other sources in a format added, and that imports of `path` lack."""
    own = "SELECT 1 FROM imported_events WHERE format = ?1 AND path {} ?2 LIMIT 1"
    if db.execute(own.format("<>"), (format, path)).fetchone() is None:
        return
    rows = db.execute(
        "SELECT appended, met FROM imported_events"
        " WHERE path = ? AND run NOT IN (SELECT run FROM undone_imports)",
        (path,),
    )
    known = {key for lists in rows for ids in lists for key in keys_in_json(ids)}
    rows = db.execute("SELECT appended FROM imported_events WHERE format = ? AND path <> ?", (format, path))
    for (appended,) in rows:
        yield from (key for key in keys_in_json(appended) if key not in known)


def hidden_by_record(db: Connection, keys: Sequence[Key], streams: Sequence[str]) -> dict[str, set[Key]]:
    """Map each id in `keys` to the keys of hidden events that have this id or one that extends it.

    For example, changes to the record `tiered/7` have ids such as `tiered/7/updated/…`. Events with extended
    ids are looked up only in `streams`.
    """
    if db.execute("SELECT 1 FROM hidden_events LIMIT 1").fetchone() is None:
        return {}
    # CROSS JOIN fixes the order: each key is found by the index.
    own = db.execute(
        "SELECT h.target_id, h.target_stream, h.target_id FROM json_each(?) AS k"
        " CROSS JOIN hidden_events AS h"
        " WHERE h.target_stream = k.value ->> 0 AND h.target_id = k.value ->> 1",
        (to_json_list(keys),),
    )
    below = db.execute(
        "SELECT n.value, h.target_stream, h.target_id FROM json_each(?) AS s CROSS JOIN json_each(?) AS n"
        " CROSS JOIN hidden_events AS h WHERE h.target_stream = s.value"
        " AND h.target_id > n.value || '/' AND h.target_id < n.value || '0'",
        (to_json_list(streams), to_json_list([name for _, name in keys])),
    )
    found: defaultdict[str, set[Key]] = defaultdict(set)
    for record, stream, name in (*own, *below):
        found[record].add((stream, name))
    return found


def hidden_among(db: Connection, events: Collection[Key]) -> set[Key]:
    """Return the `events` that are hidden."""
    by_stream = group_by_stream(events)
    return {(stream, name) for stream, ids in by_stream.items() for name in find_hidden_ids(db, stream, ids)}


def changed_since(
    db: Connection, events: Collection[Key], is_imported: Callable[[str], bool]
) -> dict[str, set[Key]]:
    """Return the imported messages and memories that people or agents have since changed.

    The result maps each one's id to the keys, among `events`, of the events that it was made from.

    events: the imported events. is_imported: returns whether the event with an id was imported.
    """
    keys = to_json_list(list(events))
    imported = (
        "WITH imported AS MATERIALIZED (SELECT value ->> 0 AS stream, value ->> 1 AS id FROM json_each(?1))"
    )
    messages = db.execute(
        f"{imported} SELECT c.message_id, c.stream, c.event_id FROM message_changes c"
        " WHERE (c.stream, c.message_id) IN (SELECT stream, id FROM imported)"
        " ORDER BY 1",
        (keys,),
    ).fetchall()
    memories = db.execute(
        f"{imported} SELECT t.memory_id, t.stream, t.event_id FROM memory_events t"
        " JOIN events e ON (e.stream, e.id) = (t.stream, t.event_id)"
        " WHERE t.extraction_id IS NULL AND (e.type IN ('memory_saved', 'memory_updated')"
        "   OR (e.type = 'memory_accessed' AND t.accesses > t.reads))"  # somebody saved it once more
        " AND t.memory_id IN (SELECT o.memory_id FROM memory_events o"
        "   WHERE (o.stream, o.event_id) IN (SELECT stream, id FROM imported))"
        " ORDER BY 1",
        (keys,),
    ).fetchall()
    found: dict[str, set[Key]] = {}
    for name, group in groupby([*messages, *memories], key=itemgetter(0)):
        changes = {(stream, event_id) for _, stream, event_id in group}
        if any(key not in events and not is_imported(key[1]) for key in changes):
            found[name] = {key for key in changes if key in events}
    for stream, name in events:
        if name in found and stream != "memory":
            found[name].add((stream, name))
    return found


class StreamsOfChannel(NamedTuple):
    """The folders of a channel's conversations that have messages (`shown`) and forgotten events."""

    shown: set[str]
    forgotten: set[str]


def read_streams_of_channel(db: Connection, channel: str) -> StreamsOfChannel:
    """Return the conversations of a channel that have messages, and those that have forgotten events."""
    head = conversation_stream(channel, "")
    tables = ("messages", "withdrawn_messages", "summaries", "redactions")
    found = [
        {
            stream.removeprefix(f"{CONVERSATIONS}/")
            for (stream,) in db.execute(
                f"SELECT DISTINCT stream FROM {table} WHERE stream >= ?1 AND stream < ?1 || char(1114111)",
                (head,),
            )
        }
        for table in tables
    ]
    return StreamsOfChannel({*chain.from_iterable(found[:-1])}, found[-1])


def group_by_stream(events: Iterable[Key]) -> dict[str, list[str]]:
    """Group event keys into lists of ids keyed by stream, with both sorted."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for stream, name in sorted({*events}):
        found[stream].append(name)
    return dict(found)
