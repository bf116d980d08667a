"""The vector cache: maps (model id, SHA-256 of the text) to a vector. Disposable, but survives rebuilds."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from memlog.eventlog.codec.hashing import sha256
from memlog.eventlog.errors import Busy, DatabaseError
from memlog.eventlog.files import disk, file_io
from memlog.eventlog.files.file_io import status_at
from memlog.eventlog.files.folders import make_folder_and_parents
from memlog.eventlog.log.layout import EMBEDDINGS
from memlog.projector import sqlite
from memlog.projector.sqlite import Connection, connect, converting_errors, transaction

_SCHEMA = """
CREATE TABLE IF NOT EXISTS models (model_no INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE);
-- A row per text and model. A rowid table: WITHOUT ROWID was measured two to three times bigger and slower.
CREATE TABLE IF NOT EXISTS vectors (
    model_no     INTEGER NOT NULL REFERENCES models (model_no),
    text_sha256  BLOB NOT NULL,
    vector       BLOB NOT NULL,  -- float32, little endian
    UNIQUE (model_no, text_sha256)
);
-- What a provider could not embed, and the day of the request.
CREATE TABLE IF NOT EXISTS set_aside (
    model_no     INTEGER NOT NULL REFERENCES models (model_no),
    text_sha256  BLOB NOT NULL,
    day          TEXT NOT NULL,
    UNIQUE (model_no, text_sha256)
);
"""


class VectorCache:
    """One model's vectors, in `cache/embeddings.db` of the store at `store`."""

    def __init__(self, store: Path, model_id: str) -> None:
        self._path = store / EMBEDDINGS
        self._db = _open_or_replace(self._path)
        with converting_errors(self._path), transaction(self._db):
            self._db.execute("INSERT OR IGNORE INTO models (id) VALUES (?)", (model_id,))
        number = self._db.execute("SELECT model_no FROM models WHERE id = ?", (model_id,))
        (self._model_no,) = number.fetchone()

    def find_vectors(self, texts: Sequence[str]) -> dict[str, bytes]:
        """Return the cached vectors of `texts`, keyed by text."""
        return self._select_by_text("vector FROM vectors", texts)

    def add_vectors(self, vectors: Iterable[tuple[str, bytes]]) -> None:
        """Store vectors, given as pairs of text and vector."""
        self._insert_rows("IGNORE INTO vectors", vectors)

    def record_texts_set_aside(self, texts: Iterable[str], day: str) -> None:
        """Record that the model could not embed `texts` on `day`."""
        self._insert_rows("REPLACE INTO set_aside", ((text, day) for text in texts))

    def find_days_set_aside(self, texts: Iterable[str]) -> dict[str, str]:
        """Return the day on which each text was set aside, keyed by text; omit texts that never were."""
        return self._select_by_text("day FROM set_aside", texts)

    def _select_by_text(self, column: str, texts: Iterable[str]) -> dict[str, Any]:
        sql = f"SELECT {column} WHERE model_no = ? AND text_sha256 = ?"
        keys = ((text, (self._model_no, _hash_text(text))) for text in dict.fromkeys(texts))
        with converting_errors(self._path):
            rows = ((text, self._db.execute(sql, key).fetchone()) for text, key in keys)
            return {text: row[0] for text, row in rows if row}

    def _insert_rows(self, into: str, values: Iterable[tuple[str, object]]) -> None:
        rows = ((self._model_no, _hash_text(text), value) for text, value in values)
        with converting_errors(self._path), transaction(self._db):
            self._db.executemany(f"INSERT OR {into} VALUES (?, ?, ?)", rows)

    def has_texts_set_aside(self, before: str = "9999") -> bool:
        """Whether any text was set aside before the day `before`."""
        sql = "SELECT 1 FROM set_aside WHERE model_no = ? AND day < ? LIMIT 1"
        with converting_errors(self._path):
            return self._db.execute(sql, (self._model_no, before)).fetchone() is not None

    def forget_texts_set_aside(self, before: str) -> None:
        """Forget which texts were set aside before the day `before`."""
        with converting_errors(self._path), transaction(self._db):
            self._db.execute("DELETE FROM set_aside WHERE model_no = ? AND day < ?", (self._model_no, before))

    def read_dimension(self) -> int | None:
        """Return the dimension of the model's vectors; None if none are cached."""
        sql = "SELECT length(vector) / 4 FROM vectors WHERE model_no = ? LIMIT 1"
        with converting_errors(self._path):
            row = self._db.execute(sql, (self._model_no,)).fetchone()
        return row[0] if row else None

    def close(self) -> None:
        """Close the file."""
        self._db.close()


