"""Document sources and their documents, as lists and as folder trees."""

from collections.abc import Iterable

import msgspec

from memlog.eventlog.fields import MAX_LEVELS, SourceKind
from memlog.projector.sqlite import Connection
from memlog.query.event_index import make_struct_of_row


class Source(msgspec.Struct, kw_only=True):
    """A folder of documents.

    kind: `memory` if its files are searched as memories, otherwise `docs`.
    root: the absolute path; None if only documents mention the source.
    include, exclude: glob patterns below the root.
    bytes: the size of all its documents. indexed_at: when the newest was indexed; None without documents.
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
    """A registered source; see `Source`.

    writer: the copy of the store that registered it; "" if an older memlog did.
    """

    source_id: str
    kind: SourceKind
    root: str
    include: list[str]
    exclude: list[str]
    writer: str


class Document(msgspec.Struct, kw_only=True):
    """An indexed document.

    id: `source_id/file`. file: its path below the source's root.
    size: in bytes. version: the sha256 of its bytes, in hex.
    dated_at: from its front matter or its file.
    """

    id: str
    source_id: str
    file: str
    filetype: str | None
    size: int | None
    passages: int
    version: str
    mtime: str | None
    dated_at: str
    indexed_at: str


class DocumentText(Document, kw_only=True):
    """A document with its original text."""

    content: str


class DocumentFolder(msgspec.Struct, kw_only=True):
    """A folder in a source's tree. The top folder has the source's name.

    documents, passages, bytes: totals of everything below. folders, files: its direct children, by name.
    """

    name: str
    documents: int = 0
    passages: int = 0
    bytes: int = 0
    folders: list["DocumentFolder"] = []
    files: list["DocumentFile"] = []


class DocumentFile(msgspec.Struct, kw_only=True):
    """A document as listed in its folder. bytes: None if unknown."""

    name: str
    filetype: str | None
    passages: int
    bytes: int | None


FILE_PATH = "rtrim(s.root, '/') || '/' || d.file"
"""The SQL expression for the path of document `d` in source `s`."""

_PASSAGES = (
    "(SELECT count(*) FROM doc_chunks c WHERE c.document_id = d.document_id)"
    " + (SELECT count(*) FROM memory_chunks c WHERE c.document_id = d.document_id)"
)

_COLUMNS = f"document_id, source_id, file, filetype, size, {_PASSAGES}, version, mtime, dated_at, indexed_at"


def list_sources(db: Connection, source_id: str | None = None) -> list[Source]:
    """Return all sources, even if only documents mention them, sorted by name, or just `source_id`."""
    where = "" if source_id is None else "WHERE source_id = :source_id"
    rows = db.execute(
        "SELECT n.source_id, coalesce(s.kind, 'docs'), s.root,"
        " coalesce(s.include, '[]'), coalesce(s.exclude, '[]'),"
        f" count(d.document_id), coalesce(sum({_PASSAGES}), 0), coalesce(sum(d.size), 0), max(d.indexed_at)"
        f" FROM (SELECT source_id FROM sources {where} UNION SELECT source_id FROM documents {where}) n"
        " LEFT JOIN sources s USING (source_id) LEFT JOIN documents d USING (source_id)"
        " GROUP BY n.source_id ORDER BY n.source_id",
        {"source_id": source_id},
    )
    return [make_struct_of_row(Source, row) for row in rows]


def list_registered_sources(db: Connection, source_id: str | None = None) -> list[Registered]:
    """Return all registered sources, sorted by name, or just `source_id`."""
    columns = ", ".join(Registered.__struct_fields__)
    where = "" if source_id is None else "AND source_id = :source_id"
    rows = db.execute(
        f"SELECT {columns} FROM sources WHERE root IS NOT NULL {where} ORDER BY source_id",
        {"source_id": source_id},
    )
    return [make_struct_of_row(Registered, row) for row in rows]


def find_source(db: Connection, source_id: str) -> Source | None:
    """Return the source `source_id`, or None."""
    return next(iter(list_sources(db, source_id)), None)


def documents_of_source(db: Connection, source_id: str) -> list[Document]:
    """Return the documents of a source, ordered by file."""
    rows = db.execute(f"SELECT {_COLUMNS} FROM documents d WHERE source_id = ? ORDER BY file", (source_id,))
    return [make_struct_of_row(Document, row) for row in rows]


def document_with_text(db: Connection, document_id: str) -> DocumentText | None:
    """Return the document `source_id/file` with its text, or None."""
    row = db.execute(
        f"SELECT {_COLUMNS}, content FROM documents d WHERE document_id = ?", (document_id,)
    ).fetchone()
    return None if row is None else make_struct_of_row(DocumentText, row)


def hashes_by_file(db: Connection, source_id: str) -> dict[str, str]:
    """Return the SHA-256 of each document in a source, keyed by file."""
    return dict(
        db.execute("SELECT file, version FROM documents WHERE source_id = ?", (source_id,)).fetchall()
    )


def count_shared_files(db: Connection, source_id: str) -> dict[str, int]:
    """Return, for each other source that shares files with this one, how many it shares."""
    rows = db.execute(
        f"WITH own AS (SELECT {FILE_PATH} AS path, d.version, s.writer"
        " FROM documents d JOIN sources s USING (source_id) WHERE source_id = :source_id),"
        " others AS (SELECT source_id, writer, rtrim(root, '/') || '/' AS folder"
        " FROM sources WHERE source_id <> :source_id)"
        " SELECT o.source_id, count(*) FROM own JOIN others o ON substr(path, 1, length(folder)) = folder"
        " JOIN documents e ON e.document_id = o.source_id || '/' || substr(path, length(folder) + 1)"
        " WHERE own.writer = o.writer OR own.version = e.version GROUP BY o.source_id ORDER BY o.source_id",
        {"source_id": source_id},
    )
    return dict(rows.fetchall())


def make_tree_of_folders(source_id: str, documents: Iterable[Document]) -> DocumentFolder:
    """Arrange a source's documents into a tree of folders."""
    top = DocumentFolder(name=source_id)
    folders: dict[tuple[str, ...], DocumentFolder] = {(): top}
    for document in sorted(documents, key=lambda each: each.file.split("/")):
        # An older memlog accepted paths of any depth: deeper folders become part of the name.
        *path, name = document.file.removeprefix("/").split("/", MAX_LEVELS - 1)
        folder = top
        for depth in range(len(path) + 1):
            below = tuple(path[:depth])
            if below not in folders:
                folders[below] = DocumentFolder(name=below[-1])
                folder.folders.append(folders[below])
            folder = folders[below]
            folder.documents += 1
            folder.passages += document.passages
            folder.bytes += document.size or 0
        folder.files.append(
            DocumentFile(
                name=name, filetype=document.filetype, passages=document.passages, bytes=document.size
            )
        )
    return top
