"""The passages for embedding and search, with their full text, vectors and embedding queue."""

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Literal

import msgspec

from memlog.eventlog.secrets.outgoing import text_has_key
from memlog.projector.limits import are_short_names
from memlog.projector.passages import chunking, fulltext, vectors
from memlog.projector.passages.chunking import Chunk, ChunkSizes
from memlog.projector.passages.formats import MARKDOWN, Form, choose_form_for_filetype
from memlog.projector.passages.vectors import Pending, VectorSet
from memlog.projector.sqlite import Connection, count_rows, insert_rows, to_json_list
from memlog.projector.text.analyzer import format_passage_text
from memlog.projector.text.tokens import has_surely_few_tokens


class PassageTables(msgspec.Struct, frozen=True):
    """The tables for one kind of passage.

    chunks: one row per passage. vectors: the vec0 table. queue: the passages without a vector yet.
    has_fulltext: the condition for rows with an entry of their own in `fulltext`.
    embeds_label: whether passages are embedded with their labels. File names are left out, so that renamed
        files keep their vectors.
    """

    chunks: str
    fulltext: str
    has_fulltext: str
    vectors: str
    queue: str
    embeds_label: bool


MEMORY = PassageTables(
    chunks="memory_chunks",
    fulltext="memory_chunks_fts",
    # Whole messages have their own full text.
    has_fulltext="message_id IS NULL",
    vectors="vec_memory",
    queue="memory_chunks_queue",
    embeds_label=True,
)
"""Passages of messages, memories, summaries, facts, daily events, and documents of kind `memory`."""

DOCS = PassageTables(
    chunks="doc_chunks",
    fulltext="doc_chunks_fts",
    has_fulltext="1",
    vectors="vec_docs",
    queue="doc_chunks_queue",
    embeds_label=False,
)
"""Passages of documents of kind `docs`."""

SHELVES = (MEMORY, DOCS)

_MULTILINGUAL = tuple(
    msgspec.structs.replace(shelf, vectors=table, queue=queue)
    for shelf, table, queue in zip(
        SHELVES, vectors.MULTILINGUAL.tables, vectors.MULTILINGUAL.queues, strict=True
    )
)


def passage_tables(of: VectorSet) -> tuple[PassageTables, ...]:
    """Return the passage tables for a set of vectors."""
    return _MULTILINGUAL if of is vectors.MULTILINGUAL else SHELVES


def list_vector_sets_in_use(db: Connection) -> list[VectorSet]:
    """Return the sets of vectors in use; the first one always is."""
    return [
        vectors.FIRST,
        *(of for of in vectors.SETS[1:] if vectors.read_model_of_vectors(db, of) is not None),
    ]


_PASSAGE = "stream, label, created_at, updated_at, chunk_index, section, content, start_char, end_char"


class SourceText(msgspec.Struct, frozen=True, gc=False):
    """A text to split into passages.

    id: the owner's id in its table. is_plain: whether to split it as plain text, however short it is.
    """

    stream: str
    id: str
    source: str
    content: str
    created_at: str
    updated_at: str
    chat_id: str | None = None
    label: str | None = None
    is_plain: bool = False


def add_passages(
    db: Connection,
    owner: Literal["message_id", "memory_id", "summary_id", "fact_id", "daily_event_id", "document_id"],
    wholes: Iterable[SourceText],
    sizes: ChunkSizes,
) -> None:
    """Split texts into passages, store them in `memory_chunks`, and queue them for embedding."""
    rows = [
        (*_passage_row(whole, index, chunk), whole.source, whole.chat_id or "")
        for whole in wholes
        for index, chunk in enumerate(_split_text(whole, sizes))
    ]
    _insert_passages(db, MEMORY, f"{owner}, {_PASSAGE}, source, chat_id", rows)


def add_document(
    db: Connection, document: SourceText, file: str, version: str, filetype: str | None, sizes: ChunkSizes
) -> None:
    """Store a document's passages in `doc_chunks`, with line (for a PDF, page) numbers from 1."""
    rows = []
    content = document.content
    form = choose_form_for_filetype(filetype)
    line, counted = 1, 0
    for index, chunk in enumerate(_split_text(document, sizes, form, names=(file, version))):
        # Chunks overlap, but their starts ascend.
        line += content.count(form.line_end, counted, chunk.start)
        counted = chunk.start
        last = line + content.count(form.line_end, chunk.start, max(chunk.start, chunk.end - 1))
        rows.append((*_passage_row(document, index, chunk), file, version, line, last))
    _insert_passages(db, DOCS, f"document_id, {_PASSAGE}, file, version, start_line, end_line", rows)


