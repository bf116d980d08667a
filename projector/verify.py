"""Compares a read model with a replay of its log, and with a count of the log's lines."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Any

import msgspec

from memlog.eventlog.codec.hashing import sha256
from memlog.eventlog.integrity.verify import Lines, count_lines
from memlog.eventlog.log.quarantine import DAMAGE
from memlog.eventlog.log.streams import escape_invalid_utf8
from memlog.projector import checkpoints, schema, sqlite
from memlog.projector.catchup import Progress, build_read_model, find_rewritten_streams
from memlog.projector.embedding.models import may_refuse_texts
from memlog.projector.passages import index, vectors
from memlog.projector.passages.chunking import ChunkSizes
from memlog.projector.passages.fulltext import TABLES

# The dump has no row numbers, checkpoints, vectors or FTS5 internals.

_LEFT_OUT = (
    "checkpoints",  # the progress, and the status of files
    "meta",  # the projection id, and the last passage number
    "memory_chunks_queue",  # depends on the model and the cache
    "doc_chunks_queue",
    "streams_to_replay",  # empty once all is read
)
"""The only tables that are not dumped."""

_ORDERS = {
    "events": "stream, day, number, writer, offset",
    "messages": "channel, chat_id, created_at, day, number, writer, offset, stream",
    "withdrawn_messages": "stream, id",
    "memory_chunks": "stream, memory_id, message_id, summary_id, fact_id, daily_event_id, document_id,"
    " chunk_index",
    "doc_chunks": "document_id, chunk_index",
}
"""The order of tables that are not dumped by primary key: `events` by position; messages and passages because
their keys are row numbers. Other tables with such a key are ordered by all columns."""

_ABOUT_BYTES = {"nul_runs", "imported_events"}
"""Tables that describe how the log came about rather than content."""

_WHERE_AND_WHEN_APPENDED = {
    *("day", "number", "writer", "segment", "offset", "length", "line", "position"),
    *("at", "precedence", "salience_precedence"),
}
"""Columns that say where an event is and when it was appended, not what it contains."""


def dump_tables(db: sqlite.Connection, *, content: bool = False) -> Iterator[str]:
    """Yield each table as its name, followed by one line per row: a JSON object of its columns.

    content: omit positions and times of appending, and sort rows by the remaining columns.
    """
    for name, table in schema.list_tables().items():
        if name in _LEFT_OUT or (content and name in _ABOUT_BYTES):
            continue
        columns = [column for column in table.columns if not (content and column in _WHERE_AND_WHEN_APPENDED)]
        listed = ", ".join(columns)
        order = listed if content else _ORDERS.get(name) or ", ".join(table.key or columns)
        yield f"# {name}"
        some = " WHERE type <> 'events_imported'" if content and name == "events" else ""
        for row in db.execute(f"SELECT {listed} FROM {name}{some} ORDER BY {order}"):
            yield msgspec.json.encode(dict(zip(columns, map(_to_json_value, row), strict=True))).decode()


def hash_dump(db: sqlite.Connection, *, content: bool = False) -> str:
    """Return the SHA-256 of the dump in hex; with `content`, equal for stores with the same events."""
    result = sha256()
    for line in dump_tables(db, content=content):
        result.update(line.encode() + b"\n")
    return result.hexdigest()


_ENTRIES = {
    "messages_fts": "SELECT message_no AS no, stream, messages.id AS owner, 0 AS part FROM messages",
    "memory_chunks_fts": "SELECT chunk_no AS no, stream, chunk_index AS part,"
    " coalesce(memory_id, summary_id, fact_id, daily_event_id, document_id) AS owner FROM memory_chunks",
    "doc_chunks_fts": "SELECT chunk_no AS no, stream, chunk_index AS part, document_id AS owner"
    " FROM doc_chunks",
}
"""Queries for each full-text entry's owner, and for the part of the owner's text that the entry holds."""


def hash_fulltext_index(db: sqlite.Connection) -> str:
    """Return a hash of the full-text index in hex.

    It covers every word with its position and owner, the length of each entry, and the totals that ranking
    divides by (some wrong deletes show only there). It is the sum of the hashes of all rows, which needs no
    sorting: 80,000 messages have 3.6 million words, and sorting those took 400 MB.
    https://www.sqlite.org/fts5.html#fts5_data_structures
    """
    total = 0
    for table, entries in _ENTRIES.items():
        db.execute(
            f"CREATE VIRTUAL TABLE IF NOT EXISTS temp.{table}_words USING fts5vocab(main, {table}, instance)"
        )
        words = (
            f"SELECT stream, owner, part, offset, term FROM temp.{table}_words"
            f" LEFT JOIN ({entries}) ON no = doc"
        )
        lengths = f"SELECT stream, owner, part, sz FROM {table}_docsize LEFT JOIN ({entries}) ON no = id"
        # If there are no rows: two zero varints, or nothing if there never was a row.
        totals = f"SELECT coalesce(nullif(block, x''), x'0000') FROM {table}_data WHERE id = 1"
        for sql in (words, lengths, totals):
            for row in db.execute(sql):
                encoded = msgspec.json.encode([table, *map(_to_json_value, row)])
                total += int.from_bytes(sha256(encoded).digest(), "big")
    return f"{total % 2**256:064x}"


def _to_json_value(value: Any) -> Any:  # noqa: ANN401 - whatever SQLite holds
    return value.hex() if isinstance(value, bytes) else value


Scratch = Callable[[], AbstractContextManager[sqlite.Connection]]
"""Returns the context of a temporary, empty database for a replay."""

_MOST_STREAMS = 5
_REMEDY = ": store.maintenance.project(from_scratch=True) builds another"


class NulRun(msgspec.Struct):
    """NUL bytes around a line, left by a power cut: the position of the first one, and their number."""

    stream: str
    segment: str
    offset: int
    bytes: int


class Verification(msgspec.Struct, kw_only=True):
    """The result of a verification.

    If all is well, `problems` and `tampered` are empty. A healthy log may have `quarantined` lines,
    `duplicates`, `conflicts`, `nul_runs` and `torn_seals`; nothing may ever remove them.

    digest, replayed: the digests of the read model and of a replay of its log; None if they were not
      compared.
    damaged: quarantined lines that were altered after memlog wrote them.
    missing_vectors: passages in the embedding queue. withheld_vectors: passages that get no vector because
      they are not sent to the embedding provider, or because it refuses them.
    cached_vectors: vectors in the cache. unused_vectors: cached vectors of texts that no passage has any
      longer, such as earlier contents of a document; a scrub removes them.
    seals: sealed segments. torn_seals: fragments of seals left by killed writers.
    accepted_losses: the number of losses accepted by a person.
    tampered: problems with seals and sealed segments. notes: what was not compared, and why.
    """

    digest: str | None = None
    replayed: str | None = None
    events: int = 0
    duplicates: int = 0
    conflicts: int = 0
    quarantined: dict[str, int] = {}
    nul_runs: list[NulRun] = []
    damaged: int = 0
    vectors: int = 0
    missing_vectors: int = 0
    withheld_vectors: int = 0
    cached_vectors: int = 0
    unused_vectors: int = 0
    seals: int = 0
    torn_seals: int = 0
    accepted_losses: int = 0
    problems: list[str] = []
    tampered: list[str] = []
    notes: list[str] = []

    @property
    def ok(self) -> bool:
        """Whether all checks passed."""
        return not self.problems and not self.tampered

    @property
    def is_spotless(self) -> bool:
        """Whether there is nothing unusual at all, as the option `strict` requires."""
        odd = self.duplicates or self.conflicts or self.quarantined or self.nul_runs or self.torn_seals
        return self.ok and not odd


def verify_read_model(
    db: sqlite.Connection,
    log: Path,
    sizes: ChunkSizes,
    *,
    read_only: bool = False,
    scratch: Scratch = lambda: closing(sqlite.connect(None, "bulk")),
    progress: Progress | None = None,
) -> Verification:
    """Replay `log` up to the checkpoints of the read model in `db`, and compare the two.

    Nothing is compared if the log has been rewritten since: the old bytes are gone, and the next read replays
    it.

    read_only: skip FTS5's own check, an INSERT that writes nothing; comparing all words finds more.
    scratch: returns the database for the replay; in memory by default.

    Raises DatabaseError if the read model cannot be read.
    """
    with sqlite.converting_errors("the read model"), sqlite.transaction(db, "DEFERRED"):
        rewritten = find_rewritten_streams(db, log)
        if rewritten:
            found = Verification(notes=[_describe_rewritten(rewritten)])
        else:
            found = _compare_with_replay(db, log, sizes, scratch, progress)
        found.problems += _check_vectors(db)
        found.problems += _check_database_file(db)
    for table in () if read_only else TABLES:
        try:
            db.execute(f"INSERT INTO {table} ({table}) VALUES ('integrity-check')")
        except sqlite.error_types_of_binding() as error:
            if sqlite.is_busy_error(error):
                found.notes.append(f"{table}: {error}: FTS5 did not check it")
            else:
                found.problems.append(f"{table}: {error}")
    return found


def _describe_rewritten(streams: list[str]) -> str:
    listed = ", ".join(map(escape_invalid_utf8, streams[:_MOST_STREAMS])) + (
        ", …" if len(streams) > _MOST_STREAMS else ""
    )
    return (
        f"the log was rewritten after the last read: {listed}; the next read replays it:"
        " the read model was not compared"
    )


def _compare_with_replay(
    db: sqlite.Connection, log: Path, sizes: ChunkSizes, scratch: Scratch, progress: Progress | None
) -> Verification:
    """Describe the read model, and compare it with a replay of the log up to its checkpoints."""
    found = _describe_read_model(db)
    fulltext = hash_fulltext_index(db)
    bounds = {place: checkpoint.offset for place, checkpoint in checkpoints.load_checkpoints(db).items()}
    with scratch() as replay, sqlite.converting_errors("the replay"):
        build_read_model(replay, log, sizes, bounds=bounds, progress=progress)
        found.replayed, replayed_fulltext = hash_dump(replay), hash_fulltext_index(replay)
    if found.digest != found.replayed:
        found.problems.append(f"the read model differs from a replay of its log{_REMEDY}")
    if fulltext != replayed_fulltext:
        found.problems.append(f"the full text differs from a replay of its log{_REMEDY}")
    found.problems += _count_problems(found, count_lines(log, bounds))
    return found


def _count_problems(found: Verification, lines: Lines) -> list[str]:
    """Return the differences between the counts of the read model and those of the log."""
    pairs = {
        "events": (found.events, lines.events),
        "duplicates": (found.duplicates, lines.duplicates),
        "conflicts": (found.conflicts, lines.conflicts),
        "quarantined lines": (sum(found.quarantined.values()), lines.quarantined.total()),
    }
    return [
        f"the read model has {here} {what}, the log {there}"
        for what, (here, there) in pairs.items()
        if here != there
    ]


def _check_database_file(db: sqlite.Connection) -> list[str]:
    """Run SQLite's own check of pages and indexes; return the problems found."""
    found = [str(row[0]) for row in db.execute("PRAGMA integrity_check(3)")]
    return [] if found == ["ok"] else [f"the read model's file: {'; '.join(found)}"]


