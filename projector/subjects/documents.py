"""Sources and documents; the event with the highest precedence decides about each.

Removing a source removes the documents that were indexed before.
"""

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from memlog.eventlog import timestamps
from memlog.eventlog.codec.hashing import sha256
from memlog.eventlog.events import DocumentIndexed, DocumentRemoved, SourceRegistered, SourceRemoved
from memlog.eventlog.journals import find_day_of_journal
from memlog.projector.passages import index
from memlog.projector.passages.chunking import ChunkSizes
from memlog.projector.passages.index import SourceText
from memlog.projector.sqlite import Connection, delete_rows, fetch_required_row, update_rows, upsert_row
from memlog.projector.subjects.accepted import (
    Handlers,
    PositionedEvent,
    encode_as_json,
    find_highest_tombstone_precedence,
)

_FENCE = re.compile(
    r"\ufeff?(?:---[ \t]*\r?\n(?P<yaml>.*?)^(?:---|\.\.\.)|\+\+\+[ \t]*\r?\n(?P<toml>.*?)^\+\+\+)[ \t]*\r?$",
    re.M | re.S,
)
"""YAML between `---` and `---` or `...`, or TOML between `+++`, at the very start, as in Jekyll and Hugo."""

_LONGEST = 16 * 1024
"""Characters within which front matter must end, to bound the search."""

_NAMES = ("date", "updated", "lastmod", "modified", "created")
"""The names under which a date may be given, best first."""

_MEMBER = re.compile(
    r"(?ami)^(\w+)[ \t]*[:=][ \t]*[\"']?"
    r"(\d{4}-\d\d-\d\d)(?:[T ]([\d:.]+) ?(Z|[+-]\d\d:?\d\d)?)?"
)
"""A name, its day, and the time of day and offset, if given."""


def find_document_date(event: DocumentIndexed, ts: str) -> str:
    """Return a document's date as a canonical timestamp (a day as its first moment in UTC), or else `ts`.

    A journal's day comes from its file name; its front matter may add a time on that day.
    """
    written = _date_in_front_matter(event.content)
    day = find_day_of_journal(PurePosixPath(event.file).stem)
    if day is not None and not (written or "").startswith(day):
        return timestamps.parse_day_or_time(day)
    return written or _date_of_file(event.mtime) or ts


def _date_in_front_matter(content: str) -> str | None:
    front = _FENCE.match(content[:_LONGEST])
    if front is None:
        return None
    found = {
        name.lower(): parts for name, *parts in reversed(_MEMBER.findall(front["yaml"] or front["toml"]))
    }
    dates = (found[name] for name in _NAMES if name in found)
    times = (
        _parse_time(f"{day}T{time}{offset}" if time else day) or _parse_time(day)
        for day, time, offset in dates
    )
    return next(filter(None, times), None)


def _date_of_file(mtime: str | float | None) -> str | None:
    if not isinstance(mtime, int | float):
        return None if mtime is None else _parse_time(mtime)
    try:
        return timestamps.timestamp_from_seconds(mtime)
    except ValueError:
        return None


def _parse_time(time: str) -> str | None:
    try:
        return timestamps.parse_day_or_time(time)
    except ValueError:
        return None


def fold_documents(db: Connection, events: Sequence[PositionedEvent], sizes: ChunkSizes) -> None:
    """Register, index and remove sources and documents."""
    for placed in events:
        match placed.event:
            case SourceRegistered():
                _register_source(db, placed, placed.event, sizes)
            case SourceRemoved():
                _remove_source(db, placed, placed.event, sizes)
            case DocumentIndexed():
                _index_document(db, placed, placed.event, sizes)
            case DocumentRemoved():
                thing = make_document_key(placed.event.source_id, placed.event.file)
                placed.write_tombstone(db, thing)
                _remove_documents(db, placed, "document_id = ?", thing)


def make_document_key(source_id: str, file: str) -> str:
    """Return a document's key, which is unambiguous because a source_id contains no `/`."""
    return f"{source_id}/{file}"


