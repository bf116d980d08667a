"""The projection id: which read models this memlog would make anew."""

from memlog.eventlog import decode, upcast
from memlog.eventlog.hashing import short_sha256
from memlog.projector import handlers, limits, schema
from memlog.projector.passages import chunking, vectors
from memlog.projector.passages.chunking import ChunkSizes
from memlog.projector.sqlite import Connection
from memlog.projector.text import analyzer, stemming
from memlog.projector.text.language_files import TEXT_SHA256
from memlog.projector.text.tokens import VOCABULARY_SHA256


def projection_id(sizes: ChunkSizes) -> str:
    """A hash over all that shapes rows beside the log, 16 hex digits. Another one is another read model."""
    shapes = (
        *schema.statements(),
        f"line {decode.VERSION}, upcast {upcast.VERSION}, handlers {handlers.VERSION}",
        f"analyzer {analyzer.VERSION}, snowball {stemming.snowball_version()}",
        f"chunker {chunking.VERSION}, {sizes.window} tokens, {sizes.overlap} overlap",
        f"plain beyond {limits.LONGEST_STRUCTURED} characters, names beyond {limits.LONGEST_NAMES}",
        f"vocabulary {VOCABULARY_SHA256}, languages {TEXT_SHA256}",
        f"vectors {vectors.VERSION}",
    )
    return short_sha256("\n".join(shapes).encode()).hexdigest()[:16]


def store_projection_id(db: Connection, sizes: ChunkSizes) -> None:
    """Record which projection id a new read model is made with."""
    db.execute("INSERT INTO meta VALUES ('projection_id', ?)", (projection_id(sizes),))


def stored_projection_id(db: Connection) -> str | None:
    """The projection id that a read model was made with."""
    row = db.execute("SELECT value FROM meta WHERE name = 'projection_id'").fetchone()
    return row[0] if row else None