def remove_unlisted_vectors(store: Path, texts: Iterable[str], *, vacuum: bool = False) -> int:
    """Remove every model's vectors except those of `texts`; return the number removed.

    The removed bytes are overwritten, including those in SQLite's side files. vacuum: also rewrite the file
    without free pages. Raises DatabaseError if another process uses the file for too long.
    """
    path = store / EMBEDDINGS
    if status_at(path) is None:
        return 0
    with closing(_open_or_replace(path)) as db, converting_errors(path):
        db.execute("PRAGMA secure_delete = ON")
        db.execute("CREATE TEMP TABLE kept (text_sha256 BLOB PRIMARY KEY) WITHOUT ROWID")
        with transaction(db):
            db.executemany("INSERT OR IGNORE INTO kept VALUES (?)", ((_hash_text(text),) for text in texts))
            (_, removed) = (
                db.execute(f"DELETE FROM {table} WHERE text_sha256 NOT IN (SELECT text_sha256 FROM kept)")
                for table in ("set_aside", "vectors")
            )
        if vacuum:
            db.execute("VACUUM")
        (is_busy, *_) = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    if is_busy:
        raise DatabaseError(
            f"{path} is in use: removed vectors may remain in its side files", hint="try again"
        )
    return removed.rowcount


def check_cache(store: Path, *, read_only: bool = False) -> tuple[int, list[str]]:
    """Return the number of cached vectors, and a list of problems. Does not change the cache."""
    path = store / EMBEDDINGS
    if status_at(path) is None:
        return 0, []
    try:
        with closing(connect(path, "immutable" if read_only else "write")) as db, converting_errors(path):
            problems = [str(row[0]) for row in db.execute("PRAGMA integrity_check(3)") if row[0] != "ok"]
            problems += _find_problems_of_vectors(db)
            return sqlite.count_rows(db, "vectors"), [f"the cache: {text}" for text in problems]
    except DatabaseError as error:
        return 0, [f"the cache could not be read ({error.message})"]


def count_unused_texts(store: Path, texts: Iterable[str], *, read_only: bool = False) -> int:
    """Return the number of texts in the cache that are not in `texts`. Read-only. Raises DatabaseError."""
    path = store / EMBEDDINGS
    kept = {_hash_text(text) for text in texts}
    if status_at(path) is None:
        return 0
    with closing(connect(path, "immutable" if read_only else "write")) as db, converting_errors(path):
        keys = db.execute("SELECT DISTINCT text_sha256 FROM vectors")
        return sum(key not in kept for (key,) in keys)


def _find_problems_of_vectors(db: Connection) -> list[str]:
    """Return problems with the vectors: differing lengths, or numbers that are not finite."""
    # Imported here: nothing without a model needs it.
    try:
        import numpy
    except Exception as error:  # noqa: BLE001 - a wheel for another processor fails in any way
        return [f"numpy cannot be imported: {error}"]

    lengths = defaultdict[str, set[int]](set)
    problems: dict[str, None] = {}
    for model, vector in db.execute("SELECT models.id, vector FROM vectors JOIN models USING (model_no)"):
        lengths[model].add(len(vector))
        if not vector or len(vector) % 4:
            problems[f"a vector of {model} is not a row of numbers"] = None
        elif not numpy.isfinite(numpy.frombuffer(vector, "<f4")).all():
            problems[f"a vector of {model} is not finite"] = None
    differing = [f"vectors of {model} differ in length" for model, found in lengths.items() if len(found) > 1]
    return [*differing, *problems]


def _open_or_replace(path: Path) -> Connection:
    """Open the cache; replace it if it is damaged, since it can be recomputed.

    Raises Busy if the parent process has it open, since replacing it would lose its vectors.
    """
    try:
        return _open_cache(path)
    except DatabaseError as error:
        if error.code == sqlite.INHERITED:
            raise Busy(error.message, hint=error.hint) from error
        if error.code == sqlite.NO_ROOM:
            raise
        sqlite.remove_database(path)
        return _open_cache(path)


def _open_cache(path: Path) -> Connection:
    make_folder_and_parents(path.parent)
    # SQLite would create the file with the permissions that the umask leaves.
    disk.close(file_io.open_file(path, disk.WRITE | disk.CREATE))
    db = connect(path, "write")
    with converting_errors(path):
        db.execute("PRAGMA journal_mode = WAL")
        for statement in _SCHEMA.split(";\n")[:-1]:
            db.execute(statement)
    return db


def _hash_text(text: str) -> bytes:
    return sha256(text.encode()).digest()
