"""The surroundings of a hit: the messages beside a message, the passages beside a document's."""

import msgspec

from memlog.projector.sqlite import Connection
from memlog.query.window import WindowMessage, window_around


class Surroundings(msgspec.Struct, kw_only=True):
    """A message or a passage of a document with its neighbours.

    messages: a message among its neighbours of the same session, oldest first; else empty.
    content: the document's text from the first neighbour of a passage to the last; else None.
    start_line, end_line: of this text in the file, from 1; else None.
    """

    messages: list[WindowMessage] = []
    content: str | None = None
    start_line: int | None = None
    end_line: int | None = None


MAX_NEIGHBOURS = 100
"""On either side. More is the conversation, or the file."""


def around_event(db: Connection, key: tuple[str, str], neighbours: int) -> Surroundings | None:
    """The surroundings of the event (stream, id); None if it is no message."""
    messages = window_around(db, key, neighbours)
    return Surroundings(messages=messages) if messages else None


def around_passage(db: Connection, chunk_no: int, neighbours: int) -> Surroundings:
    """The text around a passage of a document, from its first neighbour to the last."""
    # Cut from the document itself: passages overlap, and repeat the heads of what they are parts of.
    # Not by substr(), which ends at a NUL.
    content, start, end, start_line, end_line = db.execute(
        "SELECT d.content, min(c.start_char), max(c.end_char), min(c.start_line), max(c.end_line)"
        " FROM doc_chunks f JOIN doc_chunks c USING (document_id) JOIN documents d USING (document_id)"
        " WHERE f.chunk_no = ?1 AND c.chunk_index BETWEEN f.chunk_index - ?2 AND f.chunk_index + ?2",
        (chunk_no, neighbours),
    ).fetchone()
    return Surroundings(content=content[start:end], start_line=start_line, end_line=end_line)