def _register_source(
    db: Connection, placed: PositionedEvent, event: SourceRegistered, sizes: ChunkSizes
) -> None:
    if placed.precedence < find_highest_tombstone_precedence(db, placed.stream, event.source_id):
        return
    patterns = {"include": encode_as_json(event.include), "exclude": encode_as_json(event.exclude)}
    of_event = ("source_id", "kind", "root")
    row = placed.make_row(*of_event, **patterns, created_at=placed.ts, writer=placed.segment.writer)
    upsert_row(db, "sources", ("source_id",), row, newer_by="precedence")
    _move_passages(db, event.source_id, sizes)


def _remove_source(db: Connection, placed: PositionedEvent, event: SourceRemoved, sizes: ChunkSizes) -> None:
    placed.write_tombstone(db, event.source_id)
    delete_rows(db, "sources", "source_id = ? AND precedence < ?", (event.source_id, placed.precedence))
    _remove_documents(db, placed, "source_id = ?", event.source_id)
    # Documents indexed after the removal stay, even without a registered source.
    _move_passages(db, event.source_id, sizes)


def _index_document(
    db: Connection, placed: PositionedEvent, event: DocumentIndexed, sizes: ChunkSizes
) -> None:
    thing = make_document_key(event.source_id, event.file)
    before = db.execute("SELECT precedence FROM documents WHERE document_id = ?", (thing,)).fetchone()
    if placed.precedence < max(
        find_highest_tombstone_precedence(db, placed.stream, event.source_id, thing), *(before or ("",))
    ):
        return
    if before:
        _remove_passages(db, thing)
    row = placed.make_row(
        *("source_id", "file", "filetype", "size", "content"),
        document_id=thing,
        kind=_source_kind(db, event.source_id),
        mtime=None if event.mtime is None else str(event.mtime),
        version=event.version or sha256(event.content.encode()).hexdigest(),
        dated_at=find_document_date(event, placed.ts),
        indexed_at=placed.ts,
    )
    upsert_row(db, "documents", ("document_id",), row)
    _add_passages(db, thing, sizes)


def _move_passages(db: Connection, source_id: str, sizes: ChunkSizes) -> None:
    """Move the passages of a source's documents to the tables for its kind."""
    kind = _source_kind(db, source_id)
    moved = db.execute(
        "SELECT document_id FROM documents WHERE source_id = ? AND kind <> ? ORDER BY document_id",
        (source_id, kind),
    ).fetchall()
    for (thing,) in moved:
        _remove_passages(db, thing)
        update_rows(db, "documents", "kind", "document_id = ?", [(kind, thing)])
        _add_passages(db, thing, sizes)


def _source_kind(db: Connection, source_id: str) -> str:
    row = db.execute("SELECT kind FROM sources WHERE source_id = ?", (source_id,)).fetchone()
    return str(row[0]) if row else "docs"


def _remove_documents(db: Connection, placed: PositionedEvent, where: str, value: str) -> None:
    """Remove the documents that match `where` and are older than `placed`."""
    older = f"{where} AND precedence < ?"
    gone = db.execute(f"SELECT document_id FROM documents WHERE {older}", (value, placed.precedence))
    for (thing,) in gone.fetchall():
        _remove_passages(db, thing)
        delete_rows(db, "documents", "document_id = ?", (thing,))


def _remove_passages(db: Connection, thing: str) -> None:
    for shelf in index.SHELVES:
        index.remove_passages(db, shelf, "document_id = ?", (thing,))


def _add_passages(db: Connection, thing: str, sizes: ChunkSizes) -> None:
    """Split a document into passages; if its source is of kind `memory`, these are searched as memories."""
    columns = "stream, file, content, dated_at, version, filetype, kind"
    row = db.execute(f"SELECT {columns} FROM documents WHERE document_id = ?", (thing,))
    stream, file, content, ts, version, filetype, kind = fetch_required_row(row)
    whole = SourceText(stream, thing, file, content, ts, ts, label=None if kind == "memory" else file)
    if kind == "memory":
        index.add_passages(db, "document_id", [whole], sizes)
    else:
        index.add_document(db, whole, file, version, filetype, sizes)


HANDLERS: Handlers = {fold_documents: (SourceRegistered, SourceRemoved, DocumentIndexed, DocumentRemoved)}
