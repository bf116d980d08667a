"""A table keyed by id that spills to disk, for what an import must remember about a large source."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from memlog.eventlog.codec.hashing import short_sha256
from memlog.projector.sqlite import Connection, choose_binding, converting_errors

Value = bytes | str

_RECENT = 50_000
"""The most entries kept in memory. Writing this many at once, sorted, is ten times as fast as one by one."""

_RECENT_LENGTH = 32 * 2**20
"""The most characters or bytes that the values of these entries may have in total."""

_BITS = 2**26
_CACHE_KIB = 8 * 1024


class DiskTable:
    """A table of values keyed by id, which keeps only a bounded part in memory.

    Ids are stored as hashes. The file has no name, so a killed process leaves no file behind.
    """

    def __init__(self) -> None:
        self._recent: dict[bytes, Value] = {}
        self._length = 0
        self._db: Connection | None = None
        self._filter = bytearray()
        """A Bloom filter of the ids on disk. Most ids are looked up only once, before they are added."""

    def get(self, name: str) -> Value | None:
        """Return the value of an id, or None."""
        key = _hash_id(name)
        found = self._recent.get(key)
        if found is not None or self._db is None:
            return found
        if not all(self._filter[at >> 3] & 1 << (at & 7) for at in _choose_bits_of_filter(key)):
            return None
        row = self._db.execute("SELECT value FROM entries WHERE id = ?", (key,)).fetchone()
        return None if row is None else row[0]

    def __contains__(self, name: str) -> bool:
        """Whether an id has a value."""
        return self.get(name) is not None

    def __setitem__(self, name: str, value: Value) -> None:
        """Set the value of an id."""
        self._recent[_hash_id(name)] = value
        self._length += len(value)
        if len(self._recent) >= _RECENT or self._length >= _RECENT_LENGTH:
            self._spill()

    def add(self, name: str) -> bool:
        """Add an id with an empty value unless it has a value; return whether it is new."""
        is_new = name not in self
        if is_new:
            self[name] = b""
        return is_new

    def values(self) -> Iterator[Value]:
        """Yield all values, in no particular order."""
        if self._db is None:
            yield from self._recent.values()
            return
        self._spill()
        yield from (value for (value,) in self._db.execute("SELECT value FROM entries"))

    def _spill(self) -> None:
        self._filter = self._filter or bytearray(_BITS // 8)
        for key in self._recent:
            for at in _choose_bits_of_filter(key):
                self._filter[at >> 3] |= 1 << (at & 7)
        with converting_errors(f"a temporary file in {tempfile.gettempdir()}"):
            if self._db is None:
                self._db = _open_unnamed_database()
            self._db.executemany("INSERT OR REPLACE INTO entries VALUES (?, ?)", sorted(self._recent.items()))
        self._recent.clear()
        self._length = 0


def _hash_id(name: str) -> bytes:
    return short_sha256(name.encode(errors="surrogatepass")).digest()[:16]


def _choose_bits_of_filter(key: bytes) -> tuple[int, int]:
    number = int.from_bytes(key[:8], "big")
    return number % _BITS, (number >> 32) % _BITS


def _open_unnamed_database() -> Connection:
    # SQLite's own temporary databases stay in memory in some builds, such as pysqlite3's.
    handle, path = tempfile.mkstemp(prefix="memlog.")
    try:
        os.close(handle)
        db: Connection = choose_binding().connect(path, isolation_level=None)
        # Without a journal SQLite does not mind that the file has no name.
        for pragma in ("journal_mode = OFF", "synchronous = OFF", "locking_mode = EXCLUSIVE"):
            db.execute(f"PRAGMA {pragma}")
        db.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        db.execute("CREATE TABLE entries (id BLOB PRIMARY KEY, value ANY) WITHOUT ROWID, STRICT")
        db.execute("BEGIN")
    finally:
        with suppress(OSError):
            Path(path).unlink()
    return db