def _passage_row(whole: SourceText, index: int, chunk: Chunk) -> tuple[Any, ...]:
    owner = (whole.id, whole.stream, whole.label or "", whole.created_at, whole.updated_at)
    return (*owner, index, chunk.section or "", chunk.content, chunk.start, chunk.end)


def _split_text(
    whole: SourceText, sizes: ChunkSizes, form: Form = MARKDOWN, names: Sequence[str] = ()
) -> list[Chunk]:
    """Split a text into passages; a single one if its names are too long to repeat."""
    content = whole.content
    if has_surely_few_tokens(content, sizes.window) and not whole.is_plain:
        return chunking.as_single_chunk(content, form)  # most texts: one passage, whatever their names
    if not are_short_names(whole.id, whole.source, whole.chat_id, whole.label, *names):
        return [Chunk(None, 0, len(content), content)] if content.strip() else []
    if whole.is_plain:
        return list(chunking.split_plainly(content, sizes))
    return chunking.split_into_chunks(content, sizes, form)


def _insert_passages(db: Connection, shelf: PassageTables, columns: str, rows: list[tuple[Any, ...]]) -> None:
    if not rows:
        return
    first = _reserve_numbers(db, shelf, len(rows))
    numbers = range(first, first + len(rows))
    numbered = ((number, *row) for number, row in zip(numbers, rows, strict=True))
    insert_rows(
        db, shelf.chunks, f"chunk_no, {columns}", numbered, empty_is_null=("chat_id", "label", "section")
    )
    for of in list_vector_sets_in_use(db):
        queue = passage_tables(of)[SHELVES.index(shelf)].queue
        insert_rows(db, queue, "chunk_no", ((number,) for number in numbers))
    if "message_id" not in columns:  # see `PassageTables.has_fulltext`: most passages need no query
        fulltext.add_texts_to_index(
            db, shelf.fulltext, _read_texts_to_embed(db, shelf, "chunk_no >= ?", (first,))
        )


def _reserve_numbers(db: Connection, shelf: PassageTables, count: int) -> int:
    """Reserve `count` numbers that no passage has ever had, and return the first.

    Otherwise, a vector computed while rows change could be stored with another passage. (AUTOINCREMENT would
    take a third of the time of `insert_rows`.)
    """
    name = f"last_of_{shelf.chunks}"
    row = db.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
    last = int(row[0]) if row else 0
    db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, str(last + count)))
    return last + 1


def remove_passages(db: Connection, shelf: PassageTables, where: str, values: tuple[Any, ...]) -> None:
    """Remove the passages that match `where`, with their vectors, before their owners' rows change."""
    fulltext.remove_texts_from_index(db, shelf.fulltext, _read_texts_to_embed(db, shelf, where, values))
    chunk_numbers = f"SELECT chunk_no FROM {shelf.chunks} WHERE {where}"
    for of in list_vector_sets_in_use(db):
        each = passage_tables(of)[SHELVES.index(shelf)]
        if not vectors.remove_vectors(db, of, each.vectors, chunk_numbers, values) and of is vectors.FIRST:
            queue_all_passages(db)
        db.execute(f"DELETE FROM {each.queue} WHERE chunk_no IN ({chunk_numbers})", values)
    db.execute(f"DELETE FROM {shelf.chunks} WHERE {where}", values)


def queue_all_passages(db: Connection, of: VectorSet = vectors.FIRST) -> None:
    """Queue all passages for embedding again."""
    for shelf in passage_tables(of):
        db.execute(f"INSERT OR IGNORE INTO {shelf.queue} SELECT chunk_no FROM {shelf.chunks}")


def read_waiting_passages(
    db: Connection, size: int, of: VectorSet = vectors.FIRST, *, newest_first: bool = False
) -> Iterator[tuple[PassageTables, list[Pending]]]:
    """Yield the passages in the embedding queue by ascending number, up to `size` at a time.

    newest_first: use descending order, and ignore passages that are added meanwhile.
    """
    sign, order, last = ("<", "DESC", 2**63 - 1) if newest_first else (">", "ASC", 0)
    for shelf in passage_tables(of):
        source = f"{shelf.queue} JOIN {shelf.chunks} c USING (chunk_no)"
        after = last
        while found := _read_pending_passages(
            db, shelf, source, f"chunk_no {sign} ? ORDER BY chunk_no {order}", after, size
        ):
            yield shelf, found
            after = found[-1].chunk_no


