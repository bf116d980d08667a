"""Sources and documents: of each the greatest event that added or removed it decides; the removal of a source
removes the documents that were indexed before it."""

from collections.abc import Sequence
from hashlib import sha256

from memlog.eventlog.events import DocumentIndexed, DocumentRemoved, SourceRegistered, SourceRemoved
from memlog.projector.handlers.accepted import Placed, as_json, buried, bury
from memlog.projector.passages import index
from memlog.projector.passages.chunking import ChunkSizes
from memlog.projector.passages.index import Whole
from memlog.projector.rows import Row, delete, update, upsert
from memlog.projector.sqlite import Connection


def fold(db: Connection, events: Sequence[Placed], sizes: ChunkSizes) -> None:
    """Register, index and remove."""
    for placed in events:
        match placed.event:
            case SourceRegistered():
                _register(db, placed, placed.event, sizes)
            case SourceRemoved():
                _remove_source(db, placed, placed.event, sizes)
            case DocumentIndexed():
                _index(db, placed, placed.event, sizes)
            case DocumentRemoved():
                thing = document_id(placed.event.source_id, placed.event.file)
                bury(db, thing, placed)
                _remove_documents(db, placed, "document_id = ?", thing)


def document_id(source_id: str, file: str) -> str:
    """What a document is known by; a source_id has no `/`."""
    return f"{source_id}/{file}"


def _register(db: Connection, placed: Placed, said: SourceRegistered, sizes: ChunkSizes) -> None:
    if placed.precedence < buried(db, placed.stream, said.source_id):
        return
    row = {
        "source_id": said.source_id,
        "stream": placed.stream,
        "event_id": said.id,
        "kind": said.kind,
        "root": said.root,
        "include": as_json(said.include),
        "exclude": as_json(said.exclude),
        "created_at": placed.ts,
        "writer": placed.segment.writer,
        "precedence": placed.precedence,
    }
    upsert(db, "sources", ("source_id",), row, newer_by="precedence")
    _put_on_shelf(db, said.source_id, sizes)


def _remove_source(db: Connection, placed: Placed, said: SourceRemoved, sizes: ChunkSizes) -> None:
    bury(db, said.source_id, placed)
    delete(db, "sources", "source_id = ? AND precedence < ?", (said.source_id, placed.precedence))
    _remove_documents(db, placed, "source_id = ?", said.source_id)
    # What was indexed after a late removal stays, of a source that is not registered.
    _put_on_shelf(db, said.source_id, sizes)


def _index(db: Connection, placed: Placed, said: DocumentIndexed, sizes: ChunkSizes) -> None:
    thing = document_id(said.source_id, said.file)
    standing = db.execute("SELECT precedence FROM documents WHERE document_id = ?", (thing,)).fetchone()
    if placed.precedence < max(buried(db, placed.stream, said.source_id, thing), *(standing or ("",))):
        return
    if standing:
        _remove_passages(db, "document_id = ?", thing)
    row = {
        "document_id": thing,
        "stream": placed.stream,
        "event_id": said.id,
        "source_id": said.source_id,
        "file": said.file,
        "kind": _kind(db, said.source_id),
        "filetype": said.filetype,
        "mtime": None if said.mtime is None else str(said.mtime),
        "size": said.size,
        "version": said.version or sha256(said.content.encode()).hexdigest(),
        "content": said.content,
        "indexed_at": placed.ts,
        "precedence": placed.precedence,
    }
    upsert(db, "documents", ("document_id",), row)
    _add_passages(db, row, sizes)


def _put_on_shelf(db: Connection, source_id: str, sizes: ChunkSizes) -> None:
    """Move the passages of a source's documents to where its kind has them."""
    kind = _kind(db, source_id)
    columns = ("document_id", "stream", "file", "filetype", "version", "content", "indexed_at")
    moved = db.execute(
        f"SELECT {', '.join(columns)} FROM documents WHERE source_id = ? AND kind <> ? ORDER BY document_id",
        (source_id, kind),
    ).fetchall()
    for values in moved:
        row = dict(zip(columns, values, strict=True)) | {"kind": kind}
        _remove_passages(db, "document_id = ?", row["document_id"])
        update(db, "documents", "kind", "document_id = ?", [(kind, row["document_id"])])
        _add_passages(db, row, sizes)


def _kind(db: Connection, source_id: str) -> str:
    row = db.execute("SELECT kind FROM sources WHERE source_id = ?", (source_id,)).fetchone()
    return str(row[0]) if row else "docs"


def _remove_documents(db: Connection, placed: Placed, where: str, value: str) -> None:
    """Those of them that are older than `placed`."""
    older = f"{where} AND precedence < ?"
    gone = db.execute(
        f"SELECT document_id FROM documents WHERE {older}", (value, placed.precedence)
    ).fetchall()
    for (thing,) in gone:
        _remove_passages(db, "document_id = ?", thing)
        delete(db, "documents", "document_id = ?", (thing,))


def _remove_passages(db: Connection, where: str, value: str) -> None:
    for shelf in index.SHELVES:
        index.remove(db, shelf, where, (value,))


def _add_passages(db: Connection, row: Row, sizes: ChunkSizes) -> None:
    """Of a source of kind `memory` a file is searched as a memory; its name is then its source."""
    is_memory = row["kind"] == "memory"
    whole = Whole(
        stream=row["stream"],
        id=row["document_id"],
        source=row["file"],
        chat_id=None,
        label=None if is_memory else row["file"],
        created_at=row["indexed_at"],
        updated_at=row["indexed_at"],
        content=row["content"],
    )
    if is_memory:
        index.add(db, "document_id", [whole], sizes)
    else:
        index.add_document(db, whole, row["file"], row["version"], row["filetype"], sizes)