_NUL_RUNS = "SELECT stream, segment, offset, length FROM nul_runs ORDER BY stream, segment, offset"


def _describe_read_model(db: sqlite.Connection) -> Verification:
    quarantined = dict(db.execute("SELECT reason, count(*) FROM quarantine GROUP BY reason ORDER BY reason"))
    return Verification(
        digest=hash_dump(db),
        events=sqlite.count_rows(db, "events"),
        duplicates=sqlite.count_rows(db, "duplicates"),
        conflicts=sqlite.count_rows(db, "conflicts"),
        quarantined=quarantined,
        nul_runs=[NulRun(*row) for row in db.execute(_NUL_RUNS)],
        damaged=sum(quarantined.get(reason, 0) for reason in DAMAGE),
        vectors=sum(vectors.count_vectors(db, of) for of in vectors.SETS),
        missing_vectors=index.count_pending_passages_of_all_sets(db),
        withheld_vectors=sum(
            max(0, _count_withheld_passages(db, shelf)) for _, shelf in _tables_with_vectors(db)
        ),
    )


def _tables_with_vectors(db: sqlite.Connection) -> list[tuple[vectors.VectorSet, index.PassageTables]]:
    return [
        (of, shelf)
        for of in vectors.SETS
        if vectors.list_vector_tables(db, of)
        for shelf in index.passage_tables(of)
    ]


def _count_withheld_passages(db: sqlite.Connection, shelf: index.PassageTables) -> int:
    return (
        sqlite.count_rows(db, shelf.chunks)
        - sqlite.count_rows(db, shelf.vectors)
        - sqlite.count_rows(db, shelf.queue)
    )


def _check_vectors(db: sqlite.Connection) -> list[str]:
    problems = []
    for of, shelf in _tables_with_vectors(db):
        missing = _count_withheld_passages(db, shelf)
        # A provider does not get all passages, and refuses some.
        if missing < 0 or (missing and not may_refuse_texts(vectors.read_model_of_vectors(db, of) or "")):
            problems.append(f"{shelf.vectors}: passages and vectors do not match in number")
        probe = db.execute(f"SELECT embedding FROM {shelf.vectors} LIMIT 1").fetchone()
        nearest = f"SELECT distance FROM {shelf.vectors} WHERE embedding MATCH ? AND k = 1"
        found = probe and db.execute(nearest, probe).fetchone()
        if probe and (found is None or abs(found[0]) > 1e-3):
            problems.append(f"{shelf.vectors}: a vector does not find itself")
    return problems
