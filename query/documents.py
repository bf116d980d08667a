"""Sources, and the documents that stand in each."""

import json

import msgspec

from memlog.eventlog.events import SourceKind
from memlog.projector.sqlite import Connection


class Source(msgspec.Struct, kw_only=True):
    """A folder of documents.

    kind: `memory` where its files are searched as memories, else `docs`.
    root: absolute; None where nobody has registered the source, and it has documents all the same.
    include, exclude: glob patterns below the root.
    bytes: of its documents. indexed_at: of the newest; None where it has none.
    """

    source_id: str
    kind: SourceKind
    root: str | None
    include: list[str]
    exclude: list[str]
    documents: int
    passages: int
    bytes: int
    indexed_at: str | None


class Registered(msgspec.Struct, kw_only=True):
    """A source as it is registered; see `Source`.

    writer: of the copy of the store that registered it; "" where an older memlog did.
    """

    source_id: str
    kind: SourceKind
    root: str
    include: list[str]
    exclude: list[str]
    writer: str


class Document(msgspec.Struct, kw_only=True):
    """A document that stands.

    id: `source_id/file`; file: its path below the source's root.
    size: in bytes. version: sha256 of its bytes, in hex.
    """

    id: str
    source_id: str
    file: str
    filetype: str | None
    size: int | None
    passages: int
    version: str
    mtime: str | None
    indexed_at: str


class DocumentText(Document, kw_only=True):
    """A document with its text, as it was read."""

    content: str


_PASSAGES = (
    "(SELECT count(*) FROM doc_chunks c WHERE c.document_id = d.document_id)"
    " + (SELECT count(*) FROM memory_chunks c WHERE c.document_id = d.document_id)"
)

_COLUMNS = f"document_id, source_id, file, filetype, size, {_PASSAGES}, version, mtime, indexed_at"


def sources(db: Connection, source_id: str | None = None) -> list[Source]:
    """All sources, or the one of this name, by name: those that are registered, and those that only documents
    name."""
    where = "" if source_id is None else "WHERE source_id = :source_id"
    rows = db.execute(
        "SELECT n.source_id, coalesce(s.kind, 'docs'), s.root, s.include, s.exclude,"
        f" count(d.document_id), coalesce(sum({_PASSAGES}), 0), coalesce(sum(d.size), 0), max(d.indexed_at)"
        f" FROM (SELECT source_id FROM sources {where} UNION SELECT source_id FROM documents {where}) n"
        " LEFT JOIN sources s USING (source_id) LEFT JOIN documents d USING (source_id)"
        " GROUP BY n.source_id ORDER BY n.source_id",
        {} if source_id is None else {"source_id": source_id},
    )
    return [_source(row) for row in rows.fetchall()]


def registered(db: Connection, source_id: str | None = None) -> list[Registered]:
    """The sources that are registered with a folder, or the one of this name, by name."""
    columns = ", ".join(Registered.__struct_fields__)
    where = "" if source_id is None else "AND source_id = :source_id"
    rows = db.execute(
        f"SELECT {columns} FROM sources WHERE root IS NOT NULL {where} ORDER BY source_id",
        {} if source_id is None else {"source_id": source_id},
    )
    return [
        Registered(
            source_id=source_id,
            kind=kind,
            root=root,
            include=json.loads(include),
            exclude=json.loads(exclude),
            writer=writer,
        )
        for source_id, kind, root, include, exclude, writer in rows.fetchall()
    ]


def source(db: Connection, source_id: str) -> Source | None:
    """The source of this name; None where there is none."""
    return next(iter(sources(db, source_id)), None)


def documents(db: Connection, source_id: str) -> list[Document]:
    """The documents of a source, by file."""
    rows = db.execute(
        f"SELECT {_COLUMNS} FROM documents d WHERE source_id = ? ORDER BY file",
        (source_id,),
    )
    return [_document(row) for row in rows.fetchall()]


def text(db: Connection, document_id: str) -> DocumentText | None:
    """The document `source_id/file`; None where none of this name stands."""
    row = db.execute(
        f"SELECT {_COLUMNS}, content FROM documents d WHERE document_id = ?",
        (document_id,),
    ).fetchone()
    names = DocumentText.__struct_fields__
    return None if row is None else msgspec.convert(dict(zip(names, row, strict=True)), DocumentText)


def versions(db: Connection, source_id: str) -> dict[str, str]:
    """Of each document of a source, by file, the sha256 of its bytes."""
    return dict(
        db.execute("SELECT file, version FROM documents WHERE source_id = ?", (source_id,)).fetchall()
    )


def _source(row: tuple[object, ...]) -> Source:
    named = dict(zip(Source.__struct_fields__, row, strict=True))
    patterns = {name: json.loads(str(named[name] or "[]")) for name in ("include", "exclude")}
    return msgspec.convert(named | patterns, Source)


def _document(row: tuple[object, ...]) -> Document:
    return msgspec.convert(dict(zip(Document.__struct_fields__, row, strict=True)), Document)
