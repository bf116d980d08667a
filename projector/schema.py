"""The schema, its making, and the projection id."""

from functools import cache
from hashlib import sha256

from memlog.eventlog import line, upcast
from memlog.projector import analysis, budget, chunking, handlers, languages
from memlog.projector.chunking import ChunkSizes
from memlog.projector.shipped import shipped
from memlog.projector.sqlite import Connection
from memlog.projector.text.language_files import TEXT_SHA256
from memlog.projector.tokens import VOCABULARY_SHA256


@cache
def schema() -> str:
    """The SQL text of schema.sql."""
    return shipped("schema.sql")


def projection_id(sizes: ChunkSizes) -> str:
    """A hash over all that shapes rows beside the log, 16 hex digits. Another one is another read model."""
    shapes = (
        schema(),
        f"line {line.VERSION}, upcast {upcast.VERSION}, handlers {handlers.VERSION}",
        f"analyzer {analysis.VERSION}, snowball {languages.snowball_version()}",
        f"chunker {chunking.VERSION}, {sizes.window} tokens, {sizes.overlap} overlap",
        f"plain beyond {budget.LONGEST_STRUCTURED} characters, names beyond {budget.LONGEST_NAMES}",
        f"vocabulary {VOCABULARY_SHA256}, languages {TEXT_SHA256}",
    )
    return sha256("\n".join(shapes).encode()).hexdigest()[:16]


def create_tables(db: Connection, sizes: ChunkSizes) -> None:
    """Make all tables in an empty file, with the indexes that handlers need and no others."""
    for statement in _statements():
        if not _can_wait(statement):
            db.execute(statement)
    db.execute("INSERT INTO meta VALUES ('projection_id', ?)", (projection_id(sizes),))


def create_indexes(db: Connection) -> None:
    """Make the indexes, after the rows: cheaper than keeping them while millions arrive."""
    for statement in _statements():
        if _can_wait(statement):
            db.execute(statement)


def stored_projection_id(db: Connection) -> str | None:
    """The projection id that a read model was made with."""
    row = db.execute("SELECT value FROM meta WHERE name = 'projection_id'").fetchone()
    return row[0] if row else None


def _statements() -> list[str]:
    code = "\n".join(row.partition("--")[0] for row in schema().splitlines())
    return [statement.strip() for statement in code.split(";") if statement.strip()]


_OF_HANDLERS = (
    "memory_chunks_by_memory",
    "memory_chunks_by_fact",
    "memory_chunks_by_document",
    "doc_chunks_by_document",
    "documents_by_source",
)
"""Indexes by which handlers find what is to be changed. Without them each change of a memory would read every
passage: 8,000 changes behind 100,000 messages were measured to take four minutes."""


def _can_wait(statement: str) -> bool:
    """Whether it makes an index for questions alone."""
    is_index = statement.startswith(("CREATE INDEX", "CREATE UNIQUE INDEX"))
    return is_index and statement.split("INDEX ")[1].split()[0] not in _OF_HANDLERS