def read_newest_waiting_passages(
    db: Connection, size: int, of: VectorSet = vectors.FIRST
) -> Iterator[tuple[PassageTables, list[Pending]]]:
    """Yield the passages in the embedding queue, up to `size` at a time, newest texts first.

    Passages that are queued meanwhile come next: a message does not wait for years of imported ones.
    """
    for shelf in passage_tables(of):
        source = f"{shelf.queue} JOIN {shelf.chunks} c USING (chunk_no)"
        rows = db.execute(f"SELECT chunk_no FROM {source} ORDER BY updated_at DESC, chunk_no DESC")
        waiting = deque(number for (number,) in rows)
        last = max(waiting, default=0)
        while waiting:
            added = db.execute(f"SELECT chunk_no FROM {shelf.queue} WHERE chunk_no > ? ORDER BY 1", (last,))
            for (last,) in added.fetchall():
                waiting.appendleft(last)
            numbers = [waiting.popleft() for _ in range(min(size, len(waiting)))]
            of_part = "chunk_no IN (SELECT value FROM json_each(?)) ORDER BY updated_at DESC, chunk_no DESC"
            if found := _read_pending_passages(db, shelf, source, of_part, to_json_list(numbers), size):
                yield shelf, found


def read_passages_after(db: Connection, shelf: PassageTables, number: int, size: int) -> list[Pending]:
    """Return up to `size` passages with numbers above `number`, with or without a vector."""
    return _read_pending_passages(
        db, shelf, f"{shelf.chunks} c", "chunk_no > ? ORDER BY chunk_no", number, size
    )


def read_passages_without_vector(db: Connection, shelf: PassageTables) -> list[Pending]:
    """Return the passages that have no vector and are not queued for one."""
    is_left = (
        f"chunk_no NOT IN (SELECT rowid FROM {shelf.vectors}) AND chunk_no NOT IN (SELECT chunk_no FROM"
        f" {shelf.queue}) AND chunk_no > ? ORDER BY chunk_no"
    )
    return _read_pending_passages(db, shelf, f"{shelf.chunks} c", is_left, 0, -1)


def format_name_of_owner(db: Connection, shelf: PassageTables, number: int) -> str:
    """Return the name of a passage's source text, such as `message 01a2160e-…`."""
    owners = _OWNERS[shelf.chunks]
    sql = f"SELECT {', '.join(owners)} FROM {shelf.chunks} WHERE chunk_no = ?"
    row = db.execute(sql, (number,)).fetchone()
    name, value = next((name, value) for name, value in zip(owners, row, strict=True) if value is not None)
    return f"{name.removesuffix('_id').replace('_', ' ')} {value}"


def requeue_passage(db: Connection, shelf: PassageTables, passage: Pending) -> None:
    """Queue a passage for embedding again, unless it has been removed."""
    sql = f"INSERT OR IGNORE INTO {shelf.queue} SELECT chunk_no FROM {shelf.chunks} WHERE chunk_no = ?"
    db.execute(sql, (passage.chunk_no,))


def _read_pending_passages(
    db: Connection, shelf: PassageTables, source: str, where: str, value: int | str, size: int
) -> list[Pending]:
    of_memory = "(SELECT category FROM memories m WHERE m.memory_id = c.memory_id)"
    columns = f"chunk_no, label, content, {of_memory if shelf.chunks == MEMORY.chunks else 'NULL'}"
    rows = db.execute(f"SELECT {columns} FROM {source} WHERE {where} LIMIT ?", (value, size))
    return [
        Pending(chunk_no, _embedded_text(shelf, label, content), category)
        for chunk_no, label, content, category in rows.fetchall()
    ]


_OWNERS = {
    "memory_chunks": ("memory_id", "message_id", "summary_id", "fact_id", "daily_event_id", "document_id"),
    "doc_chunks": ("document_id",),
}


def find_passages_of_channels(
    db: Connection, shelf: PassageTables, passages: Iterable[Pending], channels: Collection[str]
) -> set[int]:
    """Return the numbers of the passages from chats on `channels`."""
    if shelf.chunks != MEMORY.chunks:
        return set()
    rows = db.execute(
        f"SELECT chunk_no FROM {shelf.chunks} WHERE chunk_no IN (SELECT value FROM json_each(?))"
        " AND substr(chat_id, 1, instr(chat_id, ':') - 1) IN (SELECT value FROM json_each(?))",
        (to_json_list([each.chunk_no for each in passages]), to_json_list(sorted(channels))),
    )
    return {number for (number,) in rows}


def find_passages_with_keys(db: Connection, shelf: PassageTables, passages: Iterable[Pending]) -> set[int]:
    """Return the numbers of the passages that contain a key or a piece of one.

    Checks the whole source texts, since a key may be longer than a passage or recognisable only in context.
    """
    owners = _OWNERS[shelf.chunks]
    columns = ", ".join(("stream", *owners))
    known: dict[tuple[Any, ...], bool] = {}
    found = set()
    for number, text, _ in passages:
        row = db.execute(f"SELECT {columns} FROM {shelf.chunks} WHERE chunk_no = ?", (number,)).fetchone()
        owner = tuple(row) if row else (number,)
        if owner not in known:
            known[owner] = row is not None and _source_text_holds_key(db, shelf, owners, row)
        if known[owner] or text_has_key(text):
            found.add(number)
    return found


def _source_text_holds_key(
    db: Connection, shelf: PassageTables, owners: Sequence[str], row: Sequence[Any]
) -> bool:
    """Whether the source text of an owner's passages contains a key."""
    stream, *ids = row
    name, value = next((name, value) for name, value in zip(owners, ids, strict=True) if value is not None)
    if name == "message_id":
        return fulltext.message_holds_key(db, "stream = ? AND id = ?", (stream, value))
    if name == "fact_id":
        return fulltext.fact_holds_key(db, value)
    whole = _join_source(db, shelf, name, value, stream)
    return text_has_key(whole, fulltext.select_memory_names(db, value) if name == "memory_id" else ())


def _join_source(db: Connection, shelf: PassageTables, owner: str, value: str, stream: str) -> str:
    """Reassemble the source text from the owner's overlapping passages."""
    sql = f"SELECT content, start_char, end_char FROM {shelf.chunks} WHERE {owner} = ? AND stream = ?"
    whole, end = [], 0
    for content, start, last in db.execute(f"{sql} ORDER BY chunk_index", (value, stream)):
        whole.append(content[max(0, end - start) :])
        end = last
    return "".join(whole)


def dequeue_passages(db: Connection, shelf: PassageTables, passages: Iterable[Pending]) -> None:
    """Remove passages from the embedding queue."""
    db.executemany(f"DELETE FROM {shelf.queue} WHERE chunk_no = ?", ((each.chunk_no,) for each in passages))


def find_texts_still_present(db: Connection, shelf: PassageTables, passages: Iterable[Pending]) -> set[str]:
    """Return the texts of the `passages` that still exist."""
    sql = f"SELECT 1 FROM {shelf.chunks} WHERE chunk_no = ?"
    return {each.text for each in passages if db.execute(sql, (each.chunk_no,)).fetchone()}


def texts_to_embed(db: Connection) -> Iterator[str]:
    """Yield each passage's text for embedding."""
    for shelf in SHELVES:
        for label, content in db.execute(f"SELECT label, content FROM {shelf.chunks}"):
            yield _embedded_text(shelf, label, content)


def _embedded_text(shelf: PassageTables, label: str | None, content: str) -> str:
    return format_passage_text(label, content) if shelf.embeds_label else content


def count_passages(db: Connection) -> int:
    """Return the number of passages."""
    return sum(count_rows(db, shelf.chunks) for shelf in SHELVES)


def count_pending_passages(db: Connection, of: VectorSet = vectors.FIRST) -> int:
    """Return the number of passages in the embedding queue; 0 if the set is not in use."""
    return (
        sum(count_rows(db, shelf.queue) for shelf in passage_tables(of))
        if of in list_vector_sets_in_use(db)
        else 0
    )


def count_pending_passages_of_all_sets(db: Connection) -> int:
    """Return the number of missing vectors in all sets."""
    return sum(count_pending_passages(db, of) for of in vectors.SETS)


def _read_texts_to_embed(
    db: Connection, shelf: PassageTables, where: str, values: tuple[Any, ...]
) -> list[fulltext.Text]:
    condition = f"({where}) AND {shelf.has_fulltext}"
    texts = db.execute(f"SELECT chunk_no, label, content FROM {shelf.chunks} WHERE {condition}", values)
    return texts.fetchall()
